// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <functional>
#include <string>
#include <vector>

#include "supervisor/handshake.hpp"
#include "supervisor/rendezvous.hpp"
#include "supervisor/wire.hpp"

namespace assay::supervisor {

/// Accepts the supervisors: listens until all are connected. Other connections are cheap: few are open at a
/// time, each for a short time, and none of them blocks a supervisor.
class Reception {
 public:
  static constexpr std::size_t most_pending = 256;  ///< beside those that are still to come
  static constexpr double introduce_s = 1.0;  ///< a connection that has not shown the key by then is closed
  using Enter = std::function<void(int rank, const std::string& host, Stream stream)>;

  /// The collector's: listens and completes `address`. `host`: supervisors of this node connect to its Unix
  /// socket. `connections`: how many come when every node has a relay. Throws Error(resource).
  Reception(bool loopback_only, Address& address, int ranks, int connections, const std::string& host);
  /// A relay's: takes over a socket that listens.
  Reception(int socket, std::string key, int ranks, int connections);
  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  bool listening() const noexcept { return listening_; }
  std::size_t pending() const noexcept { return pending_.size(); }
  void watch(std::vector<pollfd>& fds) const;
  /// Accepts connections and passes on authenticated ones.
  void serve(double now, const Enter& enter);
  /// All are connected; accepts no more. The port stays taken, for `listen_again`.
  void close() noexcept;
  void listen_again() noexcept;

 private:
  struct PendingConnection {
    Stream stream;
    std::string challenge;
    double since_s;
  };
  void take_in(double now);
  void introduce(PendingConnection& pending, double now, const Enter& enter);

  std::vector<int> sockets_;
  int local_socket_ = -1;
  bool listening_ = true;
  Host host_ = Host::collector;
  std::vector<PendingConnection> pending_;
  std::string key_;
  int ranks_;
  std::size_t to_come_;
  std::uint64_t draws_ = 0;
};

}  // namespace assay::supervisor
