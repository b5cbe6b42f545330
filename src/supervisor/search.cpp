// SPDX-License-Identifier: Apache-2.0
#include "supervisor/search.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "supervisor/handshake.hpp"

namespace assay::supervisor {

/// Of one attempt. The next begins before, so late that all ranks together are no flood: the collector takes
/// ten thousand a second.
constexpr double patience_s = 2.0;
constexpr double again_s = 0.2;
/// For the process on this node's socket to answer: at the start, and after a relay was lost.
constexpr double local_patience_s = 3.0, local_patience_again_s = 1.0;

Search::Search(std::string folder, Place place)
    : folder_(std::move(folder)),
      job_(job_name()),
      place_(std::move(place)),
      by_node_(place_.node_ranks > 1) {}

Search::~Search() {
  if (listener_ >= 0) close(listener_);
}

int Search::take_listener() noexcept { return std::exchange(listener_, -1); }

void Search::restart(double now, bool relay_allowed) noexcept {
  by_node_ = relay_allowed && place_.node_ranks > 1;
  again_ = true;
  asked_s_ = 0;
  next_s_ = next_direct_s_ = now;
}

Stream Search::round(const std::string& told, double now) {
  if (now >= next_s_) {
    next_s_ = now + again_s;
    std::optional<Address> address;
    if (!told.empty()) {
      address = address_from(told);
    } else if (!again_ && now >= next_read_s_) {  // later it is removed
      next_read_s_ = now + std::max(again_s, 1e-4 * place_.size);
      address = RendezvousFile::read(folder_, job_);
    }
    if (address) address_ = std::move(address);
    if (address_ && goes_direct(now)) begin(now);
  }
  for (Try& attempt : tries_)
    if (answered(attempt)) {
      Stream found = std::move(attempt.stream);
      tries_.clear();
      return found;
    }
  std::erase_if(tries_, [&](const Try& t) { return !t.stream.open() || now - t.begun_s > patience_s; });
  return Stream();
}

void Search::watch(std::vector<pollfd>& fds) const {
  // A connection under way is ready to be written to when it is established; then the other end sends first.
  for (const Try& t : tries_)
    fds.push_back({t.stream.fd(), static_cast<short>(POLLIN | (t.stream.wants_out() ? POLLOUT : 0)), 0});
}

bool Search::goes_direct(double now) {
  if (!by_node_) return true;
  if (asked_s_ > 0 && now - asked_s_ > (again_ ? local_patience_again_s : local_patience_s))
    return !(by_node_ = false);  // it may be stopped
  if (std::any_of(tries_.begin(), tries_.end(), [](const Try& t) { return t.local; })) return false;
  const std::string name = node_socket_name(address_->key, place_.host);
  const int fd = connect_local(name);
  if (fd >= 0) {
    if (asked_s_ == 0) asked_s_ = now;
    tries_.push_back({Stream(fd, most_handshake_bytes), "", random_token(), now, true});
    return false;
  }
  if (errno == ECONNREFUSED) {
    listener_ = listen_local(name);
    if (listener_ < 0 && errno == EADDRINUSE) return false;  // another was faster
  }
  return !(by_node_ = false);
}

void Search::begin(double now) {
  if (now < next_direct_s_) return;
  // At the start, all nodes search together.
  next_direct_s_ = now + (again_ ? again_s : std::max(again_s, 1e-4 * place_.size / place_.node_ranks));
  for (const auto& host : address_->hosts) {
    const int fd = start_connect(host, address_->port);
    if (fd >= 0) tries_.push_back({Stream(fd, most_handshake_bytes), "", random_token(), now, false});
  }
}

bool Search::answered(Try& attempt) {
  Stream& s = attempt.stream;
  pollfd p{s.fd(), static_cast<short>(POLLIN | (s.wants_out() ? POLLOUT : 0)), 0};
  if (poll(&p, 1, 0) <= 0) return false;
  try {
    if ((p.revents & (POLLERR | POLLHUP)) != 0 || !s.pump_out() || !s.pump_in()) {
      s.close();
      return false;
    }
    while (const auto message = s.take()) {
      if (message->type == MessageType::challenge && attempt.challenge.empty()) {
        attempt.challenge = message->text;
        s.queue(hello(address_->key, attempt.challenge, attempt.own, place_.rank, place_.size, place_.host));
        s.pump_out();
        continue;
      }
      if (is_welcome(*message, address_->key, attempt.challenge, {place_.rank, "", attempt.own})) {
        found_relay_ = message->number == static_cast<std::int32_t>(Host::relay);
        s.allow_large();
        return true;
      }
      s.close();  // another process listens there
      return false;
    }
  } catch (const Error&) {
    s.close();
  }
  return false;
}

}  // namespace assay::supervisor
