// SPDX-License-Identifier: Apache-2.0
// What the collector does with results. Implemented above (run/controller), called in rank 0's supervisor.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::supervisor {

/// A rank that will not come back, and why.
struct Loss {
  int rank = -1;
  /// "lost" (its process or node is gone), "hang" (no progress in time) or "stuck" (it waits and is not at
  /// fault)
  std::string kind;
  std::string brief;      ///< "rank 3 on node07 was killed by signal 9 (Killed)"
  std::string text;       ///< brief and position, one line: phase, case, iteration, awaited rank
  std::string trace;      ///< stack of the stuck thread; empty when there is none
  std::string path = {};  ///< a shared directory that does not answer, which is to blame
};

struct Step {
  int case_index = -1;        ///< -1: nothing is left to run
  double deadline_s = 0;      ///< seconds that the case may take
  bool segment_ends = false;  ///< this file is complete, and the run continues with another
  std::string text = {};      ///< sent to the ranks with the case
};

class Controller {
 public:
  virtual ~Controller() = default;

  /// Takes rank 0's description of the job: makes the plan and locks the output. Called again before `ready`
  /// when the ranks plan again. Throws Error.
  virtual void start(const std::string& text) = 0;
  /// A rank is lost before `start`: makes an output without a plan, so that the loss has a row. `hosts` by
  /// rank, empty where unknown. Throws Error.
  virtual void start_without_plan(const std::vector<std::string>& hosts) = 0;
  /// True between `start` and `finish` or `discard`.
  virtual bool started() const noexcept = 0;
  /// All ranks are ready to measure; `text` is rank 0's. Throws Error.
  virtual void ready(const std::string& text) = 0;
  /// The next case to run; stores those that are skipped on the way. Throws Error(io).
  virtual Step next() = 0;
  /// The record of a rank about the running case, as it arrives. Throws Error.
  virtual void take(int rank, const std::string& record) = 0;
  /// Stores an ended case: the records taken of `ranks`, ascending; the others are lost. Throws Error.
  virtual void store(int case_index, const std::vector<int>& ranks) = 0;
  /// A rank is lost while `case_index` runs (-1: none). Returns the ranks that cannot continue without it,
  /// itself included; all if the run cannot.
  virtual std::vector<int> lost(const Loss& loss, int case_index) = 0;
  virtual void event(const std::string& kind, const std::string& text, int rank) noexcept = 0;
  /// Every few seconds: shows other hosts that the run lives.
  virtual void show_alive() noexcept = 0;
  /// Judges, closes the file and reports. `why` the run ended early; empty when it is complete. The exit
  /// code.
  virtual int finish(const std::string& why, int case_index) = 0;
  /// False where that code is worse than the one in the file, because a report could not be written.
  virtual bool code_is_in_file() const noexcept { return true; }
  /// The ranks left before `ready`, nothing was measured: removes the output.
  virtual void discard() noexcept = 0;

  /// The error in the record taken of a rank; empty without one.
  virtual std::string complaint(int rank) const = 0;
  /// Whether each node measures the case by itself.
  virtual bool inside_nodes(int case_index) const = 0;
  /// Name of a case in messages.
  virtual std::string case_name(int case_index) const = 0;
  /// Seconds that a phase before the first case may take, by its place in supervisor::Phase. `usual_s`: what
  /// most ranks took for it, if they have.
  virtual double phase_deadline_s(unsigned phase, std::optional<double> usual_s) const = 0;
  /// A supervisor reports twice a second. Seconds without a report after which its host counts as dead or cut
  /// off.
  virtual double silence_s() const = 0;
  /// Seconds without progress after which a case hangs in which all ranks wait, even if it is not late.
  virtual double standstill_s() const = 0;
  /// The directories that the case works in; empty where there are none.
  virtual std::string directories(int case_index) const = 0;
  /// The directory that all nodes share and the case works in; empty where there is none.
  virtual std::string shared_path(int case_index) const = 0;
  /// Seconds that the server of such a directory may take for an answer.
  virtual double server_standstill_s() const = 0;
  /// The server of such a directory did not answer for a while, and then did.
  virtual void stalled(int case_index, const std::string& text) noexcept = 0;
  /// Longest duration of the run from the first case on, in s.
  virtual double run_deadline_s() const = 0;
};

}  // namespace assay::supervisor
