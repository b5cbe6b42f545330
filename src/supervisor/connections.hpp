// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "supervisor/wire.hpp"

namespace assay::supervisor {

/// The collector's lines to the other supervisors, by rank. There can be thousands; only ready ones are read.
class Connections {
 public:
  /// A broken line, or one with an invalid message, is closed before this is called.
  using Gone = std::function<void(int rank)>;
  /// `message.rank` is that of the line, whatever the message contains.
  using Take = std::function<void(const Message& message)>;

  explicit Connections(int ranks);  ///< Throws Error(resource).
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// Readable when `serve` has something to do.
  int fd() const noexcept { return epoll_; }
  int ranks() const noexcept { return static_cast<int>(connections_.size()); }
  bool open(int rank) const noexcept { return connections_[static_cast<std::size_t>(rank)].stream.open(); }
  bool any_open() const noexcept;

  /// With what is queued in the stream. Throws Error(resource).
  void connect(int rank, Stream stream);
  /// Queues it where the socket takes no more; nothing when the line is closed.
  void send(int rank, const Message& message);
  /// One look at what is ready, without waiting.
  void serve(const Take& take, const Gone& gone);

 private:
  struct Connection {
    Stream stream;
    bool waits_to_send = false;
  };
  bool push(int rank);
  void watch(int operation, int rank);

  int epoll_;
  std::vector<Connection> connections_;
};

}  // namespace assay::supervisor
