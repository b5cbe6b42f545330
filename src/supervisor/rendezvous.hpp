// SPDX-License-Identifier: Apache-2.0
// How supervisors find the collector without MPI: a small file beside the output, readable by the owner only,
// that holds the run's random key and where the collector listens. Where some rank cannot read it, rank 0's
// worker sends its content over MPI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::supervisor {

struct Address {
  std::string key;                 ///< shared secret of supervisors and collector (handshake.hpp)
  std::vector<std::string> hosts;  ///< numeric addresses of the collector's machine
  std::uint16_t port = 0;
};
std::string to_text(const Address& address);
std::optional<Address> address_from(const std::string& text);

/// The same for all ranks of one launch and different for another: from the launcher's environment. Empty for
/// a single process or an unknown launcher.
std::string job_name();

class RendezvousFile {
 public:
  /// Writes it, replacing an old one of this user. An unwritable folder is no error: the address is then sent
  /// over MPI.
  RendezvousFile(const std::string& folder, const std::string& job, const Address& address) noexcept;
  ~RendezvousFile() { remove(); }
  RendezvousFile(const RendezvousFile&) = delete;
  RendezvousFile& operator=(const RendezvousFile&) = delete;
  void remove() noexcept;

  /// The content, if it is complete and belongs to this user.
  static std::optional<Address> read(const std::string& folder, const std::string& job);

 private:
  std::string path_;
};

/// Limit of connections that wait for acceptance. In a flood of connections a longer queue delays a
/// supervisor beyond its time limit.
inline constexpr int most_in_line = 1024;

/// Listening TCP sockets, all with one port: on loopback only when all ranks are on this machine, else on the
/// addresses by which this machine reaches the launcher, or which Hydra tells others; on all its addresses if
/// the launcher gives none (Open MPI 5). Throws Error(resource).
std::vector<int> listen_on(bool loopback_only, Address& address);
/// The IPv4 addresses in the launcher's address of Open MPI and Slurm:
/// "1.0;tcp://10.0.0.1,10.1.0.1:4711;tcp6://...", "10.0.0.1".
std::vector<std::string> addresses_in(const std::string& text);
/// A socket with a pending connection to one host; -1 on error.
int start_connect(const std::string& host, std::uint16_t port) noexcept;

/// A Unix socket in the abstract namespace, which the kernel removes with its process. -1 on error with
/// errno: EADDRINUSE when another process listens there, ECONNREFUSED when none does.
int listen_local(const std::string& name) noexcept;
int connect_local(const std::string& name) noexcept;

}  // namespace assay::supervisor
