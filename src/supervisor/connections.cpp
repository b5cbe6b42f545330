// SPDX-License-Identifier: Apache-2.0
#include "supervisor/connections.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.hpp"

namespace assay::supervisor {

Connections::Connections(int ranks)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), ranks_(static_cast<std::size_t>(ranks)) {
  if (epoll_ < 0) throw Error(ErrorKind::resource, "the connections to the supervisors cannot be watched");
}

Connections::~Connections() { ::close(epoll_); }

int Connections::open_count() const noexcept {
  return static_cast<int>(std::count_if(connections_.begin(), connections_.end(),
                                        [](const Connection& c) { return c.stream.open(); }));
}

void Connections::watch(int operation, int index) {
  const Connection& c = at(index);
  epoll_event event{};
  event.events = EPOLLIN;
  if (c.waits_to_send) event.events |= EPOLLOUT;
  event.data.u32 = static_cast<std::uint32_t>(index);
  if (epoll_ctl(epoll_, operation, c.stream.fd(), &event) != 0)
    throw Error(ErrorKind::resource, "the connection to a supervisor cannot be watched");
}

void Connections::add(int rank, const std::string& host, Stream stream) {
  if (closed_.empty()) {
    closed_.push_back(static_cast<int>(connections_.size()));
    connections_.emplace_back();
  }
  const int index = closed_.back();
  closed_.pop_back();
  at(index) = {std::move(stream), rank, 0, host, false};
  watch(EPOLL_CTL_ADD, index);
  push(index);
}

/// Sends what the socket takes, and asks to be woken for the rest. False when the other end is gone.
bool Connections::push(int index) {
  Connection& c = at(index);
  if (!c.stream.pump_out()) return false;
  if (c.stream.wants_out() != c.waits_to_send) {
    c.waits_to_send = !c.waits_to_send;
    watch(EPOLL_CTL_MOD, index);
  }
  return true;
}

void Connections::send(int rank, const Message& message) {
  Rank& r = of(rank);
  if (r.connection < 0 && r.adrift_at_s == 0) return;
  Message numbered = r.delivery.number(message);
  if (r.connection < 0) return;  // sent when it has joined again
  numbered.rank = rank;
  at(r.connection).stream.queue(numbered);
  push(r.connection);  // a connection that is gone is found by `serve`
}

void Connections::serve(double now, const Events& events) {
  // While this process did not run, nobody was heard, and nobody could come back.
  const double away_s = now - std::exchange(served_at_s_, now);
  if (away_s > left_after_s / 2)
    for (Rank& r : ranks_) {
      r.heard_at_s += away_s;
      if (r.adrift_at_s > 0) r.adrift_at_s += away_s;
    }
  ready_.resize(std::max(connections_.size(), std::size_t{1}));
  const int n = epoll_wait(epoll_, ready_.data(), static_cast<int>(ready_.size()), 0);
  for (int i = 0; i < n; ++i) {
    const int index = static_cast<int>(ready_[static_cast<std::size_t>(i)].data.u32);
    Stream& stream = at(index).stream;
    bool alive = false;
    try {
      alive = push(index) && stream.pump_in();
      while (const auto message = stream.take()) take(index, *message, now, events);
    } catch (const Error&) {
      alive = false;
    }
    if (!alive) broke(index, now, events);
  }
  if (adrift_ == 0 || now < adrift_check_at_s_) return;
  adrift_check_at_s_ = now + 0.1;  // it visits every rank
  for (int rank = 1; rank < ranks(); ++rank)
    if (of(rank).adrift_at_s > 0 && now - of(rank).adrift_at_s > grace_s) leave(rank, events);
}

void Connections::take(int index, const Message& message, double now, const Events& events) {
  if (message.rank <= 0 || message.rank >= ranks()) return;
  Rank& r = of(message.rank);
  if (message.type == MessageType::join) join(index, message, events);
  if (r.connection != index) return;  // it has another connection since, or is not of this node
  r.heard_at_s = now;
  if (message.type == MessageType::left) {
    if (message.number == r.attempt) leave(message.rank, events);
  } else if (message.type < MessageType::join && r.delivery.take(message)) {
    events.take(message);
    if (message.type != MessageType::part) return;
    at(index).stream.queue({MessageType::part_taken, message.rank, 0, "", 0, r.delivery.received()});
    push(index);
  }
}

void Connections::join(int index, const Message& m, const Events& events) {
  Connection& c = at(index);
  Rank& r = of(m.rank);
  if (m.text != c.host || m.number <= r.attempt || (r.attempt > 0 && r.host != c.host)) return;
  if (r.connection >= 0) --at(r.connection).joined;
  if (std::exchange(r.adrift_at_s, 0) > 0) --adrift_;
  r.connection = index;
  r.attempt = m.number;
  r.host = c.host;
  ++c.joined;
  c.stream.queue({MessageType::joined, m.rank, m.number, "", 0, r.delivery.received()});
  r.delivery.send_again(m.received, [&](Message again) {
    again.rank = m.rank;
    c.stream.queue(again);
  });
  push(index);
  events.joined(m.rank, r.host);
}

void Connections::leave(int rank, const Events& events) {
  Rank& r = of(rank);
  if (std::exchange(r.adrift_at_s, 0) > 0) --adrift_;
  if (r.connection >= 0) --at(r.connection).joined;
  r.connection = -1;
  r.delivery.forget();
  events.gone(rank);
}

/// The rank whose supervisor was at the other end is gone; the others of its node may come back.
void Connections::broke(int index, double now, const Events& events) {
  Connection& c = at(index);
  c.stream.close();
  closed_.push_back(index);
  if (of(c.rank).connection == index) leave(c.rank, events);
  for (int rank = 1; c.joined > 0 && rank < ranks(); ++rank) {
    Rank& r = of(rank);
    if (r.connection != index) continue;
    r.connection = -1;
    r.adrift_at_s = now;
    ++adrift_;
    --c.joined;
  }
}

bool Connections::expects_more(double now) const noexcept {
  if (adrift_ > 0) return true;
  for (int rank = 1; rank < ranks(); ++rank) {
    const Rank& r = ranks_[static_cast<std::size_t>(rank)];
    const double silent_s = now - r.heard_at_s;
    if (r.connection >= 0 && silent_s > left_after_s && silent_s < stopped_after_s &&
        connections_[static_cast<std::size_t>(r.connection)].rank != rank)
      return true;
  }
  return false;
}

}  // namespace assay::supervisor
