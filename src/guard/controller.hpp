// SPDX-License-Identifier: Apache-2.0
// What the collector does with results. Implemented above (run/controller), called in rank 0's guardian.
#pragma once

#include <string>
#include <vector>

namespace assay::guard {

/// A rank that will not come back, and why.
struct Loss {
  int rank = -1;
  /// "lost" (its process or node is gone), "hang" (it did not arrive in time) or "stuck" (it waits, and is
  /// not to blame)
  std::string kind;
  std::string brief;  ///< "rank 3 on node07 was killed by signal 9 (Killed)"
  std::string text;   ///< brief and where it was, one line: phase, case, iteration, whom it waited for
  std::string trace;  ///< stack of the stuck thread; empty when there is none
};

struct Step {
  int case_index = -1;        ///< -1: nothing is left to run
  double deadline_s = 0;      ///< seconds that the case may take
  bool segment_ends = false;  ///< this file is complete, and the run goes on with another
  std::string text = {};      ///< what the ranks are told with the case
};

class Controller {
 public:
  virtual ~Controller() = default;

  /// What rank 0 found out with the others: makes the plan and takes the lock on the output. A second time
  /// before `ready` where the ranks had to plan anew. Throws Error.
  virtual void start(const std::string& text) = 0;
  /// True between `start` and `finish` or `discard`.
  virtual bool started() const noexcept = 0;
  /// All ranks are ready to measure; `text` is what rank 0 said with it.
  virtual void ready(const std::string& text) = 0;
  /// The next case to run; stores those that are skipped on the way. Throws Error(io).
  virtual Step next() = 0;
  /// Stores an ended case. `records` by rank; empty = the rank is lost. Throws Error.
  virtual void store(int case_index, const std::vector<std::string>& records) = 0;
  /// A rank is lost while `case_index` runs (-1: none). The ranks that cannot go on without it, itself among
  /// them; everyone when the whole run cannot.
  virtual std::vector<int> lost(const Loss& loss, int case_index) = 0;
  virtual void event(const std::string& kind, const std::string& text, int rank) noexcept = 0;
  /// Judges, closes the file and reports. `why` the run ended early; empty when it is complete. The exit
  /// code.
  virtual int finish(const std::string& why, int case_index) = 0;
  /// Nothing was measured: leaves no trace.
  virtual void discard() noexcept = 0;

  /// What a rank's record says went wrong on it; empty when nothing did.
  virtual std::string complaint(const std::string& record) const = 0;
  /// For people: what a case is called.
  virtual std::string case_name(int case_index) const = 0;
  /// Seconds that a phase before the first case may take, by its place in guard::Phase.
  virtual double phase_deadline_s(unsigned phase) const = 0;
  /// Seconds after which a case in which all wait for somebody and none moves hangs, even if it is not late
  /// yet.
  virtual double standstill_s() const = 0;
  /// Seconds from the first case on that the whole run may take, whatever its cases do.
  virtual double run_deadline_s() const = 0;
};

}  // namespace assay::guard
