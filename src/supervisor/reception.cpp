// SPDX-License-Identifier: Apache-2.0
#include "supervisor/reception.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "supervisor/handshake.hpp"

namespace assay::supervisor {

/// At most so many connections are taken in one look, so that a flood does not keep the collector from its
/// ranks, and more of those who are about to answer stay than are given up meanwhile.
constexpr int most_at_once = Reception::most_pending / 2;

Reception::Reception(bool loopback_only, Address& address, int ranks, int connections,
                     const std::string& host)
    : sockets_(listen_on(loopback_only, address)),
      local_socket_(listen_local(node_socket_name(address.key, host))),
      key_(address.key),
      ranks_(ranks),
      to_come_(static_cast<std::size_t>(connections)) {}

Reception::Reception(int socket, std::string key, int ranks, int connections)
    : local_socket_(socket),
      host_(Host::relay),
      key_(std::move(key)),
      ranks_(ranks),
      to_come_(static_cast<std::size_t>(connections)) {}

Reception::~Reception() {
  close();
  for (const int fd : sockets_) ::close(fd);
}

void Reception::watch(std::vector<pollfd>& fds) const {
  if (!listening_) return;
  if (local_socket_ >= 0) fds.push_back({local_socket_, POLLIN, 0});
  for (const int fd : sockets_) fds.push_back({fd, POLLIN, 0});
  for (const PendingConnection& s : pending_)
    fds.push_back({s.stream.fd(), static_cast<short>(POLLIN | (s.stream.wants_out() ? POLLOUT : 0)), 0});
}

void Reception::take_in(double now) {
  std::vector<int> sockets = sockets_;
  if (local_socket_ >= 0) sockets.push_back(local_socket_);
  for (const int socket : sockets) {
    for (int i = 0, fd;
         i < most_at_once && (fd = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;
         ++i) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      PendingConnection pending{Stream(fd, most_handshake_bytes), random_token(), now};
      pending.stream.queue(challenge(pending.challenge));
      if (!pending.stream.pump_out()) continue;
      // At the limit any pending connection is closed, not the oldest: in a flood the oldest is soon a
      // supervisor that is about to answer.
      if (pending_.size() < most_pending + to_come_)
        pending_.push_back(std::move(pending));
      else
        pending_[mix64(hash_text(pending.challenge), ++draws_) % pending_.size()] = std::move(pending);
    }
  }
}

void Reception::serve(double now, const Enter& enter) {
  if (!listening()) return;
  // Pending connections come before new ones: an answer that has arrived is read.
  for (PendingConnection& s : pending_) introduce(s, now, enter);
  std::erase_if(pending_, [](const PendingConnection& s) { return !s.stream.open(); });
  take_in(now);
}

void Reception::introduce(PendingConnection& pending, double now, const Enter& enter) {
  try {
    const bool alive = pending.stream.pump_out() && pending.stream.pump_in();
    const auto message = pending.stream.take();
    if (!message) {
      if (!alive || now - pending.since_s > introduce_s) pending.stream.close();
      return;
    }
    const auto guest = guest_of(*message, key_, pending.challenge, ranks_);
    if (!guest) {
      pending.stream.close();
      return;
    }
    pending.stream.allow_large();
    if (to_come_ > 0) --to_come_;
    pending.stream.queue(welcome(key_, pending.challenge, *guest, host_));
    pending.stream.pump_out();
    enter(guest->rank, guest->host, std::move(pending.stream));
  } catch (const Error&) {
    pending.stream.close();
  }
}

void Reception::close() noexcept {
  if (!std::exchange(listening_, false)) return;
  for (const int fd : sockets_) shutdown(fd, SHUT_RD);  // refuses connections from here on
  if (local_socket_ >= 0) ::close(std::exchange(local_socket_, -1));
  pending_.clear();
}

void Reception::listen_again() noexcept {
  listening_ = true;
  for (const int fd : sockets_) listen(fd, most_in_line);
}

}  // namespace assay::supervisor
