// SPDX-License-Identifier: Apache-2.0
#include "suites/memory/memory_suite.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "measure/statistics.hpp"
#include "suites/memory/fault_text.hpp"
#include "suites/memory/layout.hpp"
#include "suites/memory/stream_data.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

using namespace fakes;
using kernels::StreamOp;
constexpr std::size_t elements = 3 * memory::period + 17 * 8;

MemorySuite& suite() {
  static MemorySuite it;
  return it;
}
Bench bench() { return Bench(config_of(suite(), Level::smoke)); }

Case bandwidth_case(const std::string& op, const std::string& mode, bool cached = false,
                    double seconds = 0.05) {
  Case c;
  c.suite = "memory";
  c.operation = "stream";
  c.name = op + (cached ? "_cached-" : "-") + mode;
  c.seconds = seconds;
  c.parameters = {{"mode", mode}, {"operation", op}, {"elements", elements}, {"cached", cached ? 1 : 0}};
  return c;
}

Case pattern_case(const std::string& name, std::uint64_t bytes = 1 << 20) {
  Case c;
  c.suite = "memory";
  c.operation = "pattern";
  c.name = "pattern-" + name + "-together";
  c.bytes = bytes;
  c.parameters = {{"mode", "together"}, {"pattern", name}};
  return c;
}

TEST(MemoryRun, HealthyBandwidthAloneAndTogether) {
  for (const char* mode : {"alone", "together"})
    for (const char* op : {"read", "write", "copy", "triad"}) {
      Bench b = bench();
      b.run(suite(), bandwidth_case(op, mode));
      EXPECT_EQ(b.record.state_, results::CaseState::pass) << op << " " << mode << ": " << b.record.reason_;
      ASSERT_EQ(b.record.rows_.size(), 1u);
      const auto& row = b.record.rows_[0];
      const bool alone = std::string(mode) == "alone";
      EXPECT_EQ(row.entity, alone ? b.entities().device_of_rank(0) : b.entities().numa(0, 0));
      ASSERT_GE(row.t.size(), 1u);
      ASSERT_EQ(row.values.at("bandwidth").size(), row.t.size());
      for (const double v : row.values.at("bandwidth")) EXPECT_GT(v, 0);
      EXPECT_EQ(row.integers.at("elements"), std::vector<std::uint64_t>{elements});
      EXPECT_TRUE(b.record.metrics_.at(0).required);
    }
}

/// Rank 0 of two: the other one did the same, 20 ms later.
class LatePeer final : public SelfCommunicator {
 public:
  int size() const noexcept override { return 2; }
  std::vector<std::string> all_gather_text(const std::string& mine) override {
    Json other = Json::parse(mine);
    for (auto& start : other["start"]) start = start.get<double>() + 0.02;
    own = Json::parse(mine);
    return {mine, other.dump()};
  }
  Json own;
};

TEST(MemoryRun, ADomainCountsAllItsRanksFromFirstStartToLastEnd) {
  Bench b = bench();
  LatePeer peer;
  b.node = &peer;
  b.run(suite(), bandwidth_case("triad", "together"));
  ASSERT_EQ(b.record.rows_.size(), 1u);
  const auto& values = b.record.rows_[0].values.at("bandwidth");
  ASSERT_FALSE(values.empty());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double window = peer.own["seconds"][i].get<double>() + 0.02;
    EXPECT_NEAR(values[i] * window, 2.0 * 24 * elements, 1.0) << i;
  }
}

TEST(MemoryRun, CachedBandwidthIsACovariate) {
  Bench b = bench();
  b.run(suite(), bandwidth_case("triad", "alone", true));
  EXPECT_FALSE(b.record.metrics_.at(0).required);
  EXPECT_EQ(b.record.metrics_.at(0).role, results::Role::covariate);
}

TEST(MemoryRun, AWrongWordInATimedResultIsCaughtAndLocated) {
  const std::map<std::string, StreamOp> all{
      {"write", StreamOp::write}, {"copy", StreamOp::copy}, {"triad", StreamOp::triad}};
  for (const auto& [op, wanted] : all) {
    std::optional<Bench> b;
    bool damaged = false;
    std::uint64_t at = 0;
    const auto damage = [&, wanted = wanted](StreamOp done, double* a, std::size_t count) {
      if (done != wanted || count != elements || b->device.digests < 2 || std::exchange(damaged, true))
        return;
      a[777] += 1;
      at = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(a + 777) - b->device.arena().data());
    };
    const auto reached = [&, op = op](double seconds) {
      b.emplace(config_of(suite(), Level::smoke)).device.after_stream = damage;
      b->run(suite(), bandwidth_case(op, "together", false, seconds));
      return damaged;
    };
    ASSERT_TRUE(in_time(reached)) << op;
    EXPECT_EQ(b->record.state_, results::CaseState::fail) << op;
    EXPECT_EQ(b->record.miscompares(), 1u) << op;
    ASSERT_EQ(b->record.records_.size(), 1u) << op;
    EXPECT_EQ(b->record.records_[0].index, at) << op;
    EXPECT_NE(b->record.records_[0].expected, b->record.records_[0].actual) << op;
  }
}

TEST(MemoryRun, StoresThatAreLostShow) {
  Bench b = bench();
  b.device.drop_triad = true;
  b.run(suite(), bandwidth_case("triad", "alone"));
  EXPECT_EQ(b.record.state_, results::CaseState::fail);
  std::optional<Bench> later;
  int calls = 0;
  const auto reached = [&](double seconds) {
    calls = 0;
    later.emplace(config_of(suite(), Level::smoke)).device.after_stream = [&](StreamOp op, double*,
                                                                              std::size_t) {
      if (op == StreamOp::triad && ++calls == 6)
        later->device.drop_triad = true;  // the seventh finds the sixth's result
    };
    later->run(suite(), bandwidth_case("triad", "alone", false, seconds));
    return calls > 7;
  };
  ASSERT_TRUE(in_time(reached));
  EXPECT_EQ(later->record.state_, results::CaseState::fail);
}

Case latency_case(std::size_t bytes) {
  Case c;
  c.suite = "memory";
  c.name = "latency-alone";
  c.bytes = bytes;
  c.seconds = 0.05;
  c.parameters = {{"mode", "alone"}, {"cached", 0}};
  return c;
}

TEST(MemoryRun, LatencyIsMeasured) {
  Bench b = bench();
  b.run(suite(), latency_case(8 << 20));
  ASSERT_EQ(b.record.rows_.size(), 1u);
  for (const double v : b.record.rows_[0].values.at("latency")) {
    EXPECT_GT(v, 1e-10);
    EXPECT_LT(v, 1e-4);
  }
}

TEST(MemoryRun, AWordThatChangesInTheChainOfLoadsIsAMiscompare) {
  for (const std::size_t word : {0, 1}) {
    Bench b = bench();
    int walks = 0;
    std::uint64_t before = 0;
    // The first walk builds the chain.
    b.device.before_chase = [&](std::uint64_t* words, std::size_t) {
      if (++walks != 3) return;
      before = words[8 * 100 + word];
      words[8 * 100 + word] ^= std::uint64_t{1} << 5;
    };
    b.run(suite(), latency_case(64 << 10));
    EXPECT_EQ(b.record.state_, results::CaseState::fail);
    ASSERT_EQ(b.record.miscompares(), 1u);
    const auto& bad = b.record.records_.at(0);
    EXPECT_EQ(bad.index, 8u * (8 * 100 + word));
    EXPECT_EQ(bad.expected, before);
    EXPECT_EQ(bad.actual, before ^ (std::uint64_t{1} << 5));
    EXPECT_EQ(bad.reread, bad.actual);
  }
}

TEST(MemoryRun, EveryPatternPassesOnGoodMemory) {
  for (const auto& name : kernels::pattern_names()) {
    Bench b = bench();
    b.run(suite(), pattern_case(name));
    EXPECT_EQ(b.record.state_, results::CaseState::pass) << name << ": " << b.record.reason_;
    ASSERT_EQ(b.record.rows_.size(), 1u) << name;
    const auto& row = b.record.rows_[0];
    EXPECT_EQ(row.values.at("errors"), std::vector<double>{0}) << name;
    EXPECT_EQ(row.values.at("coverage"), std::vector<double>{1}) << name;
    EXPECT_EQ(row.values.at("bandwidth").size(), kernels::make_pattern(name, 1, 0).sweeps.size()) << name;
    ASSERT_EQ(b.record.selftest_.size(), 1u) << name;
    const auto& s = b.record.selftest_[0];
    EXPECT_EQ(s.checker, "memory");
    EXPECT_EQ(s.caught, 1) << name;
    EXPECT_EQ(s.located, 1) << name;
    EXPECT_EQ(s.counted, 1) << name;
    EXPECT_EQ(b.record.parameters_.at("planned_bytes"), 1 << 20);
  }
}

TEST(MemoryRun, AWordThatChangesUnderAPatternIsLocated) {
  Bench b = bench();
  int sweeps = 0;
  b.device.after_sweep = [&](const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count) {
    if (count == (1u << 17) && sweep.write && ++sweeps == 2) words[4242] ^= 1u << 7;
  };
  b.run(suite(), pattern_case("march-c"));
  EXPECT_EQ(b.record.state_, results::CaseState::fail);
  EXPECT_EQ(b.record.miscompares(), 1u);
  ASSERT_EQ(b.record.records_.size(), 1u);
  const auto& e = b.record.records_[0];
  EXPECT_EQ(e.index, 4242u * 8);
  EXPECT_EQ(e.expected ^ e.actual, 1u << 7);
  EXPECT_EQ(b.record.rows_.at(0).values.at("errors"), std::vector<double>{1});
}

TEST(MemoryRun, APatternBeginsNoSweepThatWouldEndLate) {
  Bench b = bench();
  Case c = pattern_case("own-address");
  c.deadline_s = 1e-9;
  b.run(suite(), c);
  EXPECT_EQ(b.record.state_, results::CaseState::incomplete);
  EXPECT_TRUE(b.record.reason_.starts_with("cut short after 0 of 3 sweeps")) << b.record.reason_;
}

TEST(MemoryRun, AFaultIsToldByItsKind) {
  Bench b = bench();
  int sweeps = 0;
  b.device.after_sweep = [&](const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count) {
    if (count != (1u << 17) || !sweep.write || ++sweeps != 2) return;
    for (std::size_t i = 0; i < 40; ++i) words[123 + i * 1024] ^= 1u << 7;
  };
  b.run(suite(), pattern_case("march-c"));
  ASSERT_EQ(b.record.events_.size(), 1u);
  EXPECT_EQ(b.record.events_[0].kind, "memory-fault");
  EXPECT_TRUE(
      b.record.events_[0].text.starts_with("column, every 1024 words: 40 wrong words of march-c sweep 2"))
      << b.record.events_[0].text;
  EXPECT_NE(b.record.events_[0].text.find("bits 7 1>0 40"), std::string::npos) << b.record.events_[0].text;
}

TEST(MemoryRun, OneMultiprocessorIsNamedOnlyBeyondOneTile) {
  const kernels::Sweep sweep;
  const auto text = [&](std::uint64_t words_apart) {
    memory::SweepErrors errors{sweep, 1, {}, {}, 6};
    for (std::uint64_t i = 0; i < 6; ++i) {
      errors.records.push_back({i * words_apart, 0, 1, 1});
      errors.records.back().sm = 5;
    }
    return fault_text("march-c", errors);
  };
  EXPECT_NE(text(4096).find("all seen by SM 5"), std::string::npos);
  EXPECT_EQ(text(8).find("all seen by"), std::string::npos) << "a row, which one block looks at";
}

TEST(MemoryRun, WhatACacheMayHaveServedIsNotCalledABadCell) {
  const kernels::Sweep sweep;
  memory::SweepErrors errors{sweep, 1, {}, {}, 1};
  errors.records.push_back({5, 0, 1, 1});
  EXPECT_EQ(fault_text("march-c", errors).find("could not be told"), std::string::npos);
  errors.records.back().cached = true;
  EXPECT_NE(fault_text("march-c", errors).find("could not be told"), std::string::npos);
  errors.records.back().reread = 0;
  EXPECT_EQ(fault_text("march-c", errors).find("could not be told"), std::string::npos) << "a bad read";
}

TEST(MemoryRun, GpuPatternUsesMeasuredOwnBandwidth) {
  MemorySuite fresh;
  const auto run = [&](const Case& c) {
    Bench b = bench();
    b.device.gpu = true;
    b.run(fresh, c);
    EXPECT_EQ(b.record.state_, results::CaseState::pass) << b.record.reason_;
    return b.record;
  };
  const auto value = [](const CaseRecord& r, const char* metric) {
    return r.rows_.at(0).values.at(metric).at(0);
  };
  const auto alone = run(pattern_case("own-address"));
  EXPECT_EQ(alone.parameters_.at("own_bandwidth_from"), "a copy of the region");
  EXPECT_GT(value(alone, "own_bandwidth"), 0);
  const auto efficiency = std::find_if(alone.metrics_.begin(), alone.metrics_.end(),
                                       [](const auto& m) { return m.name == "efficiency"; });
  EXPECT_EQ(efficiency->role, results::Role::metric);
  EXPECT_FALSE(efficiency->required);

  run(bandwidth_case("triad", "together"));
  EXPECT_EQ(run(pattern_case("own-address")).parameters_.at("own_bandwidth_from"), "a copy of the region")
      << "triad moves otherwise";
  const auto copy = run(bandwidth_case("copy", "together"));
  const auto both = run(pattern_case("own-address"));
  EXPECT_EQ(both.parameters_.at("own_bandwidth_from"), "copy-together");
  const double own = value(both, "own_bandwidth");
  const auto& samples = copy.rows_.at(0).values.at("bandwidth");
  EXPECT_NEAR(own, median(samples), 0.01 * own);
  EXPECT_NEAR(value(both, "efficiency"), median(both.rows_.at(0).values.at("bandwidth")) / own, 1e-9);

  Bench host = bench();
  host.run(fresh, pattern_case("own-address"));
  EXPECT_FALSE(host.record.parameters_.contains("own_bandwidth_from"));
  EXPECT_FALSE(host.record.rows_.at(0).values.contains("own_bandwidth"));
}

TEST(MemoryRun, ErrorsAreCountedBeyondWhatIsRecorded) {
  Bench b = bench();
  bool done = false;
  b.device.after_sweep = [&](const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count) {
    if (done || count != (1u << 17) || !sweep.write) return;
    done = true;
    for (std::size_t i = 0; i < 5000; ++i) words[i * 3] ^= 1;
  };
  b.run(suite(), pattern_case("own-address"));
  EXPECT_EQ(b.record.miscompares(), 5000u);
  EXPECT_EQ(b.record.rows_.at(0).values.at("errors"), std::vector<double>{5000});
  EXPECT_LE(b.record.records_.size(), 1000u);
}

TEST(MemoryRun, TheSelfTestAloneFindsTheChangedWord) {
  Case c;
  c.suite = "memory";
  c.operation = "selftest";
  c.name = "selftest-memory";
  c.bytes = memory::selftest_bytes;
  Bench b = bench();
  b.run(suite(), c);
  ASSERT_EQ(b.record.selftest_.size(), 1u);
  const results::SelftestRow& found = b.record.selftest_[0];
  EXPECT_EQ(std::tuple(found.injected, found.caught, found.located, found.counted), std::tuple(1, 1, 1, 1));
  EXPECT_EQ(b.record.rows_.at(0).values.at("detected"), std::vector<double>{1});
  EXPECT_EQ(b.record.miscompares(), 0u);
}

TEST(MemoryRun, WhatADeviceThrowsArrivesAndABlindCheckerShows) {
  Bench broken = bench();
  broken.device.after_stream = [](StreamOp, double*, std::size_t) {
    throw Error(ErrorKind::device, "the device fell off");
  };
  EXPECT_THROW(broken.run(suite(), bandwidth_case("triad", "together")), Error);
  // A checker that repairs what it should find: the detection test must say that it missed.
  Bench blind = bench();
  const std::uint64_t* original = nullptr;
  std::vector<std::uint64_t> saved;
  blind.device.after_sweep = [&](const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count) {
    if (sweep.write && !sweep.verify) saved.assign(words, words + count), original = words;
  };
  blind.device.before_sweep = [&](const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count) {
    if (sweep.verify && original == words && count == saved.size())
      std::copy(saved.begin(), saved.end(), words);
  };
  blind.run(suite(), pattern_case("own-address", 2 << 20));
  EXPECT_EQ(blind.record.selftest_.at(0).caught, 0);
  EXPECT_EQ(blind.record.selftest_.at(0).counted, 0);
}

}  // namespace
}  // namespace assay
