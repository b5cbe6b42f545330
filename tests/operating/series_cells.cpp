// SPDX-License-Identifier: Apache-2.0
// Runs against runs: comparisons of equals, and parts against their own past.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/random.hpp"
#include "curve.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"
#include "verdict/compare.hpp"
#include "verdict/history.hpp"
#include "verdict/snapshot.hpp"

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

constexpr std::int64_t history_nodes = 64;

simulate::Spec history_spec(std::uint64_t seed) {
  simulate::Spec spec;
  spec.nodes = history_nodes;
  spec.metrics =
      simulate::pick_metrics({"gemm/fp32-n4096-together", "memory/triad-together", "memory/latency-alone"});
  spec.between_cv = 0.017;  // what history takes out: the spread of power-limited devices
  spec.within_cv = 0.002;
  spec.run_cv = 0.001;
  spec.seed = seed;
  return spec;
}

/// The verdict of the latest run of a fleet with `earlier` healthy ones before it.
results::VerdictData with_history(simulate::Spec spec, std::uint64_t earlier) {
  auto past = std::make_shared<std::vector<verdict::Snapshot>>();
  const auto faults = std::move(spec.faults);
  spec.faults.clear();
  for (spec.run = 0; spec.run < earlier; ++spec.run) {
    auto r = simulate::screen(spec);
    r.info.started = fmt::format("2026-01-{:02}T00:00:00Z", spec.run + 1);
    past->push_back(verdict::snapshot_of(r, fmt::format("run{}.h5", spec.run)));
  }
  spec.faults = faults;
  verdict::Options options;
  options.history_name = "history";
  options.earlier = past;
  return *simulate::run(spec, options).verdict;
}

/// A device that is 2 % slower than in its earlier runs: named, at any severity.
Count change_trial(std::uint64_t earlier, std::uint64_t seed) {
  auto spec = history_spec(seed);
  const auto victim =
      static_cast<std::int64_t>(RandomStream(seed, "operating/change").below(0, history_nodes));
  spec.faults = {simulate::parse_fault(fmt::format("slow:node={},percent=2", victim))};
  const std::string name = simulate::Machine(spec).node_name(victim) + "/gpu0";
  const auto verdict = with_history(spec, earlier);
  const bool found = std::any_of(verdict.findings.begin(), verdict.findings.end(), [&](const auto& f) {
    return f.severity != "INFO" && f.reference_kind == "history" && f.name == name;
  });
  return {found ? std::size_t{1} : 0, 1};
}

Count unchanged_trial(std::uint64_t earlier, std::uint64_t seed) {
  return {with_history(history_spec(seed), earlier).state == "FAIL" ? std::size_t{1} : 0, 1};
}

/// A device that loses `percent` steadily in the course of a case; 0: nobody does, and naming anyone is
/// false.
Count drift_trial(std::int64_t nodes, double percent, std::uint64_t seed) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.metrics = simulate::pick_metrics({"memory/triad-together"});
  spec.within_cv = 0.01;
  spec.samples = 1000;
  spec.seed = seed;
  const auto victim = static_cast<std::int64_t>(
      RandomStream(seed, "operating/drift").below(0, static_cast<std::uint64_t>(nodes)));
  if (percent > 0)
    spec.faults = {simulate::parse_fault(fmt::format("drift:node={},percent={}", victim, percent))};
  const std::string name = simulate::Machine(spec).node_name(victim) + "/gpu0";
  const auto verdict = *simulate::run(spec).verdict;
  bool found = false, others = false;
  for (const auto& f : verdict.findings)
    if (f.kind == "drift") (percent > 0 && f.name == name ? found : others) = true;
  return {(percent > 0 ? found && !others : others) ? std::size_t{1} : 0, 1};
}

/// A device loses some percent in all metrics for good after six nights: how often it is named in eight
/// nights from then on, or failed from the second on.
Count lasting_trial(std::int64_t nodes, int metrics, double percent, bool fail, std::uint64_t seed) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.metrics = simulate::pick_metrics({std::to_string(metrics)});
  spec.between_cv = 0.017;
  spec.run_cv = 0.001;
  spec.seed = seed;
  const auto victim = static_cast<std::int64_t>(
      RandomStream(seed, "operating/lasting").below(0, static_cast<std::uint64_t>(nodes)));
  const std::string name = simulate::Machine(spec).node_name(victim) + "/gpu0";
  auto past = std::make_shared<std::vector<verdict::Snapshot>>();
  Count count;
  constexpr std::uint64_t before = 6, nights = 8;
  for (spec.run = 0; spec.run < before + nights; ++spec.run) {
    if (spec.run == before)
      spec.faults = {simulate::parse_fault(fmt::format("slow:node={},percent={}", victim, percent))};
    spec.started = fmt::format("2026-01-{:02}T00:00:00Z", spec.run + 1);
    const auto screened = simulate::screen(spec);
    if (spec.run >= before) {
      verdict::Options options;
      options.history_name = "history";
      options.earlier = past;
      const auto v = verdict::judge(screened, options);
      const bool found = std::any_of(v.findings.begin(), v.findings.end(), [&](const auto& f) {
        return f.reference_kind == "history" && f.name == name &&
               (fail ? f.severity == "FAIL" : f.severity != "INFO");
      });
      if (!fail || spec.run > before) {
        count.hits += found ? 1 : 0;
        ++count.trials;
      }
    }
    past->push_back(verdict::snapshot_of(screened, fmt::format("run{}.h5", spec.run)));
  }
  return count;
}

}  // namespace

std::vector<Cell> lasting_cells() {
  std::vector<Cell> cells;
  for (const bool fail : {false, true})
    for (const double percent : {1.0, 2.0, 3.0, 5.0, 10.0})
      for (const std::int64_t nodes : {8, 64, 256})
        for (const int metrics : {3, 30}) {
          // GEMM comes first, and its delta is 7 %; that of memory, which is among 30 metrics, is 3 %.
          if (fail && percent < (metrics < 30 ? 10.0 : 5.0)) continue;
          cells.push_back(
              {fail ? "lasting fault, FAIL from the second night" : "lasting fault, named every night",
               fmt::format("{} %, N={}, {} metrics", percent, nodes, metrics), Aim::at_least, 0.95, 1,
               nodes * metrics > 2000 ? 5U : 20U,
               [=](std::uint64_t seed) { return lasting_trial(nodes, metrics, percent, fail, seed); },
               percent < 2 && nodes == 8 ? std::optional(metrics == 3 ? 0.8 : 0.9) : std::nullopt});
        }
  return cells;
}

std::vector<Cell> history_cells() {
  std::vector<Cell> cells;
  for (const std::uint64_t earlier : {3, 6})
    cells.push_back({"slower than itself by 2 %, named",
                     fmt::format("N={}, {} earlier runs", history_nodes, earlier), Aim::at_least, 0.95, 1,
                     200, [=](std::uint64_t seed) { return change_trial(earlier, seed); }});
  for (const std::int64_t nodes : {8, 64}) {
    cells.push_back({"steady loss of 3 % in a case, named alone", fmt::format("N={}", nodes), Aim::at_least,
                     0.95, 1, 100, [=](std::uint64_t seed) { return drift_trial(nodes, 3, seed); }});
    cells.push_back({"drift named, healthy", fmt::format("N={}", nodes), Aim::at_most, 0.01, 1, 200,
                     [=](std::uint64_t seed) { return drift_trial(nodes, 0, seed); }});
  }
  cells.push_back({"false FAIL, healthy with history", fmt::format("N={}, 3 earlier runs", history_nodes),
                   Aim::at_most, 0.01, 1, 100, [](std::uint64_t seed) { return unchanged_trial(3, seed); }});
  return cells;
}

std::vector<Cell> comparison_cells() {
  std::vector<Cell> cells;
  for (const bool paired : {false, true})
    for (const std::int64_t nodes : {8, 32})
      cells.push_back({"comparison of equals, p < 5 %",
                       fmt::format("{}, N={} a side", paired ? "same nodes" : "other nodes", nodes),
                       Aim::between, 0.04, 0.06, 4000,
                       [=](std::uint64_t seed) { return equal_trial(nodes, paired, seed); }});
  return cells;
}

}  // namespace assay::operating
