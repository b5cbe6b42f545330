// SPDX-License-Identifier: Apache-2.0
// An earlier fleet as the reference, also for a node that is tested alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "verdict/snapshot.hpp"

namespace assay::verdict {

struct Judgement;

/// The median part of one metric and stratum.
struct BaselineValue {
  std::string metric;  ///< suite/case:metric
  std::string case_key, stratum;
  double log_rate = 0,
         spread = 0;  ///< of the parts' medians over the runs; robust sigma between them, 0 for under 3
  std::int64_t parts = 0;
  double range = 0;  ///< of the parts' medians: from slowest to fastest, of six or more between quartiles; 0
                     ///< of links, whose paths may differ
};

/// A collective, or another metric that several ranks share, by the number of its ranks.
struct BaselineTotal {
  std::string metric, case_key;
  double log_rate = 0, spread = 0;  ///< median of the runs; robust sigma between them, 0 for under 3
  std::int64_t ranks = 0, runs = 0;
};

struct Baseline {
  std::string name;  ///< as given: --baseline
  std::vector<RunSource> runs;
  std::vector<std::string> injected;  ///< files with injected faults
  std::vector<BaselineValue> values;
  std::vector<BaselineTotal> totals;
};

/// Medians over the parts of their medians over the runs, so that a few bad nodes do not move it.
Baseline baseline_of(const std::vector<Snapshot>& runs, const std::string& name);
/// Of collectives (baseline_totals.cpp).
std::vector<BaselineTotal> baseline_totals_of(const std::vector<Snapshot>& runs);

/// Runs with their hashes, and the values themselves, so that the verdict can be repeated without the files.
Json baseline_json(const Baseline& baseline);
/// Throws Error(data) for what `baseline_json` did not write.
Baseline baseline_from(const Json& json);

/// Magnitude against the baseline of the same case_key and stratum: FAIL beyond the delta of the metric's
/// class when confirmed, WARN beyond 2 % and beyond what the baseline's own parts differ. More than half of a
/// population below is one finding. Values with another case_key or stratum than the baseline have no
/// reference; findings name them, also where only some parts of a metric have one.
void judge_baseline(Judgement& j, const Snapshot& now);
/// WARN of the cluster, or of the node whose ranks share the value; beyond `network_gross_deficit`
/// INCONCLUSIVE.
void judge_baseline_totals(Judgement& j, const Snapshot& now);

}  // namespace assay::verdict
