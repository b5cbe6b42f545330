// SPDX-License-Identifier: Apache-2.0
// How guardians find the collector without MPI: a small file beside the output, readable by the owner only, that
// holds the run's random token and where the collector listens. Where no folder is shared, rank 0's worker tells the
// others over MPI once that is up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::guard {

struct Address {
  std::string proof;   ///< what a guardian must show
  std::string answer;  ///< what the collector must answer
  std::vector<std::string> hosts;  ///< numeric addresses of the collector's machine
  std::uint16_t port = 0;
};
std::string to_text(const Address& address);
std::optional<Address> address_from(const std::string& text);

/// 32 hexadecimal digits from the kernel's random source. Throws Error(resource).
std::string random_token();

/// The same for all ranks of one launch and different for another: from what the launcher gave them. Empty for a
/// process of its own or an unknown launcher.
std::string job_name();

class RendezvousFile {
 public:
  /// Writes it, replacing a stale one of ours. An unwritable folder is no error: the address goes over MPI then.
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

/// A listening TCP socket; on loopback only when all ranks are on this machine. Throws Error(resource).
int listen_on(bool loopback_only, Address& address);
/// A socket whose connection to one host is under way; -1 when that cannot work.
int start_connect(const std::string& host, std::uint16_t port) noexcept;

}  // namespace assay::guard
