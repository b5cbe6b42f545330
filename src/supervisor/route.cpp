// SPDX-License-Identifier: Apache-2.0
#include "supervisor/route.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include "base/error.hpp"
#include "supervisor/connections.hpp"

namespace assay::supervisor {
namespace {

constexpr unsigned unacknowledged_ms = 8000;

/// Whether the machine at the other end is cut off: what is sent twice a second was repeated without an
/// answer. TCP_USER_TIMEOUT would also end the connection to a collector that runs late: its window is closed
/// for longer, but its kernel answers. Always false of a Unix socket.
bool cut_off(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_retransmits + info.tcpi_probes >= 3 && info.tcpi_last_ack_recv > unacknowledged_ms;
}

}  // namespace

void Route::watch(std::vector<pollfd>& fds) const {
  if (line_.open())
    fds.push_back({line_.fd(), static_cast<short>(POLLIN | (line_.wants_out() ? POLLOUT : 0)), 0});
  else
    search_.watch(fds);
  if (relay_) relay_->watch(fds, relay_reads());
}

void Route::serve(const std::string& told, double now, const Take& take) {
  // While this process did not run, it heard nobody.
  const double away_s = now - std::exchange(served_at_s_, now);
  if (away_s > relay_limit_s / 4) heard_at_s_ += away_s, adrift_at_s_ += away_s;
  if (line_.open())
    read(now, take);
  else if (!lost_)
    find(told, now);
  if (relay_) relay_->serve(now, relay_reads(), [this](const Message& m) { pass_on(m); });
  if (!reports_.empty() && now - reports_since_s_ >= reports_wait_s) pass_on_reports();
  if (line_.open()) line_.pump_out();
  if (met_ && !joined_ && !lost_ && now - adrift_at_s_ > takeover_s) lose();
}

void Route::find(const std::string& told, double now) {
  line_ = search_.round(told, now);
  if (const int socket = search_.take_listener(); socket >= 0)
    relay_ = std::make_unique<Relay>(socket, search_.key(), place_.size, place_.node_ranks - 1);
  if (!line_.open()) return;
  by_relay_ = search_.found_relay();
  heard_at_s_ = now;
  line_.queue({MessageType::join, place_.rank, ++attempt_, place_.host, 0, delivery_.received()});
  line_.pump_out();
}

void Route::read(double now, const Take& take) {
  bool alive = line_.pump_out() && line_.pump_in();
  try {
    while (const auto message = line_.take()) {
      heard_at_s_ = now;
      this->take(*message, take);
    }
  } catch (const Error&) {
    alive = false;
  }
  if (!alive || (by_relay_ ? now - heard_at_s_ > relay_limit_s : cut_off(line_.fd()))) broke(now);
}

void Route::take(const Message& message, const Take& take) {
  if (message.type == MessageType::beat) return;
  if (message.type == MessageType::collector_gone) {
    lose();
  } else if (message.rank != place_.rank) {
    if (relay_) relay_->send(message);
  } else if (message.type == MessageType::joined) {
    if (message.number != attempt_) return;
    joined_ = met_ = true;
    left_.clear();
    delivery_.send_again(message.received, [this](Message again) { queue(std::move(again)); });
  } else if (delivery_.take(message)) {
    take(message);
  }
}

void Route::queue(Message message) {
  message.rank = place_.rank;
  pass_on(message);
}

/// Other messages take the reports before them along, so that all arrive in order.
void Route::pass_on(const Message& message) {
  if (!relay_ || message.type != MessageType::status) {
    pass_on_reports();
    line_.queue(message);
    return;
  }
  if (reports_.empty()) reports_since_s_ = served_at_s_;
  std::erase_if(reports_, [&](const Message& report) { return report.rank == message.rank; });
  reports_.push_back(message);
}

void Route::pass_on_reports() {
  for (const Message& report : reports_) line_.queue(report);
  reports_.clear();
}

void Route::send(Message message) {
  const bool status = message.type == MessageType::status;
  if (status && !joined_) return;
  message = delivery_.number(std::move(message));
  if (!joined_) return;
  queue(std::move(message));
  line_.pump_out();
}

/// A relay that is left may run on: it must not report this rank as gone before the collector knows another
/// way to it.
void Route::broke(double now) {
  if (joined_ && !by_relay_) return lose();
  if (joined_) adrift_at_s_ = now;
  joined_ = false;
  if (by_relay_) left_.push_back(std::move(line_));
  line_.close();
  reports_.clear();
  search_.restart(now, relay_ == nullptr);
}

void Route::lose() {
  lost_ = true;
  joined_ = false;
  line_.close();
  if (relay_) relay_->send_all(MessageType::collector_gone);
}

}  // namespace assay::supervisor
