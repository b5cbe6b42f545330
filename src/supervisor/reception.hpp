// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <functional>
#include <string>
#include <vector>

#include "supervisor/rendezvous.hpp"
#include "supervisor/wire.hpp"

namespace assay::supervisor {

/// Accepts the supervisors: listens until all are connected. Other connections are cheap: few are open at a
/// time, each for a short time, and none of them blocks a supervisor.
class Reception {
 public:
  static constexpr std::size_t most_pending = 256;  ///< beside those of the missing supervisors
  static constexpr double introduce_s = 1.0;   ///< a connection that has not shown the key by then is closed
  using Open = std::function<bool(int rank)>;  ///< whether that rank is in already
  using Enter = std::function<void(int rank, const std::string& host, Stream stream)>;

  /// Listens and completes `address`. Throws Error(resource).
  Reception(bool loopback_only, Address& address, int ranks);
  ~Reception() { close(); }
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  bool listening() const noexcept { return !sockets_.empty(); }
  std::size_t pending() const noexcept { return pending_.size(); }
  void watch(std::vector<pollfd>& fds) const;
  /// Accepts connections and passes on authenticated ones, once per rank.
  void serve(double now, const Open& open, const Enter& enter);
  /// All are connected; accepts no more.
  void close() noexcept;

 private:
  struct PendingConnection {
    Stream stream;
    std::string challenge;
    double since_s;
  };
  void take_in(double now);
  void introduce(PendingConnection& pending, double now, const Open& open, const Enter& enter);

  std::vector<int> sockets_;
  std::vector<PendingConnection> pending_;
  std::string key_;
  int ranks_;
  std::size_t missing_;
  std::uint64_t draws_ = 0;
};

}  // namespace assay::supervisor
