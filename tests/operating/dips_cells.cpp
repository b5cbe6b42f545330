// SPDX-License-Identifier: Apache-2.0
// Parts that are slow now and then, beside healthy ones that something disturbs for several samples.
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "curve.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"

namespace assay::operating {
namespace {

/// How often healthy parts are disturbed in a case: uniformly from none to `most` times, of a share of them.
struct Disturbed {
  const char* name;
  double share;
  int most;
};

simulate::Spec dips_spec(std::int64_t nodes, std::int64_t samples, const char* metrics, std::uint64_t seed) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.samples = samples;
  spec.metrics = simulate::pick_metrics({metrics});
  spec.seed = seed;
  return spec;
}

/// Disturbances of 3 to 10 consecutive samples, at 60 to 90 % of the part's rate.
void disturb(results::Results& r, const Disturbed& how, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  std::uniform_real_distribution<double> chance, rate(0.6, 0.9);
  for (auto& c : r.cases) {
    if (c.kind != "device" || c.samples() < 2) continue;
    for (std::size_t e = 0; e < c.entities(); ++e) {
      if (chance(random) >= how.share) continue;
      for (int left = between(0, how.most); left > 0; --left) {
        const auto n = static_cast<int>(c.samples());
        const int length = std::min(n, between(3, 10)), first = between(0, n - length);
        const double factor = rate(random);
        auto& m = c.metrics.front();
        for (int s = first; s < first + length; ++s) {
          double& v = m.values[e * c.samples() + static_cast<std::size_t>(s)];
          v = m.better == results::Better::lower ? v / factor : v * factor;
        }
      }
    }
  }
}

std::set<std::string> slow_now_and_then(const results::VerdictData& v) {
  std::set<std::string> names;
  for (const auto& f : v.findings) {
    if (f.kind != "intermittent" || f.severity != "WARN") continue;
    if (f.members.empty()) names.insert(f.name);
    names.insert(f.members.begin(), f.members.end());
  }
  return names;
}

Count disturbed_trial(std::int64_t nodes, std::int64_t samples, const char* metrics, const Disturbed& how,
                      std::uint64_t seed) {
  auto r = simulate::screen(dips_spec(nodes, samples, metrics, seed));
  disturb(r, how, seed);
  return {slow_now_and_then(verdict::judge(r, {})).empty() ? std::size_t{0} : std::size_t{1}, 1};
}

/// Parts at half rate in a share of their samples: how many of them are named, by a warning or worse.
Count dipping_trial(std::int64_t nodes, std::int64_t samples, int parts, double duty, std::uint64_t seed) {
  auto spec = dips_spec(nodes, samples, "memory/triad-*", seed);
  std::string list;
  for (int i = 0; i < parts; ++i) list += fmt::format("{}{}", i == 0 ? "" : "+", 1 + 2 * i);
  spec.faults = {simulate::parse_fault(fmt::format("slow:node={},percent=50,duty={}", list, duty))};
  const auto r = simulate::run(spec, {});
  std::set<std::string> named;
  for (const auto& f : r.verdict->findings)
    if (f.severity != "INFO") named.insert(f.name), named.insert(f.members.begin(), f.members.end());
  Count count;
  for (int i = 0; i < parts; ++i, ++count.trials)
    count.hits += named.contains(simulate::Machine(spec).node_name(1 + 2 * i) + "/gpu0") ? 1 : 0;
  return count;
}

}  // namespace

std::vector<Cell> dips_cells() {
  std::vector<Cell> cells;
  for (const Disturbed& how :
       {Disturbed{"not", 0, 0}, {"0 to 2 times each", 1, 2}, {"0 to 2 times, a tenth", 0.1, 2}})
    for (const std::int64_t samples : {60, 100})
      for (const std::int64_t nodes : {4, 8, 24, 64})
        cells.push_back({"intermittent, healthy",
                         fmt::format("disturbed {}, {} samples, N={}", how.name, samples, nodes),
                         Aim::at_most, 0.05, 1, 100, [=](std::uint64_t seed) {
                           return disturbed_trial(nodes, samples, "memory/triad-together", how, seed);
                         }});
  struct Of {
    std::int64_t nodes, samples;
    int parts;
    double duty;
  };
  for (const Of& of : {Of{4, 100, 2, 0.2},
                       {8, 100, 2, 0.1},
                       {8, 100, 2, 0.3},
                       {24, 100, 4, 0.1},
                       {64, 100, 12, 0.3},
                       {24, 15, 2, 0.4}})
    cells.push_back(
        {"half speed now and then, named",
         fmt::format("{} of N={}, {} % of {} samples", of.parts, of.nodes, 100 * of.duty, of.samples),
         Aim::at_least, 0.95, 1, 50,
         [=](std::uint64_t seed) { return dipping_trial(of.nodes, of.samples, of.parts, of.duty, seed); }});
  return cells;
}

}  // namespace assay::operating
