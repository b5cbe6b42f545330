// SPDX-License-Identifier: Apache-2.0
#include "supervisor/search.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/system.hpp"
#include "supervisor/handshake.hpp"

namespace assay::supervisor {

/// Of one attempt. The next begins before, so late that all ranks together are no flood: the collector takes
/// ten thousand a second.
constexpr double patience_s = 2.0;

Search::Search(std::string folder, int rank, int size)
    : folder_(std::move(folder)), job_(job_name()), rank_(rank), size_(size) {}

Stream Search::round(const std::string& told, double now) {
  if (now >= next_s_) {
    next_s_ = now + std::max(0.2, 1e-4 * size_);
    const auto address = told.empty() ? RendezvousFile::read(folder_, job_) : address_from(told);
    if (address) begin(*address, now);
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
  // A connection under way is ready to be written to when it stands; then the other end speaks first.
  for (const Try& t : tries_)
    fds.push_back({t.stream.fd(), static_cast<short>(POLLIN | (t.stream.wants_out() ? POLLOUT : 0)), 0});
}

void Search::begin(const Address& address, double now) {
  key_ = address.key;
  for (const auto& host : address.hosts) {
    const int fd = start_connect(host, address.port);
    if (fd >= 0) tries_.push_back({Stream(fd, most_handshake_bytes), "", random_token(), now});
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
        s.queue(hello(key_, attempt.challenge, attempt.own, rank_, size_, host_name()));
        s.pump_out();
        continue;
      }
      if (is_welcome(*message, key_, attempt.challenge, {rank_, "", attempt.own})) {
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
