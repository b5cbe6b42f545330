// SPDX-License-Identifier: Apache-2.0
// Runs against runs: comparisons of equals.
#include <fmt/format.h>

#include "curve.hpp"
#include "simulate/simulate.hpp"
#include "verdict/compare.hpp"

namespace assay::operating {
namespace {

/// Two fleets of one kind (or one fleet twice), compared in one metric: a significant difference is false.
Count equal_trial(std::int64_t nodes, bool paired, std::uint64_t seed) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.metrics = simulate::pick_metrics({"memory/triad-together"});
  spec.between_cv = spec.within_cv = 0.01;
  spec.run_cv = paired ? 0.003 : 0;
  spec.seed = 2 * seed;
  const auto a = simulate::screen(spec);
  (paired ? spec.run : spec.seed) += 1;
  const auto b = simulate::screen(spec);
  const auto result = verdict::compare({&a}, {&b}, verdict::CompareOptions{});
  for (const auto& m : result.metrics)
    if (m.suite == "memory" && m.metric == "bandwidth") return {m.p < 0.05 ? std::size_t{1} : 0, 1};
  return {1, 1};
}

}  // namespace

std::vector<Cell> comparison_cells() {
  std::vector<Cell> cells;
  for (const bool paired : {false, true})
    for (const std::int64_t nodes : {8, 32})
      cells.push_back({"comparison of equals, p < 5 %", fmt::format("{}, N={} a side", paired ? "same nodes" : "other nodes", nodes),
                       Aim::between, 0.04, 0.06, 4000,
                       [=](std::uint64_t seed) { return equal_trial(nodes, paired, seed); }});
  return cells;
}

}  // namespace assay::operating
