// SPDX-License-Identifier: Apache-2.0
#include "supervisor/relay.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace assay::supervisor {

void Relay::watch(std::vector<pollfd>& fds, bool reads) const {
  reception_.watch(fds);
  for (const Member& m : members_) {
    const int events = (reads ? POLLIN : 0) | (m.stream.wants_out() ? POLLOUT : 0);
    if (events != 0) fds.push_back({m.stream.fd(), static_cast<short>(events), 0});
  }
}

void Relay::serve(double now, bool reads, const Up& up) {
  reception_.serve(now, [this](int rank, const std::string&, Stream stream) {
    std::erase_if(members_, [rank](const Member& m) { return m.rank == rank; });
    members_.push_back({rank, 0, std::move(stream)});
  });
  if (static_cast<int>(members_.size()) >= others_) reception_.close();
  if (now - beat_at_s_ > beat_every_s) {
    beat_at_s_ = now;
    send_all(MessageType::beat);
  }
  for (Member& m : members_) {
    m.stream.pump_out();
    if (reads) read(m, up);
  }
  std::erase_if(members_, [](const Member& m) { return !m.stream.open(); });
}

void Relay::read(Member& m, const Up& up) {
  bool alive = m.stream.pump_in();
  try {
    while (auto message = m.stream.take()) {
      message->rank = m.rank;
      if (message->type == MessageType::join) m.attempt = message->number;
      if (message->type <= MessageType::join) up(*message);
    }
  } catch (const Error&) {
    alive = false;
  }
  if (alive) return;
  m.stream.close();
  up({MessageType::left, m.rank, m.attempt, ""});
}

void Relay::send(const Message& message) {
  for (Member& m : members_) {
    if (m.rank != message.rank) continue;
    m.stream.queue(message);
    m.stream.pump_out();
  }
}

void Relay::send_all(MessageType type) {
  for (Member& m : members_) {
    m.stream.queue({type, m.rank, 0, ""});
    m.stream.pump_out();
  }
}

}  // namespace assay::supervisor
