// SPDX-License-Identifier: Apache-2.0
// What the cases of products do on a device that is much slower than planned.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "suites/gemm/gemm_suite.hpp"
#include "suites/gemm/gemm_work.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

using namespace fakes;

Case series_case(std::size_t n, double seconds, double sustained_s = 0) {
  Case c;
  c.suite = "gemm";
  c.name = "fp32-n" + std::to_string(n) + "-together";
  c.bytes = std::uint64_t{64} << 20;
  c.seconds = seconds;
  c.parameters = {{"dtype", "fp32"}, {"mode", "together"}, {"n", n}, {"cache_bytes", 1 << 16}};
  if (sustained_s > 0) c.parameters["sustained_s"] = sustained_s;
  return c;
}

/// A device each of whose products takes `product_s`, whatever its size.
struct SlowBench : Bench {
  explicit SlowBench(double product_s) : Bench(config_of(GemmSuite(), Level::smoke)) {
    device.after_gemm = [this, product_s](void*) {
      ++products;
      for (const double until = now_s() + product_s; now_s() < until;) {
      }
    };
  }
  /// Runs the case, and returns the progress that it told of.
  std::uint64_t run_counted(const Case& c, double end_in_s = 1e6) {
    supervisor::Heartbeat heartbeat;
    with(c, [&](Context& context) {
      context.heartbeat = &heartbeat;
      context.end_s = now_s() + end_in_s;
      GemmSuite().run(c, context);
    });
    return heartbeat.iteration;
  }
  std::uint64_t integer(const char* name) const { return record.rows_.at(0).integers.at(name).at(0); }
  bool told(const std::string& text) const {
    return std::any_of(record.events_.begin(), record.events_.end(), [&](const auto& e) {
      return e.kind == "gemm-cut-short" && e.text.find(text) != std::string::npos;
    });
  }
  int products = 0;
};

TEST(GemmSlow, ASustainedSeriesIsMadeSmallerToo) {
  SlowBench b(0.02);  // a product of n/4: the whole one would take 1.3 s
  b.run_counted(series_case(256, 0.3, 0.3));
  EXPECT_EQ(b.integer("size"), 64U);
  EXPECT_EQ(b.integer("digest"), results::no_digest);
  EXPECT_TRUE(b.told("n=64 instead of 256"));
}

/// Of long products one tells the rate, and those of inputs that the series did not reach are left out.
TEST(GemmSlow, LongProductsAreFewAndEachIsToldAsProgress) {
  for (const double sustained_s : {0.0, 0.2}) {
    SlowBench b(1.01 * gemm::long_product_s);
    const std::uint64_t told = b.run_counted(series_case(64, 0.2, sustained_s));
    const int expected = sustained_s > 0 ? 2 : 1;
    EXPECT_EQ(b.products, expected) << "the sample, and one before a sustained series";
    EXPECT_GE(told, static_cast<std::uint64_t>(expected));
    EXPECT_EQ(b.integer("digest"), results::no_digest);
    EXPECT_TRUE(b.told("no digest"));
  }
}

/// It loads a kernel, and need not be long itself.
TEST(GemmSlow, TheFirstProductOfAGpuIsNotItsRate) {
  SlowBench b(0);
  b.device.streams = true;
  b.device.after_gemm = [&](void*) {
    if (b.products++ > 0) return;
    for (const double until = now_s() + 1.01 * gemm::long_product_s; now_s() < until;) {
    }
  };
  b.run_counted(series_case(64, 0.2));
  EXPECT_GT(b.integer("repetitions"), 1U) << "as many as hide a launch";
}

Case exact_case() {
  Case c;
  c.suite = "gemm";
  c.name = "fp64-exact-n64";
  c.operation = "exact";
  c.parameters = {{"dtype", "fp64"}, {"mode", "together"}, {"n", 64}, {"rounds", 3}};
  return c;
}

TEST(GemmSlow, AnExactPassTellsOfEachRound) {
  SlowBench b(0);
  EXPECT_EQ(b.run_counted(exact_case()), 3U);
  EXPECT_EQ(b.record.state_, results::CaseState::pass) << b.record.reason_;
  EXPECT_NE(b.integer("digest"), results::no_digest);
}

TEST(GemmSlow, AnExactPassEndsBeforeItIsLate) {
  SlowBench b(0);
  Case c = exact_case();
  c.deadline_s = 1e-9;
  b.run_counted(c);
  EXPECT_EQ(b.record.state_, results::CaseState::incomplete);
  EXPECT_TRUE(b.record.reason_.starts_with("cut short after 1 of 3 rounds")) << b.record.reason_;
  EXPECT_EQ(b.record.rows_.at(0).values.at("errors"), std::vector<double>{0});
  EXPECT_EQ(b.integer("digest"), results::no_digest) << "that of all rounds is another one";
  EXPECT_EQ(b.record.selftest_.size(), 1U);
}

TEST(GemmSlow, AnExactPassBeyondItsTimeIsCompleteWhereItIsNotLate) {
  SlowBench b(0);
  Case c = exact_case();
  c.deadline_s = 1e6;
  EXPECT_EQ(b.run_counted(c, 0), 3U);
  EXPECT_EQ(b.record.state_, results::CaseState::pass) << b.record.reason_;
  EXPECT_NE(b.integer("digest"), results::no_digest);
}

}  // namespace
}  // namespace assay
