// SPDX-License-Identifier: Apache-2.0
// Several results files judged together: the segments of a soak, or the parts of a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "results/model.hpp"
#include "verdict/snapshot.hpp"

namespace assay::verdict {

/// A file that was joined, with the verdict of it alone.
struct JoinedRun {
  std::string file, run_id, started, level, state;
  int exit_code = 3;
  std::size_t fails = 0, warnings = 0;  ///< findings
};

/// Takes in the files one by one, each with its own verdict, and joins them:
///   state      the worst, by FAIL > INCONCLUSIVE > WARN > PASS, and its exit code
///   reasons    of its files, each with the file it comes from; before and after them the findings that
///              decide the state, in the order in which one file has them
///   findings   the same one (level, name, kind, suite, metric; without a metric also the text but for its
///              numbers) of several files once, with the worst deficit; those of one file are never the same;
///              text and evidence name the files and their number
///              with what parts lose from file to file while their peers do not (drift.hpp)
///   entities   the worst state of each, by kind and id; a node is no better than what drifts in it
///   basis      counts summed
///   chance     of one wrong FAIL or more in any of the files
///   counts     summed
class Join {
 public:
  void add(const std::string& file, const results::Results& results, const results::VerdictData& verdict);
  /// Notes that a file holds the same run as one that is added.
  void leave_out(const std::string& file, const std::string& same_as);

  /// `entities` and `info` only: what reports name. Rows of `verdict().entities` refer to it.
  const results::Results& results() const noexcept { return results_; }
  /// In the order they were added.
  const std::vector<JoinedRun>& runs() const noexcept { return runs_; }
  /// The same runs boiled down, by their start.
  std::vector<Snapshot> segments() const;
  /// Throws Error(internal) when nothing was added.
  results::VerdictData verdict(bool strict) const;

 private:
  struct Merged {
    results::Finding finding;
    std::vector<std::string> files;
    bool open = false;  ///< a file is INCONCLUSIVE for it
  };
  std::int32_t row_of(const results::Entity& entity);
  void take_entities(const results::Results& results, const results::VerdictData& verdict);
  void take_findings(const std::string& file, const results::VerdictData& verdict);
  void take_compared(const results::VerdictData& verdict);
  std::string basis() const;
  /// The states with those of what drifts, which is added to the findings.
  void add_drift(results::VerdictData& v) const;
  void locate(results::Finding& drift) const;
  void add_left_out(results::VerdictData& v) const;
  static void merge(Merged& known, const results::Finding& f, const std::string& file);

  results::Results results_;
  results::VerdictData verdict_;
  std::vector<JoinedRun> runs_;
  std::vector<Merged> findings_;
  std::map<std::string, std::int32_t> rows_;  ///< kind and id -> row
  std::map<std::int32_t, results::EntityState> states_;
  std::map<std::string, std::vector<std::size_t>> known_findings_;
  std::map<std::string, std::vector<std::string>> left_out_;  ///< by the file that counts
  std::vector<Snapshot> segments_;                            ///< of what drifts from file to file
  double log_none_wrong_ = 0;                                 ///< of the chance that no file has a wrong FAIL
};

}  // namespace assay::verdict
