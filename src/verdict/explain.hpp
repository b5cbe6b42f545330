// SPDX-License-Identifier: Apache-2.0
// The evidence about one part: everything in a file that determines its state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/model.hpp"
#include "verdict/verdict.hpp"

namespace assay::verdict {

/// Evidence of one metric about one part.
struct MetricEvidence {
  std::string metric, unit, part, stratum;  ///< `part`: of which part it was measured
  double value = 0, low = results::not_taken, high = results::not_taken;  ///< median with its 95 % interval
  std::int64_t n = 0;
  double peers = results::not_taken,
         peers_deficit = results::not_taken;  ///< median of the others of the stratum
  std::size_t rank = 0, of = 0;               ///< 1 is the slowest
  double baseline = results::not_taken, baseline_deficit = results::not_taken;
  double history = results::not_taken, history_deficit = results::not_taken,
         history_threshold = results::not_taken;
  std::vector<std::string> limits;  ///< "min 100 GFLOP/s (limits.toml:3)"
  struct RetestValue {
    std::string name;
    double value = 0;
    std::int64_t n = 0;
  };
  std::vector<RetestValue> retests;
};

struct Explanation {
  results::Entity entity;
  std::string node, state, reason;
  std::vector<results::Finding> findings;
  std::vector<MetricEvidence> metrics;  ///< of the part, and of a node's devices, by deficit against peers
  std::vector<results::CounterRow> counters;  ///< those that changed or could not be read
  std::vector<results::EventRow> events;
  std::vector<results::Miscompare> errors;
};

/// `name`: of an entity, as findings call it, or its id. Nothing when there is none.
std::optional<Explanation> explain(const results::Results& results, const results::VerdictData& verdict,
                                   const Options& options, const std::string& name);

}  // namespace assay::verdict
