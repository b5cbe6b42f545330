// SPDX-License-Identifier: Apache-2.0
// How guardians find the collector without MPI: a small file beside the output, readable by the owner only,
// that holds the run's random key and where the collector listens. Where no folder is shared, rank 0's worker
// tells the others over MPI once that is up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::guard {

struct Address {
  std::string key;                 ///< what guardians and collector know of each other (handshake.hpp)
  std::vector<std::string> hosts;  ///< numeric addresses of the collector's machine
  std::uint16_t port = 0;
};
std::string to_text(const Address& address);
std::optional<Address> address_from(const std::string& text);

/// The same for all ranks of one launch and different for another: from what the launcher gave them. Empty
/// for a process of its own or an unknown launcher.
std::string job_name();

class RendezvousFile {
 public:
  /// Writes it, replacing a stale one of ours. An unwritable folder is no error: the address goes over MPI
  /// then.
  RendezvousFile(const std::string& folder, const std::string& job, const Address& address) noexcept;
  ~RendezvousFile() { remove(); }
  RendezvousFile(const RendezvousFile&) = delete;
  RendezvousFile& operator=(const RendezvousFile&) = delete;
  void remove() noexcept;

  /// What stands there now, if it is whole and belongs to this user.
  static std::optional<Address> read(const std::string& folder, const std::string& job);

 private:
  std::string path_;
};

/// Listening TCP sockets, all with one port: on loopback only when all ranks are on this machine, else on the
/// addresses by which this machine reaches the launcher; on all of its own only when the launcher tells none.
/// Throws Error(resource).
std::vector<int> listen_on(bool loopback_only, Address& address);
/// The IPv4 addresses in what Open MPI and Slurm tell of the launcher:
/// "1.0;tcp://10.0.0.1,10.1.0.1:4711;tcp6://...", "10.0.0.1".
std::vector<std::string> addresses_in(const std::string& text);
/// A socket whose connection to one host is under way; -1 when that cannot work.
int start_connect(const std::string& host, std::uint16_t port) noexcept;

}  // namespace assay::guard
