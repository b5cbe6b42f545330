// SPDX-License-Identifier: Apache-2.0
// Healthy fleets of many families and sizes, and fleets with several slow parts of unequal strength.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "base/random.hpp"
#include "curve.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"

namespace assay::operating {
namespace {

using simulate::Noise;
using simulate::Population;
using simulate::Spec;

/// Uniform draws of one trial, each by its number.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : draw_(seed, "operating/fleet") {}
  double between(std::uint64_t slot, double low, double high) const {
    return low + (high - low) * draw_.uniform(slot);
  }
  /// Equally often in every octave.
  std::int64_t size(std::uint64_t slot, double low, double high) const {
    return static_cast<std::int64_t>(std::floor(low * std::pow((high + 1) / low, draw_.uniform(slot))));
  }
  bool coin(std::uint64_t slot) const { return draw_.uniform(slot) < 0.5; }
  const RandomStream& stream() const { return draw_; }

 private:
  RandomStream draw_;
};

const std::vector<std::string> usual_metrics = {"gemm/fp32-n4096-together", "gemm/bf16-n8192-alone",
                                                "memory/triad-together", "memory/latency-alone"};

void heavy_noise(Spec& spec, const Dice&) {
  spec.noise = Noise::heavy;
  spec.within_cv = 0.03;
}
void heavy_population(Spec& spec, const Dice&) { spec.population = Population::heavy; }
void many_metrics(Spec& spec, const Dice&) {
  spec.population = Population::heavy;
  spec.metrics = simulate::pick_metrics({"memory"});
}
void uneven_metrics(Spec& spec, const Dice& dice) {
  many_metrics(spec, dice);
  spec.uneven = 0.8;
}
void bimodal(Spec& spec, const Dice& dice) {
  spec.population = Population::bimodal;
  spec.gap = dice.between(10, 0.02, 0.08);
  spec.share = dice.between(11, 0.05, 0.5);
}
void bimodal_noise(Spec& spec, const Dice& dice) {
  bimodal(spec, dice);
  heavy_noise(spec, dice);
}
void models(Spec& spec, const Dice& dice) {
  bimodal(spec, dice);
  spec.population = Population::models;
}
void clocked(Spec& spec, const Dice& dice) { spec.clock_cv = dice.between(12, 0.002, 0.02); }
void correlated(Spec& spec, const Dice& dice) {
  spec.device_cv = dice.between(13, 0, 0.015);
  spec.between_cv /= 3;
}
void common_part(Spec& spec, const Dice& dice) {
  spec.devices_per_node = 4;
  spec.node_cv = dice.between(14, 0, 0.01);
  spec.nodes = std::max<std::int64_t>(2, spec.nodes / 4);
}
void from_run_to_run(Spec& spec, const Dice& dice) {
  spec.run_cv = dice.between(15, 0.001, 0.01);
  spec.run = 1;
}

template <Population of, bool many>
void skewed(Spec& spec, const Dice& dice) {
  spec.population = of;
  spec.between_cv = dice.between(1, 0.003, 0.02);
  if (many) spec.metrics = simulate::pick_metrics({"memory"});
}

struct FleetFamily {
  const char* name;
  void (*shape)(Spec&, const Dice&);
};
constexpr FleetFamily fleet_families[] = {
    {"normal", [](Spec&, const Dice&) {}},
    {"heavy noise", heavy_noise},
    {"heavy population", heavy_population},
    {"heavy population, 12 metrics", many_metrics},
    {"heavy population, 12 metrics of unequal spread", uneven_metrics},
    {"two unlabelled kinds", bimodal},
    {"two unlabelled kinds, heavy noise", bimodal_noise},
    {"two models", models},
    {"clocks", clocked},
    {"correlated metrics", correlated},
    {"4 devices a node", common_part},
    {"run to run", from_run_to_run},
    {"skewed, capped", skewed<Population::capped, false>},
    {"skewed, capped, 12 metrics", skewed<Population::capped, true>},
    {"skewed, exponential", skewed<Population::exponential, false>},
    {"skewed, exponential, 12 metrics", skewed<Population::exponential, true>},
    {"skewed, log-normal", skewed<Population::lognormal, false>},
    {"skewed, log-normal, 12 metrics", skewed<Population::lognormal, true>}};

struct Sizes {
  double low, high;
  std::size_t runs;
};
constexpr Sizes sizes[] = {{5, 23, 4000}, {24, 200, 2000}, {201, 2000, 400}};

Spec healthy(const FleetFamily& family, const Sizes& of, std::uint64_t seed) {
  const Dice dice(seed);
  Spec spec;
  spec.nodes = dice.size(0, of.low, of.high);
  spec.metrics = simulate::pick_metrics(usual_metrics);
  spec.between_cv = dice.between(1, 0, 0.02);
  spec.within_cv = dice.between(2, 0, 0.005);
  spec.seed = seed;
  family.shape(spec, dice);
  return spec;
}

enum class Asked { fail, warn, nodes };

Count family_trial(const FleetFamily& family, const Sizes& of, Asked asked, std::uint64_t seed) {
  const Spec spec = healthy(family, of, seed);
  const auto r = simulate::run(spec);
  const auto& v = *r.verdict;
  if (asked == Asked::fail) return {v.state == "FAIL" ? std::size_t{1} : 0, 1};
  // Of any kind: a metric that was too noisy to be judged, too.
  const auto warns = [](const results::Finding& f) { return f.severity == "WARN"; };
  if (asked == Asked::warn)
    return {v.state == "INCONCLUSIVE" || std::any_of(v.findings.begin(), v.findings.end(), warns)
                ? std::size_t{1}
                : 0,
            1};
  std::size_t failed = 0;
  for (const auto& s : v.entities)
    failed += s.state == "FAIL" && r.entities[static_cast<std::size_t>(s.entity)].kind == "node" ? 1 : 0;
  return {failed, static_cast<std::size_t>(spec.nodes)};
}

/// Several slow parts: who they are, and the verdict.
struct Slow {
  explicit Slow(std::uint64_t seed) {
    const Dice dice(seed);
    spec.nodes = dice.size(0, 5, 2000);
    spec.metrics = simulate::pick_metrics({"memory/triad-together", "memory/latency-alone"});
    spec.between_cv = dice.between(1, 0.0005, 0.005);
    spec.within_cv = dice.between(2, 0.0005, 0.005);
    spec.seed = seed;
    const auto faulty = std::max<std::int64_t>(
        1, std::llround(dice.between(3, 0.01, 0.30) * static_cast<double>(spec.nodes)));
    const bool equal = dice.coin(4), together = dice.coin(5);
    const double strength = dice.between(6, 3, 50);
    if (together)
      spec.nodes_per_chassis = std::max<std::int64_t>(2, std::min<std::int64_t>(8, spec.nodes / 3));
    const auto order = RandomStream(seed, "operating/slow").permutation(static_cast<std::size_t>(spec.nodes));
    for (std::int64_t i = 0; i < faulty; ++i) {
      const auto node = together ? (static_cast<std::int64_t>(order[0]) + i) % spec.nodes
                                 : static_cast<std::int64_t>(order[static_cast<std::size_t>(i)]);
      const double percent = equal ? strength : dice.between(100 + static_cast<std::uint64_t>(i), 3, 50);
      spec.faults.push_back(simulate::parse_fault(fmt::format("slow:node={},percent={:.4f}", node, percent)));
      const auto name = simulate::Machine(spec_of_names()).node_name(node);
      slow.insert({name, name + "/gpu0"});
    }
    verdict = *simulate::run(spec).verdict;
  }
  std::size_t innocents() const {
    std::size_t n = 0;
    for (const auto& f : verdict.findings) {
      if (f.severity != "FAIL") continue;
      if (f.members.empty()) n += slow.contains(f.name) ? 0 : 1;
      for (const auto& member : f.members) n += slow.contains(member) ? 0 : 1;
    }
    return n;
  }

  Spec spec;
  std::set<std::string> slow;
  results::VerdictData verdict;

 private:
  Spec spec_of_names() const {
    Spec names;
    names.nodes = spec.nodes;
    return names;
  }
};

Count innocent_trial(std::uint64_t seed) { return {Slow(seed).innocents() > 0 ? std::size_t{1} : 0, 1}; }

}  // namespace

std::vector<Cell> family_cells() {
  std::vector<Cell> cells;
  for (const FleetFamily& family : fleet_families)
    for (const Sizes& of : sizes) {
      const std::string name = fmt::format("{}, N={:.0f} to {:.0f}", family.name, of.low, of.high);
      const auto trial = [&family, &of](Asked asked) {
        return [&family, &of, asked](std::uint64_t seed) { return family_trial(family, of, asked, seed); };
      };
      // With heavy tails the target of nodes is missed by few, that of runs met by less than three errors by
      // many.
      const bool heavy = std::string_view(family.name).starts_with("heavy");
      const bool skewed = std::string_view(family.name).starts_with("skewed"), few = of.low < 24;
      const auto held_to = [](bool less, double bound) { return less ? std::optional(bound) : std::nullopt; };
      cells.push_back({"false FAIL, family", name, Aim::at_most, 0.005, 1, of.runs, trial(Asked::fail),
                       held_to((heavy && !few) || skewed, few ? 0.03 : 0.01)});
      cells.push_back({"false FAIL of a node, family", name, Aim::at_most, 5e-5, 1, of.runs / 4,
                       trial(Asked::nodes), held_to(heavy || skewed, skewed && few ? 3e-3 : 5e-4)});
      cells.push_back({"WARN, healthy family", name, Aim::at_most, 0.05, 1, of.runs / 8, trial(Asked::warn),
                       held_to(skewed && few, 0.25)});
    }
  return cells;
}

std::vector<Cell> group_cells() {
  return {{"several slow, others accused", "N=5 to 2000, 1 to 30 %, slow by 3 to 50 %", Aim::at_most, 0.001,
           1, 10000, innocent_trial}};
}

}  // namespace assay::operating
