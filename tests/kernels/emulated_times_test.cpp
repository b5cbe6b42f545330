// SPDX-License-Identifier: Apache-2.0
// What lies within the times of cases on a GPU, by a clock that goes on with the work of the
// emulation alone.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <map>
#include <string>

#include "suites/gemm/gemm_suite.hpp"
#include "suites/memory/layout.hpp"
#include "suites/memory/memory_suite.hpp"
#include "suites/train/analysis.hpp"
#include "suites/train/train_suite.hpp"
#include "tests/emulation/runtime.hpp"
#include "tests/kernels/gpu_train_rig.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay::train {
namespace {

constexpr long usual_piece_ns = 10'000'000, reading_ns = 1'000;
constexpr double piece_s = 1e-9 * usual_piece_ns, readings_s = 1e-6 * reading_ns;  // 1000 readings
std::atomic<bool> counting{false};
std::atomic<long> piece_ns{usual_piece_ns};
std::atomic<long> readings{0};

}  // namespace
}  // namespace assay::train

/// In place of libc's, for all of this program.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using namespace assay::train;
  if (clock != CLOCK_MONOTONIC || !counting) return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  const long ns = static_cast<long>(emulation::pieces_done) * piece_ns + ++readings * reading_ns;
  *time = {1000 + ns / 1'000'000'000, ns % 1'000'000'000};
  return 0;
}

namespace assay::train {
namespace {

/// Every piece of work on a stream takes 10 ms (piece_ns), whatever it is; nothing else takes any time.
class EmulatedTimes : public testing::Test {
 protected:
  EmulatedTimes() {
    for (const OptionSpec& spec : suite.options())
      if (!config.options.has(spec.name) && spec.default_text.empty()) config.options.set(spec, {});
    counting = true;
  }
  ~EmulatedTimes() override {
    counting = false;
    piece_ns = usual_piece_ns;
  }

  /// `use` gets a case and its context, with the first GPU.
  template <class Use>
  CaseRecord with(const std::string& name, const Use& use) {
    const auto cases = suite.plan({config, topology, 1u << 30, 7});
    const Case& c = *fakes::find(cases, name);
    RetestOrder few;
    few.samples = 3 * RetestOrder::visits;
    few.devices = {entities.device_of_rank(0)};
    return with_case(config, c, &few, [&](Context& context) { use(c, context); });
  }
  template <class Use>
  CaseRecord with_case(const Config& of, const Case& c, const RetestOrder* retest, const Use& use) {
    const std::unique_ptr<Device> device = first_gpu();
    device->reserve(c.bytes);
    fakes::SelfCommunicator world;
    CaseRecord record;
    Context context{{of, topology, entities, *device, world, world, nullptr},
                    RandomStream(7, c.path()),
                    now_s(),
                    now_s() + 600,
                    record,
                    entities.device_of_rank(0),
                    nullptr,
                    retest};
    use(context);
    return record;
  }
  CaseRecord run(Suite& of, const Case& c) {
    const Config own = fakes::config_of(of, Level::smoke);
    return with_case(own, c, nullptr, [&](Context& context) { of.run(c, context); });
  }

  const Topology topology = fakes::cluster({});
  const EntityTable entities{topology};
  TrainSuite suite;
  Config config = fakes::config_of(suite, Level::quick, {{"train.batch", {"1"}}, {"train.steps", {"1"}}});
};

TEST_F(EmulatedTimes, TheDataStageIsTheLoadOfTokensAndTargets) {
  for (const char* name : {"tiny-together", "tiny-lockstep", "tiny-alone"}) {
    SCOPED_TRACE(name);
    const CaseRecord record = with(name, [&](const Case& c, Context& context) { suite.run(c, context); });
    ASSERT_FALSE(record.rows_.empty());
    for (const auto& row : record.rows_) {
      const std::vector<double>& data = row.values.at("data");
      ASSERT_FALSE(data.empty());
      for (const double seconds : data)
        EXPECT_NEAR(seconds, 2 * piece_s, readings_s) << "and no copy of the training state";
    }
  }
}

TEST_F(EmulatedTimes, RateOfProductsIsTimedFor20Milliseconds) {
  with("tiny-together", [&](const Case& c, Context& context) {
    const TrainWork work = work_from(c, context.device);
    const double n = static_cast<double>(gemm_rows(true, work.preset.model));
    const std::uint64_t before = emulation::pieces_done;
    EXPECT_NEAR(own_gemm_rate(work, context) / (2 * n * n * n / piece_s), 1, 1e-3);
    EXPECT_EQ(emulation::pieces_done - before, 1 + 1 + 5 * 2u)
        << "the fill, one product, which is too short, and five times two";
  });
}

TEST_F(EmulatedTimes, ASampleOfProductsHoldsNoReadingOfTheClock) {
  constexpr std::size_t n = 64;
  Case c;
  c.suite = "gemm";
  c.name = "bf16-n64-together";
  c.operation = "product";
  c.bytes = std::uint64_t{1} << 20;
  c.seconds = 1;
  c.parameters = {{"dtype", "bf16"}, {"mode", "together"}, {"n", n}, {"cache_bytes", 1 << 16}};
  GemmSuite gemm;
  const CaseRecord record = run(gemm, c);
  ASSERT_EQ(record.state_, results::CaseState::pass) << record.reason_;
  const auto& row = record.rows_.at(0);
  const auto products = static_cast<double>(row.integers.at("repetitions").at(0));
  ASSERT_FALSE(row.values.at("throughput").empty());
  for (const double rate : row.values.at("throughput"))
    EXPECT_NEAR(products * 2 * n * n * n / rate, products * piece_s, readings_s);
  EXPECT_EQ(row.values.at("clock").size(), row.values.at("throughput").size());
}

/// Of a GPU as many passes as take 5 ms, at most as many as begin at different places.
TEST_F(EmulatedTimes, ABandwidthSampleHasAsManyPassesAsHideALaunch) {
  Case c;
  c.suite = "memory";
  c.operation = "stream";
  c.name = "triad-together";
  c.seconds = 0.2;
  c.parameters = {{"mode", "together"},
                  {"operation", "triad"},
                  {"elements", std::size_t{memory::period} + 160},
                  {"cached", 0}};
  const std::map<long, double> passes_by_piece_ns = {{10'000'000, 1}, {2'000'000, 3}, {200'000, 7}};
  for (const auto& [ns, passes] : passes_by_piece_ns) {
    SCOPED_TRACE(ns);
    piece_ns = ns;
    MemorySuite suite_of_memory;
    const CaseRecord record = run(suite_of_memory, c);
    ASSERT_EQ(record.state_, results::CaseState::pass) << record.reason_;
    const auto samples = static_cast<double>(record.rows_.at(0).t.size());
    ASSERT_GT(samples, 0);
    EXPECT_NEAR(record.timed_s_ / samples / (1e-9 * static_cast<double>(ns)), passes, 0.1);
  }
}

}  // namespace
}  // namespace assay::train
