// SPDX-License-Identifier: Apache-2.0
#include "supervisor/supervisor.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "supervisor/trace.hpp"

namespace assay::supervisor {
namespace {
constexpr double trace_wait_s = 1.0;
/// MPI_Finalize and destructors; beyond it a worker that said goodbye is ended.
constexpr double leave_s = 10.0;
}  // namespace

Supervisor::Supervisor(pid_t worker, int link, Heartbeat& heartbeat, int rank, Up up, Touch touch)
    : worker_(worker),
      link_(link, part_bytes),
      heartbeat_(heartbeat),
      rank_(rank),
      up_(std::move(up)),
      touch_(std::move(touch)),
      moved_at_s_(now_s()),
      core_wait_s_(core_wait_s(worker)) {}

Supervisor::~Supervisor() {
  if (touching_) touching_->kill(SIGKILL);  // not waited for: where a server hangs, that may not end it
}

void Supervisor::say(MessageType type, std::int32_t number, std::string text) {
  up_({type, rank_, number, std::move(text)});
}

void Supervisor::command(const Message& message) {
  switch (message.type) {
    case MessageType::address:
    case MessageType::started:
    case MessageType::step:
      link_.queue(message);
      link_.pump_out();
      break;
    case MessageType::trace_request:
      if (ended_) break;
      request_trace(heartbeat_, worker_);
      trace_at_s_ = now_s();
      break;
    case MessageType::touch: begin_touch(message.text); break;
    case MessageType::kill: kill_worker(); break;
    default: break;
  }
}

void Supervisor::begin_touch(const std::string& directory) {
  if (touching_) touching_->kill(SIGKILL);
  touching_.reset();
  try {
    touching_.emplace("a process that looks at " + directory, [&] {
      touch_(directory);
      return 0;
    });
  } catch (const Error&) {  // no process to be had, and no answer
  }
}

void Supervisor::end_touch() {
  if (!touching_ || !touching_->ended()) return;
  touching_.reset();
  say(MessageType::touched, 0);
}

void Supervisor::kill_worker() noexcept {
  if (ended_) return;
  ordered_ = true;
  ::kill(worker_, SIGKILL);
}

bool Supervisor::end_worker(double seconds) {
  kill_worker();
  for (const double begin = now_s(); !ended_ && now_s() - begin < seconds; ::usleep(1000)) {
    int status = 0;
    if (waitpid(worker_, &status, WNOHANG) != worker_) continue;
    ended_ = true;
    by_signal_ = WIFSIGNALED(status);
  }
  return ended_ && by_signal_;
}

void Supervisor::tend() {
  link_.pump_out();
  read_link();
  reap();
  end_touch();
  const double now = now_s();
  if (trace_at_s_ > 0 && (trace_answered(heartbeat_) || now - trace_at_s_ > trace_wait_s || ended_)) {
    trace_at_s_ = 0;
    say(MessageType::trace, 0, describe_trace(heartbeat_, worker_));
  }
  if (said_bye_ && !ended_ && now - bye_at_s_ > leave_s) kill_worker();
  report_status(now);
}

/// False when there was nothing to take.
bool Supervisor::read_link() {
  if (!link_.open() || held_) return false;
  const bool alive = link_.pump_in();
  bool any = false;
  try {
    while (auto message = link_.take()) {
      any = true;
      message->rank = rank_;
      if (message->type == MessageType::connect) {
        address_ = message->text;
        continue;
      }
      if (message->type == MessageType::bye) {
        said_bye_ = true;
        bye_code_ = message->number;
        bye_at_s_ = now_s();
      }
      up_(*message);
    }
  } catch (const Error&) {
    kill_worker();  // an invalid message means that the memory of the worker is damaged
  }
  if (!alive) link_.close();
  return any;
}

void Supervisor::reap() {
  if (ended_ || held_) return;
  int status = 0;
  if (waitpid(worker_, &status, WNOHANG) != worker_) return;
  while (read_link()) {  // what it said before it went
  }
  status_at_s_ = 0;
  report_status(now_s());  // where it was
  ended_ = true;
  by_signal_ = WIFSIGNALED(status);
  link_.close();
  if (said_bye_) {
    own_code_ = bye_code_;
    say(MessageType::done, bye_code_);
  } else if (ordered_) {
    say(MessageType::done, 3);
  } else {
    killed_ = true;
    say(MessageType::died, status);
  }
}

void Supervisor::report_status(double now) {
  if (ended_ || now - status_at_s_ < status_every_s) return;
  status_at_s_ = now;
  Snapshot s = read(heartbeat_);
  const double core_wait = core_wait_s(worker_);
  if (moved(last_, s)) {
    moved_at_s_ = now;
    starved_s_ = 0;
  } else if (may_compute(s.call) && may_compute(last_.call)) {
    starved_s_ += std::max(0.0, core_wait - core_wait_s_);
  }
  core_wait_s_ = core_wait;
  s.idle_s = std::max(0.0, now - moved_at_s_ - starved_s_);
  s.process_state = process_state(worker_);
  last_ = s;
  say(MessageType::status, 0, to_text(s));
}

}  // namespace assay::supervisor
