// SPDX-License-Identifier: Apache-2.0
// Fleets with true rates set by hand, sampled and measured again by the simulator.
#pragma once

#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "simulate/cases.hpp"
#include "simulate/simulate.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay::fabricate {

/// One metric of one device on each of many nodes.
struct Fleet {
  std::vector<double> rate;  ///< true rate of each
  double noise = 0.002;      ///< of its samples
  int samples = 12, blocks = 3;
  double block_s = 1;  ///< from the start of one block to the next
  std::string suite = "memory", name = "triad-together", metric = "bandwidth", unit = "B/s";
  std::vector<double> clock;  ///< Hz, where given
  std::mt19937_64 random{1};
  std::uint64_t seed = 1;

  /// `n` rates around `centre` with relative deviation `spread`.
  static Fleet of(std::size_t n, double spread, std::uint64_t seed = 1, double centre = 1e11) {
    Fleet f;
    f.seed = seed;
    f.random.seed(seed);
    std::normal_distribution<double> d;
    for (std::size_t i = 0; i < n; ++i) f.rate.push_back(centre * std::exp(spread * d(f.random)));
    return f;
  }

  results::Results run(int devices_per_node = 1) const {
    auto r = cluster(static_cast<int>(rate.size()) / devices_per_node, devices_per_node);
    add(r);
    add_selftest(r, suite);
    return r;
  }
  /// Adds its case to a run of the same shape.
  void add(results::Results& r) const {
    auto& c = add_case(r, suite, name, metric, unit, results::Better::higher, "device",
                       rows_of_kind(r, "device"), rate);
    std::vector<std::size_t> all(rate.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    measure(c, all, samples, 0);
  }

  /// Does what the verdict asks for, as a run would, until it asks for nothing more; returns how many cases
  /// that took. `now`: the fleet as it is by then.
  static std::size_t run_retests(results::Results& r, const Fleet& now) {
    return run_retests(r, [&](const verdict::Retest&) -> const Fleet& { return now; });
  }
  /// The same of several metrics.
  static std::size_t run_retests(results::Results& r,
                                 const std::function<const Fleet&(const verdict::Retest&)>& fleet_of) {
    return simulate::run_retests(r, verdict::options_from(r), [&](const verdict::Retest& retest) {
      const Fleet& now = fleet_of(retest);
      results::CaseData c = *std::find_if(r.cases.begin(), r.cases.end(), [&](const auto& screened) {
        return screened.suite == retest.suite && screened.name == retest.name;
      });
      c.name += ".c" + std::to_string(retest.number);
      std::set<std::int32_t> rows(retest.candidates.begin(), retest.candidates.end());
      rows.insert(retest.controls.begin(), retest.controls.end());
      c.entity.assign(rows.begin(), rows.end());
      const auto devices = rows_of_kind(r, "device");
      std::vector<std::size_t> who;
      for (const auto row : rows)
        who.push_back(
            static_cast<std::size_t>(std::find(devices.begin(), devices.end(), row) - devices.begin()));
      now.measure(c, who, retest.samples, 100);
      r.cases.push_back(std::move(c));
      return true;
    });
  }

 private:
  /// Replaces the samples of `c` by those of the devices in these positions: the simulator's around its
  /// typical rate, scaled to the true ones.
  void measure(results::CaseData& c, const std::vector<std::size_t>& who, int n, double start_s) const {
    simulate::Spec spec;
    spec.nodes = static_cast<std::int64_t>(rate.size());
    spec.between_cv = 0;
    spec.within_cv = noise;
    spec.seed = seed;
    simulate::MetricModel model;
    model.suite = suite, model.name = name, model.metric = metric, model.unit = unit;
    const simulate::Machine machine(spec);
    std::vector<std::int32_t> rows;
    for (const auto i : who) rows.push_back(machine.device_row(static_cast<std::int64_t>(i)));
    simulate::CaseSchedule schedule;
    schedule.name = c.name;
    schedule.samples = n, schedule.blocks = blocks;
    const auto measured = simulate::measure_devices(machine, model, rows, schedule);
    c.sample = measured.sample, c.block = measured.block, c.count = measured.count, c.t = measured.t;
    c.metrics = {measured.metrics.front()};
    results::Metric f{"clock", "Hz", results::Better::none, false, results::Role::covariate, true, {}};
    for (std::size_t e = 0; e < who.size(); ++e)
      for (std::size_t s = 0; s < c.samples(); ++s) {
        c.metrics[0].values[e * c.samples() + s] *= rate[who[e]];
        c.t[e * c.samples() + s] = start_s + block_s * c.block[s] + 0.001 * static_cast<double>(s);
        if (!clock.empty()) f.values.push_back(clock[who[e]]);
      }
    if (!clock.empty()) c.metrics.push_back(f);
  }
};

}  // namespace assay::fabricate
