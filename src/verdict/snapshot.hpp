// SPDX-License-Identifier: Apache-2.0
// A run reduced to one number per entity and metric: input of comparisons, baselines and histories.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay::verdict {

/// Which file and run a value comes from.
struct RunSource {
  std::string file, run_id, started;
  std::string hash;  ///< of the values that were taken from it, 16 hexadecimal digits
};

/// Identity of a part across files: (kind, id). The id of a link is SOURCE>DESTINATION.
struct Part {
  std::string kind, id, name;
  std::int32_t node =
      -1;  ///< row of its node in Snapshot::parts, its own if it has none; of a link that of its source
  std::int32_t far_node = -1;          ///< of a link: the node of its destination
  std::vector<std::int32_t> entities;  ///< its rows of /entities (a link: itself and both ends)
};

/// Which parts a series has values of, shared by the series with the same parts.
struct PartRows {
  std::vector<std::int32_t> part;     ///< row of Snapshot::parts
  std::vector<std::int32_t> stratum;  ///< position in SnapshotSeries::strata
};

/// One metric of one case over its parts. Repeats (.pK) are joined, the retest stage (.cK) is left out.
struct SnapshotSeries {
  std::string suite, name, metric, unit, kind, stage, case_key;
  bool higher_is_better = true;
  bool shared = false;            ///< one value for several ranks, as of a collective
  bool by_node = false;           ///< these are the ranks of a node
  double fault_threshold = 0.03;  ///< as its metric declares it
  std::int64_t samples = 0;
  std::vector<std::string> strata;
  std::shared_ptr<const PartRows> rows;
  /// Log of the rate: ln(median) where higher is better, -ln(median) where lower is, so that a difference is
  /// a relative change of the rate and positive is better. [rows], finite.
  std::vector<float> log_rate;
  std::vector<float>
      log_clock;  ///< ln of the median clock in Hz, NaN where none was recorded; empty or [rows]
  std::vector<float>
      standard_error;  ///< of log_rate, NaN for fewer than 3 samples; empty in a snapshot from an index
  std::vector<std::int32_t> n;  ///< samples, likewise
  std::size_t origin = 0;       ///< position in Judgement::series, of a snapshot made from one

  /// Identity across files, together with the case_key.
  std::string full() const { return suite + "/" + name + ":" + metric; }
};

struct Snapshot {
  RunSource source;
  std::string level;
  bool injected = false;
  std::vector<Part> parts;
  std::vector<SnapshotSeries> series;
  std::vector<std::string> left_out;  ///< "sim03 in memory/triad:bandwidth": values that cannot be

  const Part& part(std::int32_t row) const { return parts[static_cast<std::size_t>(row)]; }
};

/// The metrics with a direction that are rates or times of a part of the machine: no counts, no covariates,
/// nothing of a case that was skipped. Values that are not positive are left out. `file` is its name in
/// messages.
Snapshot snapshot_of(const results::Results& results, const std::string& file);
struct Judgement;
/// The same from series that were collected before.
Snapshot snapshot_of(const Judgement& judgement, const std::string& file);

/// 16 hexadecimal digits over everything that a verdict uses of it.
std::string hash_of(const Snapshot& snapshot);

/// The rate or time of a log rate, in the unit of the metric.
double value_of(double log_rate, bool higher_is_better) noexcept;

}  // namespace assay::verdict
