// SPDX-License-Identifier: Apache-2.0
// What judging costs in memory, at a size that fits a test: it must grow with the parts, and stay below what
// the samples themselves take. Time is measured by people (suites of 100,000 devices), not by tests.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "simulate/simulate.hpp"
#include "verdict/verdict.hpp"

namespace assay::operating {
namespace {

/// A field of /proc/self/status in bytes; 0 when it is not there.
double status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(field + ":")) continue;
    std::istringstream words(line.substr(field.size() + 1));
    double kib = 0;
    words >> kib;
    return 1024 * kib;
  }
  return 0;
}

/// Sets the high-water mark of this process back to what it uses now. False where the kernel does not offer
/// that.
bool reset_high_water() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  return static_cast<bool>(clear);
}

struct Cost {
  double judge_bytes = 0, sample_bytes = 0;
};

Cost cost_of(std::int64_t nodes) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.devices_per_node = 8;
  spec.metrics = simulate::pick_metrics({"6"});
  const auto r = simulate::screen(spec);
  Cost cost;
  for (const auto& c : r.cases)
    for (const auto& m : c.metrics)
      cost.sample_bytes += 8.0 * static_cast<double>(m.values.size() + c.t.size());
  reset_high_water();
  const double before = status_bytes("VmRSS");
  const auto verdict = verdict::judge(r, {});
  cost.judge_bytes = std::max(0.0, status_bytes("VmHWM") - before);
  EXPECT_NE(verdict.state, "FAIL");
  EXPECT_EQ(verdict.entities.size(), static_cast<std::size_t>(nodes) * (1 + 8 + 8));
  return cost;
}

TEST(Scale, JudgingTakesLessThanTheSamplesAndGrowsWithTheParts) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  if (!reset_high_water() || status_bytes("VmHWM") == 0)
    GTEST_SKIP() << "no privilege: this kernel does not tell the peak of memory";
  cost_of(50);  // what is allocated once
  const Cost small = cost_of(250), large = cost_of(1000);
  RecordProperty("judge_bytes", std::to_string(large.judge_bytes));
  EXPECT_LE(large.judge_bytes, 2 * large.sample_bytes);
  // Four times the parts: linear, with room for tables that double when they are full.
  EXPECT_LE(large.judge_bytes, 7 * std::max(small.judge_bytes, 4e6));
}

}  // namespace
}  // namespace assay::operating
