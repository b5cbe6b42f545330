// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

#include <functional>
#include <string>
#include <vector>

#include "supervisor/delivery.hpp"
#include "supervisor/wire.hpp"

namespace assay::supervisor {

/// A supervisor that lost its relay looks so long for another way to the collector, in s: also to one that
/// does not run meanwhile, because a disk blocks it.
inline constexpr double takeover_s = 20.0;

/// The collector's connections. One may serve all ranks of a node, and a rank may change its connection:
/// `join` messages say which ranks each connection reaches. There can be thousands; only ready ones are read.
class Connections {
 public:
  /// Without a way to the collector for longer, while this process runs, a rank is gone.
  static constexpr double grace_s = 6.0;
  /// A rank behind a relay that was not heard for so long may have left it, for another way. After the longer
  /// time it has stopped.
  static constexpr double left_after_s = 1.5, stopped_after_s = 30;

  struct Events {
    std::function<void(int rank, const std::string& host)> joined;  ///< also after a change of connection
    std::function<void(const Message& message)> take;               ///< `message.rank` is the sender
    std::function<void(int rank)> gone;                             ///< is not called twice
  };

  explicit Connections(int ranks);  ///< Throws Error(resource).
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// Readable when `serve` has something to do.
  int fd() const noexcept { return epoll_; }
  int ranks() const noexcept { return static_cast<int>(ranks_.size()); }
  int open_count() const noexcept;

  /// An authenticated connection of the supervisor of `rank`, with what is queued in the stream. Throws
  /// Error(resource).
  void add(int rank, const std::string& host, Stream stream);
  /// Queues it where the socket takes no more; keeps it while the rank changes its connection.
  void send(int rank, const Message& message);
  /// Reads all that is ready, without waiting: of a rank that is not heard then, nothing had arrived.
  void serve(double now, const Events& events);
  /// Whether ranks may look for another connection, so that the collector must listen.
  bool expects_more(double now) const noexcept;

 private:
  struct Connection {
    Stream stream;
    int rank = -1;  ///< whose supervisor is at the other end
    int joined = 0;
    std::string host;
    bool waits_to_send = false;
  };
  struct Rank {
    int connection = -1, attempt = 0;
    double heard_at_s = 0;
    double adrift_at_s = 0;  ///< since when it has no connection; 0: it has one, or is gone
    std::string host;
    Delivery delivery;
  };
  Rank& of(int rank) noexcept { return ranks_[static_cast<std::size_t>(rank)]; }
  Connection& at(int index) noexcept { return connections_[static_cast<std::size_t>(index)]; }
  bool push(int index);
  void watch(int operation, int index);
  void take(int index, const Message& message, double now, const Events& events);
  void join(int index, const Message& message, const Events& events);
  void leave(int rank, const Events& events);
  void broke(int index, double now, const Events& events);

  int epoll_, adrift_ = 0;
  double served_at_s_ = 0, adrift_check_at_s_ = 0;
  std::vector<Connection> connections_;
  std::vector<epoll_event> ready_;
  std::vector<int> closed_;  ///< places in `connections_` to be used again
  std::vector<Rank> ranks_;
};

}  // namespace assay::supervisor
