// SPDX-License-Identifier: Apache-2.0
// Comparison of each part with its earlier runs, without the drift of the whole fleet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "verdict/snapshot.hpp"

namespace assay::verdict {

struct Judgement;

/// Fewest leave-one-out differences of a metric that tell how its parts vary from run to run.
inline constexpr std::size_t history_least = 8;

/// A part that was already low in the latest earlier runs.
struct Shifted {
  std::uint32_t score = 0;  ///< position among the scores of the series
  std::int32_t runs = 0;    ///< how many earlier runs in a row
  bool alert = false;       ///< the last of them beyond the threshold
  double base = 0;          ///< log rate before the shift
  double last = 0;          ///< logarithmic deficit of the latest of them against it
  std::string since;        ///< start of the first of them
};

/// Earlier runs of the parts of one series of one run.
struct HistorySeries {
  std::string metric, case_key;
  std::vector<float>
      base;  ///< [scores] median log rate of the last 10 runs, drift of the fleet taken out; NaN without any
  std::vector<Shifted> shifted;
  std::int64_t runs = 0;    ///< that have the metric
  std::int64_t levels = 0;  ///< of the fleet, in runs before it lost speed: `fleet` is their spread
  double scale = 0;         ///< robust sigma of the leave-one-out differences
  double threshold = 0;     ///< a lower log rate than base by more is an alert; NaN: too little is known
  double fleet = 0;         ///< robust sigma of the whole fleet from run to run
  std::string
      fleet_since;  ///< start of the first of the latest runs in which it was slow as a whole; or empty
  std::int64_t pairs = 0;  ///< leave-one-out differences of this metric
  std::string null;        ///< where the threshold comes from: "empirical" or "t4"
};

/// Fewest earlier runs that tell what a collective reaches.
inline constexpr std::size_t history_total_least = 3;

/// Earlier runs of a metric that has one value for several ranks, of the same parts.
struct HistoryTotal {
  std::string metric, case_key;
  double base = 0;         ///< median log rate
  double threshold = 0;    ///< logarithmic; 0: too few runs
  std::int64_t runs = 0;   ///< without those that had lost speed
  std::string since;       ///< start of the first of the latest runs that had; or empty
  std::int32_t node = -1;  ///< row of Snapshot::parts of the node whose ranks share the value; -1: all ranks
};

/// How many metrics were compared, and how many could not be for lack of values.
struct HistoryHeld {
  std::size_t known = 0, unknown = 0;
};

/// Bound to one run: rows are those of its scores.
struct History {
  std::string name;  ///< as given: --history
  std::vector<RunSource> runs;
  std::vector<std::string> injected;  ///< files that are left out because faults were injected
  std::vector<HistorySeries> series;
  std::vector<HistoryTotal> totals;
};

struct HistoryOptions {
  std::size_t window = 10;        ///< runs of the median
  std::size_t most_runs = 200;    ///< that are read: a lasting shift is reported for this many
  double alarms_per_node = 2e-3;  ///< expected alerts of a healthy node in one run, over all of its metrics
  double least_change = 5e-3;     ///< smaller changes are not reported
  std::size_t empirical_min = 1000;  ///< leave-one-out differences from which their own tail is used; below,
                                     ///< Student's t with 4 degrees
};

/// The runs of `earlier` that are not `now` itself and did not start after it, as the reference of `now`.
/// Runs with injected faults are the past of such runs only: a rehearsal, or a simulated machine. Parts are
/// matched by kind and id; a host rank is one only with the same cores, which its id holds. Pure; O(runs x
/// parts).
///
/// The null is that of all leave-one-out differences x - median(the other runs of the same part), over all
/// metrics in units of each metric's own scale, with a generalised Pareto tail beyond 99 % (Hosking and
/// Wallis 1987); a metric whose own differences reach further keeps its own quantile. Parts whose level
/// shifted for two runs or in the latest one are no part of it.
History history_of(const std::vector<Snapshot>& earlier, const Snapshot& now, const std::string& name,
                   const HistoryOptions& options = {});

/// The quantile of `differences` that a further one exceeds with probability `p`, for p below 1 %: from the
/// tail beyond 99 %. `differences` are deficits in units of their scale.
double tail_quantile(std::vector<double> differences, double p);

/// A WARN `drift` of the cluster in a metric, or of the node in this row of /entities, since the start of a
/// run; now if that is empty.
results::Finding drift_finding(const Judgement& j, const Snapshot& now, const SnapshotSeries& s,
                               double deficit, const std::string& since, std::int32_t node = -1);
/// Of collectives (history_totals.cpp).
HistoryHeld judge_totals(Judgement& j, const Snapshot& now, const History& history);
/// Those of nodes in columns, because there are many; the others are in `totals`.
Json node_totals_json(const std::vector<HistoryTotal>& totals);
/// Throws Json::exception or Error(data) for what `node_totals_json` did not write.
void add_node_totals(std::vector<HistoryTotal>& totals, const Json& json);

Json history_json(const History& history);
/// Throws Error(data) for what `history_json` did not write.
History history_from(const Json& json);

/// A loss is WARN; FAIL if it was in the run before too, and the deficit against
/// the part's own past is confirmed and beyond the delta of the class. `since` is the first run of the
/// lasting shift. A fleet that drifted as a whole is one warning.
void judge_history(Judgement& j, const Snapshot& now, const History& history);

}  // namespace assay::verdict
