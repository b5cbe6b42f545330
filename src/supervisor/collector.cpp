// SPDX-License-Identifier: Apache-2.0
#include "supervisor/collector.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/exit_code.hpp"

namespace assay::supervisor {
namespace {

constexpr double bye_grace_s = 5.0;
/// For workers to leave MPI; their supervisors end them a little earlier.
constexpr double ending_s = 12.0;

}  // namespace

std::string describe_wait_status(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by {}", signal_text(WTERMSIG(status)));
  return fmt::format("exited early with code {}", WEXITSTATUS(status));
}

std::string signal_text(int signal) { return fmt::format("signal {} ({})", signal, strsignal(signal)); }

Collector::Collector(int ranks, Controller& controller, Send send, Tell tell, double now)
    : controller_(controller),
      send_(std::move(send)),
      tell_(std::move(tell)),
      ranks_(static_cast<std::size_t>(ranks)),
      phases_{0, now, {}},
      begin_s_(now),
      listened_at_s_(now) {}

template <typename Predicate>
bool Collector::all_active(Predicate&& predicate) const {
  return std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& r) { return r.out || predicate(r); });
}

/// Asked for each of thousands of messages: ranks that are known to have it are not looked at again.
template <class Predicate>
bool Collector::all_arrived(Predicate&& predicate) {
  const auto at = [&] { return ranks_.begin() + static_cast<std::ptrdiff_t>(arrived_); };
  while (arrived_ < ranks_.size() && (at()->out || predicate(*at()))) ++arrived_;
  if (arrived_ < ranks_.size()) return false;
  arrived_ = 0;
  return true;
}

bool Collector::everyone_connected() const noexcept {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.connected; });
}

bool Collector::lost_a_host() const noexcept {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [this](const Rank& r) { return r.silent && r.host != ranks_.front().host; });
}

void Collector::send_all(MessageType type, int number, const std::string& text) {
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (ranks_[r].connected && (!ranks_[r].out || ranks_[r].idle || type == MessageType::kill))
      send_(static_cast<int>(r), {type, -1, number, text});
}

void Collector::connected(int rank, const std::string& host, double now) {
  Rank& r = ranks_[static_cast<std::size_t>(rank)];
  r.connected = true;
  r.host = host;
  r.heard_at_s = now;
  if (state_ == State::ending || (r.out && !r.idle)) send_(rank, {MessageType::kill, -1, 0, ""});
}

void Collector::disconnected(int rank, double now) {
  Rank& r = ranks_[static_cast<std::size_t>(rank)];
  const bool was_done = r.done;
  r.connected = false;
  r.done = true;
  idle_lost_ = idle_lost_ || (r.idle && !was_done);
  if (!was_done && state_ != State::ending) lose(rank, "lost", "is gone, and its supervisor with it", now);
}

void Collector::handle(const Message& m, double now) {
  Rank& r = ranks_[static_cast<std::size_t>(m.rank)];
  r.heard_at_s = now;
  const bool of_worker =
      m.type == MessageType::start || m.type == MessageType::ready || m.type == MessageType::record;
  if (of_worker && !r.parts.empty()) {
    handle({m.type, m.rank, m.number, std::exchange(r.parts, {}) + m.text}, now);
    return;
  }
  switch (m.type) {
    case MessageType::part: take_part(m, now); break;
    case MessageType::status:
      from_text(m.text, r.at);
      note_stall(r);
      break;
    case MessageType::touched: r.touched = true; break;
    case MessageType::start: take_start(m); break;
    case MessageType::ready: take_ready(m, now); break;
    case MessageType::idle:
      r.idle = r.out = true;
      begin_when_ready(now);
      break;
    case MessageType::record: take_record(m, now); break;
    case MessageType::bye: take_bye(m, now); break;
    case MessageType::trace: r.trace = m.text; break;
    case MessageType::stop_request: stop(m.number, now); break;
    case MessageType::done: r.done = true; break;
    case MessageType::died:
      r.done = true;
      idle_lost_ = idle_lost_ || r.idle;
      if (state_ != State::ending && !r.out) lose(m.rank, "lost", describe_wait_status(m.number), now);
      break;
    default: break;  // what only the collector says
  }
}

void Collector::take_part(const Message& m, double now) {
  Rank& r = ranks_[static_cast<std::size_t>(m.rank)];
  if (r.out || m.text.empty()) return;
  if (r.parts.size() + m.text.size() <= most_text_bytes) {
    r.parts += m.text;
    return;
  }
  r.parts = {};
  lose(m.rank, "lost", fmt::format("sent more than {} MiB at once", most_text_bytes >> 20), now);
}

void Collector::take_start(const Message& m) {
  Message reply{MessageType::started, -1, -1, ""};
  try {
    controller_.start(m.text);
  } catch (const Error& e) {
    reply.number = static_cast<int>(e.kind());
    reply.text = e.what();
  } catch (const std::exception& e) {
    reply.number = static_cast<int>(ErrorKind::internal);
    reply.text = e.what();
  }
  send_(m.rank, reply);
}

void Collector::take_ready(const Message& m, double now) {
  Rank& r = ranks_[static_cast<std::size_t>(m.rank)];
  r.ready = true;
  if (!m.text.empty()) ready_text_ = m.text;  // the text of the first rank that takes part stands for all
  begin_when_ready(now);
}

void Collector::begin_when_ready(double now) {
  if (state_ != State::starting || !all_arrived([](const Rank& x) { return x.ready; })) return;
  state_ = State::measuring;
  ready_at_s_ = now;
  try {
    controller_.ready(std::exchange(ready_text_, ""));
  } catch (const std::exception& e) {
    end_run(e.what(), in_order(), now);
    return;
  }
  advance(now);
}

void Collector::take_record(const Message& m, double now) {
  Rank& r = ranks_[static_cast<std::size_t>(m.rank)];
  if (m.number != case_ || r.out) return;
  r.has_record = true;
  try {
    controller_.take(m.rank, m.text);
  } catch (const std::exception& e) {
    end_run(e.what(), in_order(), now);
    return;
  }
  if (state_ == State::measuring) end_case_if_all_arrived(now);
}

void Collector::take_bye(const Message& m, double now) {
  Rank& r = ranks_[static_cast<std::size_t>(m.rank)];
  r.said_bye = true;
  r.code = m.number;
  if (bye_at_s_ == 0) bye_at_s_ = now;
}

void Collector::end_case_if_all_arrived(double now) {
  if (case_ < 0 || !all_arrived([](const Rank& r) { return r.has_record; })) return;
  std::vector<int> ranks;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i].out) ranks.push_back(static_cast<int>(i));
    ranks_[i].has_record = false;
  }
  tell_stalls();
  const int ended = case_;
  case_ = -1;
  try {
    controller_.store(ended, ranks);
  } catch (const std::exception& e) {
    end_run(e.what(), in_order(), now);
    return;
  }
  advance(now);
}

void Collector::advance(double now) {
  if (stop_signal_ != 0) {
    end_run(fmt::format("ended by {}", signal_text(stop_signal_)), in_order(), now);
    return;
  }
  Step step;
  try {
    step = controller_.next();
  } catch (const std::exception& e) {
    end_run(e.what(), in_order(), now);
    return;
  }
  if (step.segment_ends && !any_lost_) {
    begin_segment(now);
    return;
  }
  if (step.case_index < 0) {
    end_run(why_, in_order(), now);
    return;
  }
  case_ = step.case_index;
  case_deadline_at_s_ = now + step.deadline_s;
  case_since_s_ = now;
  send_all(MessageType::step, case_, step.text);
}

/// Closes one file of a chain and lets the ranks plan the next.
void Collector::begin_segment(double now) {
  finish("");
  if (controller_.started()) {  // it could not be closed: another start would remove what was measured
    state_ = State::ending;
    state_since_s_ = now;
    send_all(MessageType::step, no_more_cases);
    return;
  }
  for (Rank& r : ranks_) r.ready = false;
  state_ = State::starting;
  ready_at_s_ = 0;
  phases_ = {0, now, {}};
  send_all(MessageType::step, next_segment);
}

/// While this process wrote to a slow disk, or was not scheduled, it read no messages: they may still be in
/// the sockets.
void Collector::discount_own_stall(double now) {
  const double away_s = now - listened_at_s_;
  listened_at_s_ = now;
  if (away_s < own_stall_s) return;
  const auto discount = [&](double& since_s) { since_s = std::min(now, since_s + away_s); };
  for (Rank& r : ranks_) discount(r.heard_at_s);
  discount(case_since_s_);  // else a silent rank's partners stand still first
  discount(phases_.since_s);
  case_deadline_at_s_ += away_s;
  if (state_ == State::asking || state_ == State::tracing || state_ == State::ending)
    discount(state_since_s_);
  if (bye_at_s_ > 0) discount(bye_at_s_);
}

void Collector::tend(double now) {
  discount_own_stall(now);
  if (now - shown_at_s_ >= alive_s) {
    controller_.show_alive();
    shown_at_s_ = now;
  }
  switch (state_) {
    case State::starting:
      check_silence(now, controller_.silence_s());
      check_phase(now);
      end_early(now);
      break;
    case State::measuring:
      check_silence(now, controller_.silence_s());
      check_time(now);
      end_early(now);
      break;
    case State::asking: check_answers(now); break;
    case State::tracing:
      if (now - state_since_s_ > trace_s || std::all_of(at_fault_.begin(), at_fault_.end(), [this](int i) {
            const Rank& r = ranks_[static_cast<std::size_t>(i)];
            return r.out || !r.connected || !r.trace.empty();
          }))
        end_trace(now);
      break;
    case State::ending:
      if (std::all_of(ranks_.begin(), ranks_.end(),
                      [](const Rank& r) { return r.done || r.silent || !r.connected; })) {
        state_ = State::over;
      } else if (now - state_since_s_ > ending_s) {
        tell_silent_at_end(now);
        state_ = State::over;
      }
      break;
    case State::over: break;
  }
}

/// Supervisors report until their worker has ended. The launcher waits for the hosts of those that do not.
void Collector::tell_silent_at_end(double now) {
  std::set<std::string> hosts;
  for (Rank& r : ranks_) {
    if (!r.connected || r.done || r.silent || now - r.heard_at_s <= controller_.silence_s() / 2) continue;
    r.silent = true;
    hosts.insert(r.host);
  }
  if (!hosts.empty()) tell_(fmt::format("no message from {} while the run ended", fmt::join(hosts, ", ")));
}

void Collector::stop(int signal, double now) {
  if (state_ == State::ending || state_ == State::over) return;
  if (stop_signal_ == 0) stop_at_s_ = now;
  stop_signal_ = signal;
  const bool gently = signal == SIGUSR1 || signal == SIGUSR2;
  // A launcher that ends the job may have lost a host itself, a little before we would have.
  discount_own_stall(now);
  if (!gently) check_silence(now, launcher_silence_s);
  if (state_ == State::ending) return;
  if (!gently || ready_at_s_ == 0) end_run(fmt::format("ended by {}", signal_text(signal)), false, now);
}

/// Workers that leave before the run is over: all of them after an error they agreed on, or some by a bug.
void Collector::end_early(double now) {
  if (bye_at_s_ == 0 || state_ == State::ending) return;
  const bool everyone = all_active([](const Rank& r) { return r.said_bye; });
  if (!everyone && now - bye_at_s_ < bye_grace_s) return;
  if (!everyone) {
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (ranks_[i].said_bye && !ranks_[i].out)
        lose(static_cast<int>(i), "lost", fmt::format("left early with exit code {}", ranks_[i].code), now);
    return;
  }
  int code = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    code = std::max(code, ranks_[i].code);
    if (ranks_[i].idle && ranks_[i].connected)
      send_(static_cast<int>(i), {MessageType::step, -1, no_more_cases, ""});
  }
  code_ = worse_code(code_, code);  // an earlier segment may have a verdict
  if (ready_at_s_ > 0) return end_run(fmt::format("all ranks left with exit code {}", code), true, now);
  if (controller_.started()) controller_.discard();
  state_ = State::ending;
  state_since_s_ = now;
}

void Collector::end_run(const std::string& why, bool in_order, double now) {
  if (state_ == State::ending || state_ == State::over) return;
  state_ = State::ending;
  state_since_s_ = now;
  if (in_order)
    send_all(MessageType::step, no_more_cases);
  else
    send_all(MessageType::kill, 0);
  if (!any_lost_ && !why.empty()) tell_("ended early: " + why);  // a loss has been told already
  if (controller_.started())
    finish(why);
  else
    code_ = worse_code(code_, 3);
}

void Collector::finish(const std::string& why) {
  try {
    code_ = worse_code(code_, controller_.finish(why, case_));
  } catch (const Error& e) {
    tell_(e.what());
    code_ = worse_code(code_, e.kind() == ErrorKind::internal ? 5 : 3);
  } catch (const std::exception& e) {
    tell_(fmt::format("internal error: {}", e.what()));
    code_ = worse_code(code_, 5);
  }
}

}  // namespace assay::supervisor
