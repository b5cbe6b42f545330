// SPDX-License-Identifier: Apache-2.0
// Devices: healthy fleets that must not be accused, and slow devices that must be found.
#include <fmt/format.h>

#include <algorithm>

#include "base/random.hpp"
#include "curve.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"

namespace assay::operating {
namespace {

using simulate::Noise;
using simulate::Population;
using simulate::Spec;

struct Family {
  const char* name;
  Population population;
  Noise noise;
};
constexpr Family families[] = {{"normal", Population::normal, Noise::normal},
                               {"heavy noise", Population::normal, Noise::heavy},
                               {"heavy population", Population::heavy, Noise::normal},
                               {"bimodal", Population::bimodal, Noise::normal},
                               {"two models", Population::models, Noise::normal}};

const std::vector<std::string> four_metrics = {"gemm/fp32-n4096-together", "gemm/bf16-n8192-alone",
                                               "memory/triad-together", "memory/latency-alone"};

Spec fleet(std::int64_t nodes, std::uint64_t seed, const std::vector<std::string>& metrics) {
  Spec spec;
  spec.nodes = nodes;
  spec.metrics = simulate::pick_metrics(metrics);
  spec.seed = seed;
  return spec;
}

/// Nothing injected, whatever spread was drawn: a FAIL is false.
Count healthy_trial(const Family& family, std::int64_t nodes, std::uint64_t seed) {
  Spec spec = fleet(nodes, seed, four_metrics);
  const RandomStream draw(seed, "operating/healthy");
  spec.population = family.population;
  spec.noise = family.noise;
  spec.between_cv = 0.02 * draw.uniform(0);
  spec.within_cv = family.noise == Noise::heavy ? 0.03 : 0.005 * draw.uniform(1);
  if (family.population == Population::models) {
    spec.gap = 0.04;
    spec.share = 0.5;
  }
  const auto r = simulate::run(spec);
  return {r.verdict->state == "FAIL" ? std::size_t{1} : 0, 1};
}

/// Whether a finding of this severity names the part, alone or among its members.
bool named(const results::VerdictData& verdict, const std::string& name, const std::string& severity) {
  return std::any_of(verdict.findings.begin(), verdict.findings.end(), [&](const auto& f) {
    if (!severity.empty() && f.severity != severity) return false;
    if (f.severity == "INFO") return false;
    return f.name == name || std::find(f.members.begin(), f.members.end(), name) != f.members.end();
  });
}

/// One device of the fleet is slow by `percent` in what `where` says (a part of a fault, "" for all).
Count slow_trial(Spec spec, double percent, const std::string& where, const std::string& severity) {
  const auto victim = static_cast<std::int64_t>(
      RandomStream(spec.seed, "operating/victim").below(0, static_cast<std::uint64_t>(spec.nodes)));
  spec.faults = {simulate::parse_fault(fmt::format("slow:node={},percent={}{}", victim, percent, where))};
  const auto r = simulate::run(spec);
  const simulate::Machine machine(spec);
  return {named(*r.verdict, machine.node_name(victim) + "/gpu0", severity) ? std::size_t{1} : 0, 1};
}

/// One device whose memory is slow (delta 3 %); c_w is half a percent.
Count recall_trial(std::int64_t nodes, double between_cv, double percent, std::uint64_t seed) {
  Spec spec = fleet(nodes, seed, four_metrics);
  spec.between_cv = between_cv;
  spec.within_cv = 0.005;
  return slow_trial(spec, percent, ",suite=memory", "FAIL");
}

/// One of twelve metrics is slow.
Count one_of_twelve_trial(Population population, std::int64_t nodes, double between_cv, double percent,
                          std::uint64_t seed) {
  Spec spec = fleet(nodes, seed, {"memory"});
  spec.population = population;
  spec.between_cv = between_cv;
  const auto order = RandomStream(seed, "operating/twelve").permutation(spec.metrics.size());
  return slow_trial(spec, percent, ",case=" + spec.metrics[order[0]].name, "FAIL");
}

/// All GEMM of one device is slow; clocks differ by `clock_cv` and are recorded (0: all alike).
Count gemm_trial(std::int64_t nodes, double clock_cv, double percent, const std::string& severity,
                 std::uint64_t seed) {
  Spec spec = fleet(nodes, seed, {"gemm/fp32-n4096-*", "gemm/bf16-n8192-*"});
  spec.between_cv = 0.003;
  spec.clock_cv = clock_cv;
  return slow_trial(spec, percent, "", severity);
}

/// `where` is slow on one device of eight a node, whose metrics move together.
Count common_trial(std::int64_t nodes, double device_cv, const std::string& where, double percent,
                   std::uint64_t seed) {
  Spec spec = fleet(nodes, seed, {"gemm", "memory"});
  spec.devices_per_node = 8;
  spec.device_cv = device_cv;
  spec.between_cv = device_cv / 2;
  return slow_trial(spec, percent, ",device=0," + where, "FAIL");
}

/// Half speed in a twentieth of the samples: named as intermittent.
Count intermittent_trial(std::int64_t samples, std::uint64_t seed) {
  constexpr std::int64_t nodes = 24;
  Spec spec = fleet(nodes, seed, four_metrics);
  spec.samples = samples;
  const auto victim = static_cast<std::int64_t>(RandomStream(seed, "operating/victim").below(0, nodes));
  spec.faults = {
      simulate::parse_fault(fmt::format("slow:node={},factor=0.5,duty=0.05,suite=memory", victim))};
  const auto r = simulate::run(spec);
  const std::string name = simulate::Machine(spec).node_name(victim) + "/gpu0";
  const bool found = std::any_of(r.verdict->findings.begin(), r.verdict->findings.end(),
                                 [&](const auto& f) { return f.kind == "intermittent" && f.name == name; });
  return {found ? std::size_t{1} : 0, 1};
}

/// A tenth of the nodes is slow in one metric.
struct Tenth {
  Tenth(std::int64_t nodes, std::uint64_t seed)
      : spec(fleet(nodes, seed, four_metrics)),
        order(RandomStream(seed, "operating/victims").permutation(static_cast<std::size_t>(nodes))),
        slow(static_cast<std::size_t>(nodes / 10)) {
    spec.between_cv = spec.within_cv = 0.005;
    std::string list;
    for (std::size_t i = 0; i < slow; ++i) list.append(i == 0 ? "" : "+").append(std::to_string(order[i]));
    spec.faults = {simulate::parse_fault("slow:node=" + list + ",percent=5,case=triad-together")};
    verdict = *simulate::run(spec).verdict;
  }
  /// Of order[from, to), how many are failed.
  std::size_t failed(std::size_t from, std::size_t to) const {
    const simulate::Machine machine(spec);
    std::size_t n = 0;
    for (std::size_t i = from; i < to; ++i)
      n += named(verdict, machine.node_name(static_cast<std::int64_t>(order[i])) + "/gpu0", "FAIL") ? 1 : 0;
    return n;
  }

  Spec spec;
  std::vector<std::size_t> order;  ///< of the nodes, the slow ones first
  std::size_t slow;
  results::VerdictData verdict;
};

Count tenth_trial(std::int64_t nodes, std::uint64_t seed) {
  const Tenth tenth(nodes, seed);
  return {tenth.failed(0, tenth.slow), tenth.slow};
}

/// Whether somebody innocent is accused besides.
Count tenth_false_trial(std::int64_t nodes, std::uint64_t seed) {
  const Tenth tenth(nodes, seed);
  return {tenth.failed(tenth.slow, tenth.order.size()) > 0 ? std::size_t{1} : 0, 1};
}

}  // namespace

std::vector<Cell> healthy_cells() {
  std::vector<Cell> cells;
  for (const Family& family : families)
    for (const std::int64_t nodes : {8, 64, 1024})
      cells.push_back({"false FAIL, healthy", fmt::format("{}, N={}", family.name, nodes), Aim::at_most, 0.01,
                       1, 140,
                       [family, nodes](std::uint64_t seed) { return healthy_trial(family, nodes, seed); }});
  return cells;
}

std::vector<Cell> recall_cells() {
  std::vector<Cell> cells;
  for (const double percent : {5.0, 4.0})
    for (const double between_cv : {0.001, 0.003, 0.005})
      for (const std::int64_t nodes : {8, 64, 1024})
        cells.push_back(
            {fmt::format("one device slow by {} %, FAIL", percent),
             fmt::format("N={}, c_b {} %", nodes, 100 * between_cv), Aim::at_least,
             percent == 5 ? 0.99 : 0.95, 1, 200,
             [=](std::uint64_t seed) { return recall_trial(nodes, between_cv, percent, seed); },
             between_cv > 0.004 && nodes < 1024 ? std::optional(percent == 5 ? 0.96 : 0.8) : std::nullopt});
  cells.push_back({"half speed in 5 % of the samples, named", "N=24, 2 metrics, 100 samples", Aim::at_least,
                   0.95, 1, 200, [](std::uint64_t seed) { return intermittent_trial(100, seed); }});
  cells.push_back({"half speed in 5 % of the samples, named", "N=24, 2 metrics, 30 samples", Aim::at_most,
                   0.05, 1, 200, [](std::uint64_t seed) { return intermittent_trial(30, seed); }});
  for (const double between_cv : {0.001, 0.003})
    for (const std::int64_t nodes : {12, 24, 48, 100, 300})
      cells.push_back({"one of 12 metrics slow by 5 %, FAIL",
                       fmt::format("N={}, c_b {} %", nodes, 100 * between_cv), Aim::at_least, 0.95, 1, 200,
                       [=](std::uint64_t seed) {
                         return one_of_twelve_trial(Population::normal, nodes, between_cv, 5, seed);
                       },
                       between_cv > 0.002 && nodes < 48 ? std::optional(0.9) : std::nullopt});
  for (const std::int64_t nodes : {12, 24, 48, 100})
    cells.push_back(
        {"one of 12 metrics slow by 10 %, heavy population, FAIL", fmt::format("N={}, c_b 0.3 %", nodes),
         Aim::at_least, 0.95, 1, 200,
         [=](std::uint64_t seed) { return one_of_twelve_trial(Population::heavy, nodes, 0.003, 10, seed); },
         nodes < 100 ? std::nullopt : std::optional(0.84)});
  struct Common {
    const char *what, *where;
    double device_cv, percent;
    std::vector<std::int64_t> nodes;
    double held_of_few = 0.95;  ///< of 24 devices
  };
  for (const Common& of : {Common{"all metrics of memory", "suite=memory", 0.005, 8, {3, 12, 64}},
                           Common{"all metrics of memory", "suite=memory", 0.01, 12, {3, 12, 64}, 0.85},
                           Common{"one metric of memory", "case=triad-alone", 0.005, 5, {3, 12, 64}, 0.8},
                           Common{"one metric of memory", "case=triad-alone", 0.01, 8, {12, 64}}})
    for (const std::int64_t nodes : of.nodes)
      cells.push_back(
          {fmt::format("{} slow by {} %, moving together, FAIL", of.what, of.percent),
           fmt::format("N={}x8, common c_b {} %", nodes, 100 * of.device_cv), Aim::at_least, 0.95, 1, 100,
           [=](std::uint64_t seed) { return common_trial(nodes, of.device_cv, of.where, of.percent, seed); },
           nodes == 3 ? std::optional(of.held_of_few) : std::nullopt});
  struct Gemm {
    double percent, clock_cv;
    const char* severity;
    double target;
  };
  for (const Gemm& of : {Gemm{2, 0.015, "", 0.95}, Gemm{3, 0.015, "", 0.99}, Gemm{4, 0.015, "FAIL", 0.95},
                         Gemm{5, 0.015, "FAIL", 0.99}, Gemm{4, 0, "", 0.99}, Gemm{8, 0, "FAIL", 0.99}})
    for (const std::int64_t nodes : {64, 256})
      cells.push_back(
          {fmt::format("GEMM slow by {} %{}, {}", of.percent, of.clock_cv > 0 ? " at equal clock" : "",
                       *of.severity ? of.severity : "named"),
           fmt::format("N={}", nodes), Aim::at_least, of.target, 1, 200, [=](std::uint64_t seed) {
             return gemm_trial(nodes, of.clock_cv, of.percent, of.severity, seed);
           }});
  for (const std::int64_t nodes : {64, 256}) {
    cells.push_back({"a tenth slow by 5 %, found", fmt::format("N={}", nodes), Aim::at_least, 0.95, 1, 100,
                     [=](std::uint64_t seed) { return tenth_trial(nodes, seed); }});
    cells.push_back({"a tenth slow by 5 %, others accused", fmt::format("N={}", nodes), Aim::at_most, 0.01, 1,
                     100, [=](std::uint64_t seed) { return tenth_false_trial(nodes, seed); }});
  }
  return cells;
}

}  // namespace assay::operating
