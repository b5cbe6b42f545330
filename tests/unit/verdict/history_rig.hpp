// SPDX-License-Identifier: Apache-2.0
// A fleet night after night, and a run judged against the nights before.
#pragma once

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "normal_noise.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/references.hpp"
#include "verdict/snapshot.hpp"

namespace assay::history_rig {

using namespace fabricate;

/// A fleet that is measured run after run: nodes differ by 1.7 %, each from run to run by `c_r`, samples by
/// 0.2 %, and the whole fleet by 1 %.
class Fleet {
 public:
  Fleet(int nodes, int metrics, double c_r, std::uint64_t seed)
      : noise_(seed), nodes_(nodes), metrics_(metrics), c_r_(c_r) {
    for (int i = 0; i < nodes * metrics; ++i) levels_.push_back(0.017 * noise_.next());
  }
  double drift_sigma = 0.01;

  /// Run number `day`; `slow` takes the fraction from node 5.
  results::Results run(int day, double slow = 0, double everybody = 0) {
    auto r = cluster(nodes_);
    char started[40];
    std::snprintf(started, sizeof started, "2026-01-%02dT00:00:00Z", day + 1);
    r.info.started = started;
    r.info.run_id = std::string("run ") + started;
    const auto rows = rows_of_kind(r, "device");
    for (int m = 0; m < metrics_; ++m) {
      const double drift = drift_sigma * noise_.next() + std::log1p(-everybody);
      std::vector<double> values;
      for (int i = 0; i < nodes_; ++i) {
        const double level = levels_[static_cast<std::size_t>(m * nodes_ + i)] + drift +
                             c_r_ * noise_.next() + 0.0008 * noise_.next();
        values.push_back(1e11 * std::exp(level) * (i == 5 ? 1 - slow : 1));
      }
      auto& c = add_case(r, "gemm", "fp32-n" + std::to_string(1024 + m), "throughput", "FLOP/s",
                         results::Better::higher, "device", rows, values);
      for (std::size_t s = 0; s < c.block.size(); ++s) c.block[s] = static_cast<std::int32_t>(s / 2);
      for (std::size_t s = 0; s < c.t.size(); ++s) c.t[s] = 20.0 * static_cast<double>(s % c.block.size());
    }
    add_selftest(r, "gemm");
    return r;
  }

  std::shared_ptr<std::vector<verdict::Snapshot>> days(int count, int slow_from = 1000, double slow = 0) {
    auto runs = std::make_shared<std::vector<verdict::Snapshot>>();
    for (int d = 0; d < count; ++d)
      runs->push_back(verdict::snapshot_of(run(d, d >= slow_from ? slow : 0), "day" + std::to_string(d)));
    return runs;
  }

 private:
  Noise noise_;
  int nodes_, metrics_;
  double c_r_;
  std::vector<double> levels_;
};

inline results::VerdictData judged(const results::Results& r,
                                   std::shared_ptr<const std::vector<verdict::Snapshot>> earlier) {
  auto options = verdict::options_from(r);
  options.earlier = std::move(earlier);
  options.history_name = "history";
  return verdict::judge(r, options);
}

inline std::vector<results::Finding> drifts(const results::VerdictData& v) {
  std::vector<results::Finding> found;
  for (const auto& f : v.findings)
    if (f.kind == "drift") found.push_back(f);
  return found;
}

}  // namespace assay::history_rig
