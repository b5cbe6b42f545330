// SPDX-License-Identifier: Apache-2.0
// Comparison of two sets of runs. The unit is the node (or the device, as an option): samples of one node
// give the precision of that node only.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "results/model.hpp"
#include "verdict/snapshot.hpp"

namespace assay::verdict {

struct CompareOptions {
  double margin = 0.01;  ///< smaller changes of the rate count as SAME
  double alpha =
      0.05;  ///< error of a false FASTER or SLOWER over all metrics together (Holm), and of a false SAME
  std::string cases = "*";  ///< glob on suite/name
  bool device_unit = false;
  bool ignore_case_key = false;
};

enum class Relation { same, faster, slower, ambiguous, insufficient, incomparable };
const char* to_string(Relation r) noexcept;  ///< "SAME" ... "INSUFFICIENT", "INCOMPARABLE"

/// One side of one metric over its units.
struct SideSummary {
  std::size_t units = 0, nodes = 0;
  double median = results::not_taken;  ///< of the units, in the unit of the metric
  double spread = results::not_taken;  ///< between units: robust sigma of the log rate (c_b)
  double p5 = results::not_taken;      ///< rate that 95 % of the units reach; from 20 units on
  double worst = results::not_taken;
  std::string worst_name;
};

/// A shift of the log rate from A to B as a ratio of rates B/A, above 1 is faster; NaN without enough units.
struct Ratio {
  double estimate = results::not_taken, low = results::not_taken, high = results::not_taken;
};

/// One part that both sides have, by its identity.
struct UnitRatio {
  std::string name;
  double a = results::not_taken,
         b = results::not_taken;  ///< medians over the runs of each side, in the unit of the metric
  double ratio = 1;               ///< of the rates, B/A
};

struct MetricComparison {
  std::string suite, name, metric, unit, unit_of;  ///< unit_of: node, device or run
  bool higher_is_better = true, paired = false;
  SideSummary a, b;
  Ratio ratio;        ///< Hodges-Lehmann shift with its 95 % interval (1 - alpha)
  Ratio equivalence;  ///< the interval of both one-sided tests (1 - 2 alpha): SAME when it lies inside the
                      ///< margin
  Ratio at_clock;     ///< rate per clock, where both sides recorded one
  double clock_ratio = results::not_taken;
  double p = results::not_taken, p_adjusted = results::not_taken;
  std::string method;  ///< "permutation", "Welch" or "paired t"
  Relation relation = Relation::insufficient;
  std::string note;
  std::vector<UnitRatio>
      units;  ///< what both sides have, in the order of their names; empty where the unit is the run

  std::string full() const { return suite + "/" + name + ":" + metric; }
};

struct CompareResult {
  std::vector<RunSource> a, b;
  std::string given_a, given_b;  ///< file, directory or list that the sides were read from, as typed
  std::size_t nodes_a = 0, nodes_b = 0, nodes_common = 0;
  std::vector<MetricComparison> metrics;
  std::vector<std::string> notes;
  double ratio = results::not_taken;  ///< geometric mean over the judged metrics, a secondary summary
  Relation relation = Relation::insufficient;
  int exit_code = 3;  ///< 0 SAME or FASTER, 1 SLOWER, 3 AMBIGUOUS, INSUFFICIENT or INCOMPARABLE
};

/// Fewest nodes of a side for a comparison, whatever the number of samples.
inline constexpr std::size_t compare_min_nodes = 4;

/// Pure. Units are matched by identity (kind and id), never by rank, and paired where both sides have the
/// same. Collectives have one value per run: there the run is the unit, inside nodes the node. Sources:
/// Hodges and Lehmann 1963 (shift), Pitman 1937 (permutation), Welch 1947, Schuirmann 1987 (two one-sided
/// tests), Holm 1979.
CompareResult compare(const std::vector<Snapshot>& a, const std::vector<Snapshot>& b,
                      const CompareOptions& options);
CompareResult compare(const std::vector<const results::Results*>& a,
                      const std::vector<const results::Results*>& b, const CompareOptions& options);

}  // namespace assay::verdict
