// SPDX-License-Identifier: Apache-2.0
// The values of the parts in earlier runs, without the drift of the fleet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "verdict/history.hpp"
#include "verdict/snapshot.hpp"

namespace assay::verdict::past {

/// Numbers for (kind, id), the same in all runs.
class Identities {
 public:
  std::vector<std::int32_t> of(const Snapshot& run) {
    std::vector<std::int32_t> ids;
    for (const auto& part : run.parts)
      ids.push_back(known_.try_emplace(part.kind + '\n' + part.id, static_cast<std::int32_t>(known_.size()))
                        .first->second);
    return ids;
  }
  std::size_t size() const noexcept { return known_.size(); }

 private:
  std::unordered_map<std::string, std::int32_t> known_;
};

struct Run {
  const Snapshot* snapshot;
  std::vector<std::int32_t> ids;
  std::unordered_map<std::string, const SnapshotSeries*> series;
};

std::string key_of(const SnapshotSeries& s);

/// The values of one metric by part and run.
struct Matrix {
  std::vector<std::vector<double>> rows;                ///< [part][run], NaN where absent
  std::vector<std::vector<std::vector<double>>> ended;  ///< [part] losses that ended, taken out of its row
  std::vector<std::int32_t> row_of;                     ///< by identity, -1
  std::vector<bool> tells;    ///< [run] whether it has nodes enough to tell its drift
  std::vector<double> fleet;  ///< [run] drift, taken out of its values; NaN where it is not told
  bool drift_known = false;   ///< most runs with the metric tell theirs
  std::size_t runs = 0;       ///< with the metric
  std::size_t levels = 0;     ///< of the fleet, in runs before it lost speed
  double fleet_sigma = 0;     ///< robust, of the drift of the runs before the fleet lost speed
  std::ptrdiff_t since = -1;  ///< the first of the latest runs in which the whole fleet was slow
};

/// Of a part from run to run, without the drift where it is known.
double noise_of(const Matrix& m);

Matrix matrix_of(const std::vector<Run>& runs, const std::string& key, std::size_t identities);

/// The values that were taken, and which runs they are of.
struct Past {
  std::vector<double> values;
  std::vector<std::size_t> runs;
};

Past past_of(const std::vector<double>& row);

}  // namespace assay::verdict::past

namespace assay::verdict {

/// Of collectives (history_totals.cpp): `runs` in the order of their start, `ids` those of the parts of
/// `now`.
std::vector<HistoryTotal> totals_of(const std::vector<past::Run>& runs, const Snapshot& now,
                                    const std::vector<std::int32_t>& ids);

}  // namespace assay::verdict
