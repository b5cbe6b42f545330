// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "supervisor/controller.hpp"
#include "supervisor/hang_attribution.hpp"
#include "supervisor/heartbeat.hpp"
#include "supervisor/wire.hpp"

namespace assay::supervisor {

/// A launcher that ends the job may have lost a host: silence from here on is enough.
inline constexpr double launcher_silence_s = 2.5;
/// Time in which the collector itself did not run for longer than this does not count as silence.
inline constexpr double own_stall_s = 1.0;
inline constexpr double trace_s = 1.6;
/// A late case hangs when none of its missing ranks made progress for this long.
inline constexpr double late_standstill_s = 6.0;
/// A library that sets a communicator up tells no progress: for so long, and this for each rank, that is no
/// hang. Longer than the ranks wait themselves (GpuLinks), which ends their case and not the run.
inline constexpr double set_up_s = 20.0, set_up_of_rank_s = 0.1;
/// A server of files that does not answer for longer is told.
inline constexpr double told_stall_s = 10.0;
/// For other nodes to tell whether it answers them.
inline constexpr double ask_s = 4.0;
/// A directory that no host has touched for 60 s counts as left behind.
inline constexpr double alive_s = 10.0;
/// Time for the running case to end after SIGUSR1 or SIGUSR2.
inline constexpr double usr_grace_s = 3.0;

/// Leads a run in rank 0's supervisor: hands out the cases, passes the ranks' records to the controller,
/// tracks the progress of all ranks, and ends the run when ranks hang. Uses no sockets and no processes, so
/// that it can be tested alone; time comes from the caller.
class Collector {
 public:
  using Send = std::function<void(int rank, const Message&)>;
  using Tell = std::function<void(const std::string& line)>;
  Collector(int ranks, Controller& controller, Send send, Tell tell, double now);

  void connected(int rank, const std::string& host, double now);
  /// The connection to a supervisor broke.
  void disconnected(int rank, double now);
  void handle(const Message& message, double now);
  void tend(double now);
  /// SIGUSR1 and SIGUSR2 let the running case end if it is short; others end the run at once.
  void stop(int signal, double now);

  bool over() const noexcept { return state_ == State::over; }
  int code() const noexcept { return code_; }
  bool everyone_connected() const noexcept;
  /// A supervisor stopped answering: its host is cut off or dead, and the launcher may wait for it without
  /// end.
  bool lost_a_host() const noexcept;
  /// Whether workers can still leave MPI together.
  bool in_order() const noexcept { return !any_lost_ && !idle_lost_; }

 private:
  enum class State { starting, measuring, asking, tracing, ending, over };
  struct Rank {
    bool connected = false, ready = false, said_bye = false, done = false;
    bool out = false;  ///< lost, or ended because of a loss
    bool lost = false;
    bool idle = false;    ///< takes no part; no rank waits for it
    bool silent = false;  ///< its supervisor does not answer; the end does not wait for it
    int code = 0;
    double heard_at_s = 0;
    std::string host;
    Snapshot at;
    bool has_record = false;
    std::string parts;  ///< of the start, ready or record that is under way
    std::string trace;
    std::string hung_at;                  ///< where it was when the hang was attributed to it
    double stalled_s = 0;                 ///< longest time in this case in which files did not answer it
    bool asked = false, touched = false;  ///< whether the directory answers its node
  };

  void take_part(const Message& message, double now);
  void take_start(const Message& message);
  void take_ready(const Message& message, double now);
  void begin_when_ready(double now);
  void take_record(const Message& message, double now);
  void take_bye(const Message& message, double now);
  void advance(double now);
  void end_case_if_all_arrived(double now);
  void discount_own_stall(double now);
  void check_silence(double now, double limit_s);
  void tell_silent_at_end(double now);
  void check_phase(double now);
  void check_time(double now);
  bool hangs(double now) const;
  bool waits_for_server(double now) const;
  bool sets_up(double now) const;
  void ask_others(const std::vector<MissingRank>& who, double now);
  void check_answers(double now);
  void end_unanswered(const std::set<std::string>& hosts, double now);
  void begin_trace_of(std::vector<int> ranks, double now);
  void note_stall(Rank& rank);
  void tell_stalls();
  double still_s(double now) const;
  std::vector<MissingRank> suspects(double now) const;
  void begin_trace(double now, const std::string& what);
  void end_stuck(const HangAttribution& found, double now);
  bool blame_who_left(double now);
  void end_trace(double now);
  void lose(int rank, const std::string& kind, const std::string& what, double now);
  void lose_together(const std::vector<Loss>& losses, bool each, double now);
  Loss loss_of(int rank, const std::string& kind, const std::string& what) const;
  void drop(const Loss& loss, double now);
  void note(const Loss& loss);
  void go_on(double now);
  void store_early_loss(const Loss& loss, bool first);
  void begin_segment(double now);
  void finish(const std::string& why);
  void end_run(const std::string& why, bool in_order, double now);
  void end_early(double now);
  std::vector<int> missing() const;
  std::string where(const Rank& rank) const;
  std::string who(int rank) const;
  template <typename Predicate>
  bool all_active(Predicate&& predicate) const;
  /// The same of what each rank brings once: ready, or the record of the case. True once.
  template <class Predicate>
  bool all_arrived(Predicate&& predicate);
  void send_all(MessageType type, int number, const std::string& text = "");

  Controller& controller_;
  Send send_;
  Tell tell_;
  std::vector<Rank> ranks_;
  State state_ = State::starting;
  int case_ = -1;
  std::size_t arrived_ = 0;  ///< ranks before it have brought what is waited for
  int code_ = 0;
  int stop_signal_ = 0;
  bool any_lost_ = false, idle_lost_ = false;
  std::string ready_text_;
  /// Before the first case.
  struct Phases {
    unsigned slowest = 0;  ///< of the ranks that take part
    double since_s = 0;
    std::array<double, phase_count + 1> most_began_s{};  ///< when most ranks began a phase; 0: not yet
  } phases_;
  double shown_at_s_ = 0;  ///< when other hosts were last shown that the run lives
  double begin_s_, listened_at_s_, ready_at_s_ = 0, case_deadline_at_s_ = 0, case_since_s_ = 0,
                                   state_since_s_ = 0, stop_at_s_ = 0, bye_at_s_ = 0;
  std::string hang_what_, why_;
  std::vector<int> at_fault_;
};

/// "signal 9 (Killed)"
std::string signal_text(int signal);
/// "was killed by signal 9 (Killed)" or "left with exit code 7" from a wait status.
std::string describe_wait_status(int status);

}  // namespace assay::supervisor
