// SPDX-License-Identifier: Apache-2.0
#include "supervisor/connections.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/error.hpp"

namespace assay::supervisor {

Connections::Connections(int ranks)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), connections_(static_cast<std::size_t>(ranks)) {
  if (epoll_ < 0) throw Error(ErrorKind::resource, "the lines to the supervisors cannot be watched");
}

Connections::~Connections() { ::close(epoll_); }

bool Connections::any_open() const noexcept {
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const Connection& line) { return line.stream.open(); });
}

void Connections::watch(int operation, int rank) {
  const Connection& line = connections_[static_cast<std::size_t>(rank)];
  epoll_event event{};
  event.events = EPOLLIN;
  if (line.waits_to_send) event.events |= EPOLLOUT;
  event.data.u32 = static_cast<std::uint32_t>(rank);
  if (epoll_ctl(epoll_, operation, line.stream.fd(), &event) != 0)
    throw Error(ErrorKind::resource, "the line to a supervisor cannot be watched");
}

void Connections::connect(int rank, Stream stream) {
  Connection& line = connections_[static_cast<std::size_t>(rank)];
  line = {std::move(stream), false};
  watch(EPOLL_CTL_ADD, rank);
  push(rank);
}

/// Sends what the socket takes, and asks to be woken for the rest. False when the other end is gone.
bool Connections::push(int rank) {
  Connection& line = connections_[static_cast<std::size_t>(rank)];
  if (!line.stream.pump_out()) return false;
  if (line.stream.wants_out() != line.waits_to_send) {
    line.waits_to_send = !line.waits_to_send;
    watch(EPOLL_CTL_MOD, rank);
  }
  return true;
}

void Connections::send(int rank, const Message& message) {
  if (!open(rank)) return;
  connections_[static_cast<std::size_t>(rank)].stream.queue(message);
  push(rank);  // a line that is gone is found by `serve`
}

void Connections::serve(const Take& take, const Gone& gone) {
  std::array<epoll_event, 256> ready;
  const int n = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < n; ++i) {
    const int rank = static_cast<int>(ready[static_cast<std::size_t>(i)].data.u32);
    Stream& stream = connections_[static_cast<std::size_t>(rank)].stream;
    bool alive = false;
    try {
      alive = push(rank) && stream.pump_in();
      while (auto message = stream.take()) {
        message->rank = rank;
        take(*message);
      }
    } catch (const Error&) {
      alive = false;
    }
    if (alive) continue;
    stream.close();
    gone(rank);
  }
}

}  // namespace assay::supervisor
