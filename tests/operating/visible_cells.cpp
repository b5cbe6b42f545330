// SPDX-License-Identifier: Apache-2.0
// What the report calls the smallest visible slowdown, put to the test: a part slower by that much is
// suspected in 95 % of runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "curve.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"
#include "verdict/contract.hpp"
#include "verdict/judgement.hpp"

namespace assay::operating {
namespace {

/// What `verdict::sensitivity_of` says of the only metric of a healthy run; NaN: no bound.
double visible_of(const simulate::Spec& spec) {
  const auto healthy = simulate::screen(spec);
  const verdict::Options options;
  verdict::Judgement judgement(healthy, options);
  verdict::judge_all(judgement);
  for (const auto& s : verdict::sensitivity_of(judgement))
    if (s.metric == "memory/triad-together:bandwidth") return s.visible;
  return results::not_taken;
}

/// One device is slower by `share` of what is called visible: whether it is named, at any severity but a
/// note.
Count visible_trial(std::int64_t nodes, double spread, double share, std::uint64_t seed) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.metrics = simulate::pick_metrics({"memory/triad-together"});
  spec.between_cv = spread;
  spec.seed = seed;
  const double visible = visible_of(spec);
  if (std::isnan(visible)) return {0, 1};
  const auto victim = static_cast<std::int64_t>(
      RandomStream(seed, "operating/visible").below(0, static_cast<std::uint64_t>(nodes)));
  spec.faults = {
      simulate::parse_fault(fmt::format("slow:node={},percent={:.6f}", victim, 100 * share * visible))};
  const std::string name = simulate::Machine(spec).node_name(victim);
  const auto found = simulate::run(spec, {});
  return {std::ranges::any_of(found.verdict->findings,
                              [&](const auto& f) {
                                return f.severity != "INFO" &&
                                       (f.name == name || f.name.starts_with(name + "/"));
                              })
              ? std::size_t{1}
              : 0,
          1};
}

}  // namespace

std::vector<Cell> visible_cells() {
  std::vector<Cell> cells;
  for (const double share : {1.0, 0.5})
    for (const double spread : {0.005, 0.017})
      for (const std::int64_t nodes : {3, 8, 16, 64, 256}) {
        const bool whole = share == 1;
        cells.push_back(
            {whole ? "slower by what the report calls visible, named" : "slower by half of it, named",
             fmt::format("N={}, spread {:.1f} %", nodes, 100 * spread), whole ? Aim::at_least : Aim::at_most,
             whole ? 0.95 : 0.6, 1, nodes > 100 ? 100U : 200U,
             [=](std::uint64_t seed) { return visible_trial(nodes, spread, share, seed); }});
      }
  return cells;
}

}  // namespace assay::operating
