// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "base/child_process.hpp"
#include "supervisor/heartbeat.hpp"
#include "supervisor/wire.hpp"

namespace assay::supervisor {

inline constexpr double status_every_s = 0.5;

/// Watches one worker: passes its messages up and the collector's down, and reports its death at once.
class Supervisor {
 public:
  using Up = std::function<void(const Message&)>;
  using Touch = std::function<void(const std::string& directory)>;
  /// `touch`: see SupervisorPlan.
  Supervisor(pid_t worker, int link, Heartbeat& heartbeat, int rank, Up up, Touch touch = {});
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// An order of the collector.
  void command(const Message& message);
  /// Serves worker, connection and timers; call when `link_fd` is readable, on SIGCHLD and ten times a
  /// second.
  void tend();
  int link_fd() const noexcept { return link_.fd(); }
  /// What to poll `link_fd` for.
  short link_events() const noexcept {
    return static_cast<short>((held_ ? 0 : POLLIN) | (link_.wants_out() ? POLLOUT : 0));
  }
  /// While held, it takes nothing more from the worker, which waits with the rest of its record.
  void hold(bool held) noexcept { held_ = held; }

  bool worker_ended() const noexcept { return ended_; }
  /// Ended without a goodbye and without an order of this process: by a signal, or by itself.
  bool worker_killed() const noexcept { return killed_; }
  /// It said goodbye with another code than 0.
  bool worker_left_with_error() const noexcept { return said_bye_ && bye_code_ != 0; }
  /// Ends the worker now, whatever it does.
  void kill_worker() noexcept;
  /// Ends the worker and waits up to `seconds` for its end. True when it is dead and a signal ended it: its
  /// destructors did not run.
  bool end_worker(double seconds);
  /// Exit code of this supervisor without an order of the collector.
  int own_code() const noexcept { return own_code_; }
  /// Address of the collector from the worker; empty until it is known.
  const std::string& address() const noexcept { return address_; }

 private:
  bool read_link();
  void reap();
  void begin_touch(const std::string& directory);
  void end_touch();
  void report_status(double now);
  void say(MessageType type, std::int32_t number, std::string text = "");

  pid_t worker_;
  Stream link_;
  Heartbeat& heartbeat_;
  int rank_;
  Up up_;
  Touch touch_;
  std::optional<ChildProcess> touching_;
  bool held_ = false, ended_ = false, said_bye_ = false, ordered_ = false, by_signal_ = false,
       killed_ = false;
  int bye_code_ = 0, own_code_ = 3;
  double bye_at_s_ = 0, status_at_s_ = 0, trace_at_s_ = 0, moved_at_s_ = 0;
  double core_wait_s_ = 0, starved_s_ = 0;  ///< of the worker in all; while it computed, since it moved
  Snapshot last_;
  std::string address_;
};

}  // namespace assay::supervisor
