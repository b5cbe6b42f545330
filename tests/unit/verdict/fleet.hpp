// SPDX-License-Identifier: Apache-2.0
// Fleets with chosen true rates, and a retest stage that measures them again.
#pragma once

#include <random>
#include <set>

#include "tests/unit/fabricate.hpp"
#include "verdict/retest.hpp"

namespace assay::fabricate {

/// One metric of one device on each of many nodes.
struct Fleet {
  std::vector<double> rate;  ///< true rate of each
  double noise = 0.002;      ///< of its samples
  int samples = 12, blocks = 3;
  double block_s = 1;  ///< from the start of one block to the next
  std::string suite = "memory", name = "triad-together", metric = "bandwidth", unit = "B/s";
  std::vector<double> clock;  ///< Hz, where given
  mutable std::mt19937_64 random{1};

  /// `n` rates around `centre` with relative deviation `spread`.
  static Fleet of(std::size_t n, double spread, std::uint64_t seed = 1, double centre = 1e11) {
    Fleet f;
    f.random.seed(seed);
    std::normal_distribution<double> d;
    for (std::size_t i = 0; i < n; ++i) f.rate.push_back(centre * std::exp(spread * d(f.random)));
    return f;
  }

  /// Measures these positions into the case `c`.
  void measure(results::CaseData& c, const std::vector<std::size_t>& who, int n, double start_s = 0) const {
    std::normal_distribution<double> d;
    results::Metric m{metric, unit, results::Better::higher, true, results::Role::metric, true, {}};
    results::Metric f{"clock", "Hz", results::Better::none, false, results::Role::covariate, true, {}};
    c.sample.clear();
    c.block.clear();
    c.count.clear();
    c.t.clear();
    for (int s = 0; s < n; ++s) {
      c.sample.push_back(s);
      c.block.push_back(s * blocks / n);
    }
    for (const auto i : who) {
      c.count.push_back(n);
      for (int s = 0; s < n; ++s) {
        m.values.push_back(rate[i] * std::exp(noise * d(random)));
        c.t.push_back(start_s + block_s * c.block[static_cast<std::size_t>(s)] + 0.001 * s);
        if (!clock.empty()) f.values.push_back(clock[i]);
      }
    }
    c.metrics = {m};
    if (!clock.empty()) c.metrics.push_back(f);
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
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    measure(c, all, samples);
  }

  /// Does what the verdict asks for, as a run would, until it asks for nothing more; returns how many cases
  /// that took. `now`: the fleet as it is by then.
  static std::size_t run_retests(results::Results& r, const Fleet& now, int most = 5) {
    std::size_t done = 0;
    for (int round = 0; round < most; ++round) {
      const auto asked = verdict::retests(r, verdict::options_from(r));
      if (asked.empty()) break;
      for (const auto& a : asked) {
        const auto screened = std::find_if(r.cases.begin(), r.cases.end(), [&](const auto& c) {
          return c.suite == a.suite && c.name == a.name;
        });
        results::CaseData c = *screened;
        c.name += ".c" + std::to_string(a.number);
        std::set<std::int32_t> rows(a.candidates.begin(), a.candidates.end());
        rows.insert(a.controls.begin(), a.controls.end());
        const auto devices = rows_of_kind(r, "device");
        std::vector<std::size_t> who;
        for (const auto row : rows)
          who.push_back(
              static_cast<std::size_t>(std::find(devices.begin(), devices.end(), row) - devices.begin()));
        c.entity.assign(rows.begin(), rows.end());
        now.measure(c, who, a.samples, 100);
        r.cases.push_back(c);
        ++done;
      }
    }
    return done;
  }
};

}  // namespace assay::fabricate
