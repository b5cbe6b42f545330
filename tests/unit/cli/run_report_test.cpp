// SPDX-License-Identifier: Apache-2.0
// What `run` says of a soak in the end: the verdict on all of its files, and its exit code.
#include "cli/run_report.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "results/save.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"

namespace assay::cli {
namespace {

constexpr int last_segment = 8;

/// A node of eight loses one percent more in each segment from the fourth on. Each file alone is `state`.
results::Results segment_of_soak(int segment, const std::string& state = "PASS", int code = 0) {
  simulate::Spec spec;
  spec.nodes = 8;
  spec.metrics = simulate::pick_metrics({"memory/triad-together", "gemm/fp32-n4096-together"});
  spec.seed = 6;
  spec.run = static_cast<std::uint64_t>(segment - 1);
  spec.started = fmt::format("2026-01-31T{:02}:00:00Z", segment - 1);
  if (segment > 3) spec.faults = {simulate::parse_fault(fmt::format("slow:node=3,percent={}", segment - 3))};
  results::Results r = simulate::screen(spec);
  r.config["strict"] = true;
  r.verdict = verdict::judge(r, {});
  r.verdict->state = state;
  r.verdict->exit_code = code;
  return r;
}

class RunReportTest : public ::testing::Test {
 protected:
  RunReportTest() {
    config_.level = Level::soak;
    config_.duration_s = last_segment * config_.segment_s;
    config_.quiet = config_.strict = true;
    config_.color = "never";
    config_.out = (temporary_.path() / "n.h5").string();
  }
  std::string file_of(int segment) const {
    return (temporary_.path() / fmt::format("n-seg{:02}.h5", segment)).string();
  }
  /// The exit code of what is told of a segment, and the last line of it.
  std::pair<int, std::string> told(RunReports& reports, int segment, const results::Results& r) {
    ::testing::internal::CaptureStdout();
    const int code =
        reports.tell({r, *r.verdict, file_of(segment), 0, config_.budget_s(), segment == last_segment});
    const std::string text = ::testing::internal::GetCapturedStdout();
    return {code, text.substr(text.rfind('\n', text.size() - 2) + 1)};
  }

  TemporaryFolder temporary_;
  Config config_;
};

TEST_F(RunReportTest, AFailureOfAnEarlierSegmentIsThatOfTheSoak) {
  RunReports reports(config_);
  for (int segment = 1; segment < last_segment; ++segment) {
    const bool fails = segment == 2;
    const auto r = segment_of_soak(1, fails ? "FAIL" : "PASS", fails ? 2 : 0);
    const auto [code, line] = told(reports, segment, r);
    EXPECT_EQ(code, segment == 1 ? 0 : 2);
    EXPECT_EQ(line, fails ? "FAIL (exit 2)\n" : "PASS (exit 0)\n");
  }
  const auto [code, line] = told(reports, last_segment, segment_of_soak(1));
  EXPECT_EQ(code, 2);
  EXPECT_EQ(line, "FAIL (exit 2)\n");
}

TEST_F(RunReportTest, WhatAPartLosesFromSegmentToSegmentIsTold) {
  RunReports reports(config_);
  int code = 0;
  std::string line;
  for (int segment = 1; segment <= last_segment; ++segment) {
    EXPECT_EQ(code, 0);
    std::tie(code, line) = told(reports, segment, segment_of_soak(segment));
  }
  EXPECT_EQ(code, 1);
  EXPECT_EQ(line, "WARN (exit 1)\n");
}

/// Where another process starts the ranks, they leave the exit code to their files.
TEST_F(RunReportTest, TheProcessThatLaunchesLooksForItInTheFiles) {
  for (int segment = 1; segment <= last_segment; ++segment)
    results::save(segment_of_soak(segment), file_of(segment), false);
  EXPECT_EQ(code_with_drift(config_, ExitCode::pass), ExitCode::warn);
  EXPECT_EQ(code_with_drift(config_, ExitCode::inconclusive), ExitCode::inconclusive);
  config_.strict = false;
  EXPECT_EQ(code_with_drift(config_, ExitCode::pass), ExitCode::pass);
}

}  // namespace
}  // namespace assay::cli
