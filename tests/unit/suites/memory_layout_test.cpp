// SPDX-License-Identifier: Apache-2.0
#include "measure/sizing.hpp"
#include "suites/memory/layout.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "base/error.hpp"
#include "device/arena.hpp"
#include "kernels/pattern.hpp"
#include "suites/memory/memory_suite.hpp"
#include "suites/memory/stream_data.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

using namespace fakes;
using kernels::StreamOp;
constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;
using Options = std::map<std::string, std::vector<std::string>>;

std::vector<Case> plan_of(Level level, const Shape& shape, std::uint64_t bytes = 4 * gib,
                          const Options& options = {}) {
  const MemorySuite suite;
  const Config config = config_of(suite, level, options);
  const Topology topology = cluster(shape);
  return suite.plan({config, topology, bytes, 1});
}

const std::vector<Shape> shapes = {{1, 1, 1, 2}, {1, 4, 1, 4}, {1, 64, 1, 2}, {2, 2, 2, 8}, {2, 8, 2, 48}};

TEST(MemoryPlan, NamesAreLegalAndBytesFit) {
  for (const Level level : {Level::smoke, Level::quick, Level::standard, Level::extended, Level::soak})
    for (const Shape& shape : shapes)
      for (const std::uint64_t bytes : {4 * gib, 128 * mib, 16 * mib, mib / 2}) {
        const auto cases = plan_of(level, shape, bytes);
        EXPECT_TRUE(legal_and_unique(cases));
        for (const Case& c : cases) {
          if (c.not_applicable.empty()) {
            EXPECT_LE(c.bytes, bytes) << c.name;
            EXPECT_GT(c.bytes, 0u) << c.name;
          }
          EXPECT_GT(c.seconds, 0) << c.name;
          EXPECT_LE(c.min_seconds, c.seconds) << c.name;
        }
      }
}

TEST(MemoryPlan, SmokeIsAsShortOnANodeOfTwoTerabytes) {
  constexpr std::uint64_t node_bytes = 2048 * gib;
  for (const int ranks : {1, 2, 8}) {
    const auto cases =
        plan_of(Level::smoke, {1, ranks, 2, 128}, node_bytes / static_cast<std::uint64_t>(ranks));
    double expected_s = 0;
    std::uint64_t touched = 0;
    for (const Case& c : cases) {
      if (!c.not_applicable.empty()) continue;
      expected_s += c.expected_s();
      touched = std::max(touched, c.bytes);
    }
    // A core that touches 1 GB/s: what is prepared is what the cases need, whatever there is.
    EXPECT_LT(expected_s + static_cast<double>(touched) / 1e9, 10)
        << ranks << " " << expected_s << " " << touched;
  }
}

TEST(MemoryPlan, EveryLevelRequiresTriadLatencyAndItsPatterns) {
  const std::map<Level, std::size_t> patterns = {
      {Level::smoke, 2}, {Level::quick, 5}, {Level::standard, 10}, {Level::extended, 22}};
  for (const auto& [level, count] : patterns) {
    const auto cases = plan_of(level, {2, 2, 2, 8});
    for (const char* name :
         {"triad-alone", "triad-together", "latency-alone", "pattern-own-address-together"}) {
      const Case* c = find(cases, name);
      ASSERT_NE(c, nullptr) << name;
      EXPECT_TRUE(c->required) << name;
    }
    EXPECT_EQ(find(cases, "triad-together")->entity_kind, "numa");
    EXPECT_TRUE(find(cases, "triad-together")->addresses) << "wrong values are told by their byte";
    EXPECT_EQ(find(cases, "triad-together")->entities, 4);
    EXPECT_EQ(find(cases, "triad-alone")->entities, 4);
    std::size_t found = 0;
    for (const Case& c : cases) found += c.name.starts_with("pattern-") ? 1 : 0;
    EXPECT_EQ(found, count);
  }
}

std::vector<Case> gpu_plan_of(Level level, const Shape& shape, std::uint64_t bytes) {
  const MemorySuite suite;
  const Config config = config_of(suite, level);
  Topology topology = cluster(shape);
  topology.device_kind = "cuda";
  return suite.plan({config, topology, bytes, 1});
}

TEST(MemoryPlan, GpusHaveTheirOwnCasesAndRowsPerDevice) {
  const std::map<Level, std::size_t> patterns = {
      {Level::smoke, 2}, {Level::quick, 9}, {Level::standard, 21}, {Level::extended, 23}};
  for (const auto& [level, count] : patterns) {
    const auto cases = gpu_plan_of(level, {2, 4, 2, 8}, 60 * gib);
    EXPECT_TRUE(legal_and_unique(cases));
    const Case* triad = find(cases, "triad-together");
    ASSERT_NE(triad, nullptr);
    EXPECT_EQ(triad->entity_kind, "device");
    EXPECT_EQ(triad->entities, 8);
    const auto elements = triad->parameters.at("elements").get<std::uint64_t>();
    EXPECT_GE(elements * 3 * 8, memory::gpu_cache_multiple * memory::assumed_gpu_cache);
    std::size_t found = 0, on_chip = 0, copies = 0;
    for (const Case& c : cases) {
      found += c.name.starts_with("pattern-") ? 1 : 0;
      on_chip += c.parameters.contains("onchip") ? 1 : 0;
      copies += c.parameters.contains("copy") ? 1 : 0;
      EXPECT_LE(c.bytes, 60 * gib) << c.name;
    }
    EXPECT_EQ(found, count);
    EXPECT_EQ(on_chip, level == Level::smoke ? 0u : 3u);
    EXPECT_EQ(copies, level == Level::smoke ? 2u : level == Level::quick ? 14u : 22u);
    EXPECT_EQ(find(plan_of(level, {2, 4, 2, 8}), "onchip-l2-together"), nullptr);
  }
  // All of the memory that the plan gives is under test in patterns that are not too dear.
  const auto extended = gpu_plan_of(Level::extended, {1, 1, 1, 8}, 72 * gib);
  for (const char* name : {"own-address", "march-c", "random", "switching-noise", "march-ss"})
    EXPECT_EQ(find(extended, std::string("pattern-") + name + "-together")->bytes, 72 * gib) << name;
}

TEST(MemoryPlan, DomainsWithoutMemoryOrCoresAreNoEndsOfCopies) {
  const MemorySuite suite;
  Topology topology = cluster({1, 1, 3, 2});
  topology.device_kind = "cuda";
  auto& domains = topology.nodes[0].numa.edit();
  domains[0].memory_bytes = 0;
  domains.push_back({3, domains[1].cpus, gib});  // of memory without cores
  const auto cases = suite.plan({config_of(suite, Level::quick), topology, 4 * gib, 1});
  std::set<std::uint64_t> ends;
  for (const Case& c : cases)
    if (c.parameters.contains("numa")) ends.insert(c.parameters["numa"].get<std::uint64_t>());
  EXPECT_EQ(ends, (std::set<std::uint64_t>{1, 2}));
  for (const char* way : {"h2d", "d2h"})
    for (const char* domain : {"1", "2"}) {
      const Case* copy = find(cases, std::string(way) + "-134217728-numa" + domain + "-together");
      ASSERT_NE(copy, nullptr) << way << domain;
      EXPECT_EQ(copy->required, std::string(domain) == "1");
    }
}

TEST(MemoryPlan, ADomainWithoutCoresHasNoRow) {
  const MemorySuite suite;
  Topology topology = cluster({1, 2, 2, 2});
  auto& domains = topology.nodes[0].numa.edit();
  domains.push_back({2, domains[0].cpus, gib});
  domains.push_back({3, domains[1].cpus, gib});
  const auto cases = suite.plan({config_of(suite, Level::quick), topology, 4 * gib, 1});
  EXPECT_EQ(find(cases, "triad-together")->entities, 2);
}

/// A plan for GPUs whose first sweeps ran at these rates.
std::vector<Case> plan_at(const std::vector<double>& rates, Level level = Level::quick) {
  const MemorySuite suite;
  const Config config = config_of(suite, level);
  Topology topology = cluster({1, static_cast<int>(rates.size()), 1, 8});
  topology.device_kind = "cuda";
  for (std::size_t i = 0; i < rates.size(); ++i) topology.ranks[i].gpu_sweep_rate = rates[i];
  return suite.plan({config, topology, gib / 2, 1});
}

TEST(MemoryPlan, TimeOnASlowGpuIsPlannedByItsFirstSweep) {
  const auto unknown = plan_at({0, 0}), fast = plan_at({3e12, 2.9e12}), slow = plan_at({3e12, 0.3e9}),
             same = plan_at({3e12, 0.45e9});
  const char* name = "pattern-switching-noise-together";
  EXPECT_EQ(find(fast, name)->seconds, find(unknown, name)->seconds);
  EXPECT_EQ(find(fast, name)->bytes, find(unknown, name)->bytes);
  EXPECT_LT(find(slow, name)->bytes, find(fast, name)->bytes) << "what the time of the level allows";
  EXPECT_EQ(find(slow, name)->bytes, find(same, name)->bytes) << "steps, so that a run can be resumed";
  // The slowest rank reaches 0.3 GB/s; twice that time is planned at least.
  for (const Case& c : slow) {
    if (!c.parameters.contains("pattern")) continue;
    const auto pattern = kernels::make_pattern(c.parameters.at("pattern"), 0, 0);
    EXPECT_GE(c.seconds, 2 * static_cast<double>(c.bytes) * pattern.bytes_per_byte() / 0.3e9 * 0.99)
        << c.name;
  }
  EXPECT_GT(find(slow, "copy_cached-alone")->seconds, 10 * find(fast, "copy_cached-alone")->seconds);
}

TEST(MemoryLayout, ChunksAreLargeAndFewAndOnlyOfGpus) {
  EXPECT_EQ(memory::chunk_count(false, 64 * gib, 3), 1u);
  EXPECT_EQ(memory::chunk_count(true, gib, 3), 1u);
  EXPECT_EQ(memory::chunk_count(true, 8 * gib, 3), 4u);
  EXPECT_EQ(memory::chunk_count(true, 72 * gib, 3), 16u);
  EXPECT_EQ(memory::chunk_count(true, 72 * gib, 65), 15u) << "at most 1000 samples";
}

TEST(MemoryPlan, SmokeStaysSmallAndShort) {
  for (const Shape& shape : {Shape{1, 2, 1, 2}, Shape{1, 4, 1, 4}, Shape{1, 64, 1, 2}}) {
    const auto cases = plan_of(Level::smoke, shape, 4 * gib / static_cast<unsigned>(shape.ranks_per_node));
    for (const Case& c : cases) {
      if (c.name.starts_with("pattern-")) {
        EXPECT_LE(c.bytes * static_cast<unsigned>(shape.ranks_per_node), 256 * mib) << c.name;
      }
    }
    EXPECT_LT(expected_s(cases), 12);
  }
  EXPECT_LT(expected_s(plan_of(Level::smoke, {1, 2, 1, 2})), 4);
  EXPECT_LT(expected_s(plan_of(Level::quick, {1, 2, 1, 2}, 8 * gib)), 50);
}

TEST(MemoryPlan, WorkingSetsExceedFourTimesTheCache) {
  // Two ranks behind each 32 MiB cache: together they must exceed 128 MiB, alone each of them.
  const Topology topology = cluster({2, 4, 2, 8});
  EXPECT_GE(memory::needed_bytes(topology, true), 64 * mib);
  EXPECT_LT(memory::needed_bytes(topology, true), 128 * mib);
  EXPECT_GE(memory::needed_bytes(topology, false), 128 * mib);
  // One rank over both sockets works against both caches.
  EXPECT_GE(memory::needed_bytes(cluster({1, 1, 2, 8}), true), 256 * mib);
  // A machine that hides its caches is taken to have one.
  EXPECT_GE(memory::needed_bytes(cluster({1, 1, 1, 2, 0}), true), 4 * memory::assumed_cache);
}

TEST(MemoryPlan, WhatFitsOnlyTheCacheSaysSoAndJudgesNothing) {
  const auto cases = plan_of(Level::quick, {1, 1, 1, 2}, 64 * mib);
  EXPECT_EQ(find(cases, "triad-alone"), nullptr);
  const Case* c = find(cases, "triad_cached-alone");
  ASSERT_NE(c, nullptr);
  EXPECT_FALSE(c->required);
  EXPECT_TRUE(c->not_applicable.empty());
  const Case* latency = find(cases, "latency_cached-alone");
  ASSERT_NE(latency, nullptr);
  EXPECT_FALSE(latency->required);
}

TEST(MemoryLayout, FittedArraysMoveWhatTheyMust) {
  for (const StreamOp op : {StreamOp::read, StreamOp::write, StreamOp::copy, StreamOp::triad}) {
    const auto w = memory::fit_stream(op, 100 * mib, gib, 4);
    EXPECT_FALSE(w.cached);
    EXPECT_GE(w.count * sizeof(double) * kernels::stream_arrays(op), 100 * mib);
    EXPECT_EQ(w.count % 8, 0u);
    EXPECT_EQ(w.moved_bytes, w.count * kernels::stream_bytes_per_element(op));
    const auto small = memory::fit_stream(op, 100 * mib, 48 * mib, 1);
    EXPECT_TRUE(small.cached);
    EXPECT_GT(small.count, 0u);
    EXPECT_LE(small.bytes, 48 * mib);
  }
  EXPECT_EQ(memory::fit_stream(StreamOp::triad, 100 * mib, 2 * mib, 1).count, 0u);
}

TEST(MemoryLayout, ThreadsOfManyWorkOnTheirOwnPages) {
  constexpr std::size_t granule = Arena::granule_bytes;
  constexpr int threads = 192;
  const auto w = memory::fit_stream(StreamOp::triad, 288 * mib, 64 * gib, threads);
  const auto* data = reinterpret_cast<const void*>(granule * threads * 1000);  // where the arena may begin
  std::size_t all = 0, strange = 0;
  for (int t = 0; t < threads; ++t)
    for_share(data, w.count, sizeof(double), t, threads, false, [&](std::size_t from, std::size_t to) {
      all += to - from;
      for (std::size_t i = from; i < to; i += 512) {  // a page
        const auto owner = (reinterpret_cast<std::uintptr_t>(data) + i * sizeof(double)) / granule % threads;
        strange += (owner < 96) == (t < 96) ? 0 : 512;  // of the other socket
      }
    });
  EXPECT_EQ(all, w.count);
  EXPECT_LT(static_cast<double>(strange), 0.02 * static_cast<double>(all));
}

TEST(MemoryLayout, CheapPatternsCoverEverythingAndLeaveTheirTime) {
  std::vector<memory::PatternShare> p = {{"dear", 100, 0, 0, 0}, {"cheap", 4, 3, 0, 0}};
  memory::share_time(p, 20, 1e9, gib);
  EXPECT_EQ(p[1].bytes, gib);
  EXPECT_NEAR(p[1].seconds, 4.0 * static_cast<double>(gib) / 1e9 + 3, 1e-6);
  EXPECT_GT(p[0].bytes, 140 * mib);  // (20 s - 4.3 s) x 1 GB/s / 100
  EXPECT_LT(p[0].bytes, 160 * mib);
  memory::share_time(p, 0, 1e9, gib);
  EXPECT_EQ(p[0].bytes, mib);
}

TEST(MemoryPlan, OptionsChooseAndBadOnesAreNamed) {
  const auto cases =
      plan_of(Level::quick, {}, gib,
              {{"memory.patterns", {"none"}}, {"memory.ops", {"copy,read"}}, {"memory.modes", {"alone"}}});
  ASSERT_EQ(cases.size(), 4u);
  ASSERT_NE(find(cases, "selftest-memory"), nullptr);
  EXPECT_TRUE(find(cases, "selftest-memory")->spare);
  EXPECT_NE(find(cases, "copy-alone"), nullptr);
  EXPECT_NE(find(cases, "read-alone"), nullptr);
  EXPECT_NE(find(cases, "latency-alone"), nullptr);
  for (const char* bad : {"0", "1.5", "-1"})
    EXPECT_THROW(plan_of(Level::quick, {}, gib, {{"memory.fraction", {bad}}}), Error) << bad;
  const auto retention =
      plan_of(Level::quick, {}, gib, {{"memory.patterns", {"retention"}}, {"memory.retention", {"3s"}}});
  const Case* c = find(retention, "pattern-retention-together");
  ASSERT_NE(c, nullptr);
  EXPECT_GE(c->seconds, 6);
  EXPECT_EQ(c->parameters.at("pause_s"), 3.0);
}

TEST(MemoryPlan, CaseParametersDoNotDependOnFreeMemory) {
  // case_key is made from them: a run with a little more free memory must stay comparable.
  const auto a = plan_of(Level::quick, {1, 2, 1, 2}, 4 * gib),
             b = plan_of(Level::quick, {1, 2, 1, 2}, 5 * gib);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(a[i].parameters.dump(), b[i].parameters.dump()) << a[i].name;
}

TEST(MemoryPatternSizing, KeepsItsShareAtAnyRate) {
  for (const std::uint64_t region : {2 * mib, 64 * mib, 3 * gib, 2048 * gib})
    for (double rate = 1e3; rate < 2e12; rate *= 10)
      for (const double share_s : {-1.0, 0.25, 20.0, 900.0}) {
        constexpr double bytes_per_byte = 10;
        const std::uint64_t fit = fitted_region(region, rate, bytes_per_byte, share_s);
        EXPECT_LE(fit, region);
        EXPECT_GE(fit, 2 * mib);
        EXPECT_EQ(fit % (2 * mib), 0U);
        const double needed_s = static_cast<double>(region) * bytes_per_byte / rate;
        if (needed_s <= share_s) {
          EXPECT_EQ(fit, region) << rate;
        } else if (fit > 2 * mib) {
          EXPECT_LE(static_cast<double>(fit) * bytes_per_byte / rate, share_s) << rate;
        }
        EXPECT_EQ(memory::probe_bytes(region), region / 16);
      }
}

TEST(MemoryPatternSizing, PausesAreNoTimeOfSweeps) {
  // 40 s of sweeps and two pauses of 2 min, with 6 min left: 60 s for the sweeps.
  EXPECT_DOUBLE_EQ(memory::sweeps_share_s(280, 360, 1e6, 240), 60);
  EXPECT_DOUBLE_EQ(memory::sweeps_share_s(10, 1e6, 1e6, 0), 60) << "six times the plan";
  EXPECT_LT(memory::sweeps_share_s(280, 200, 1e6, 240), 0) << "not even the pauses fit";
}

TEST(MemoryPatternSizing, EndsBeforeTheCaseIsLate) {
  // A pattern of 100 s is late after 410 s: a longer one with sweeps of a minute each is taken for hung.
  EXPECT_DOUBLE_EQ(memory::sweeps_share_s(100, 1e6, 410, 0), 307.5);
  EXPECT_DOUBLE_EQ(memory::sweeps_share_s(100, 1e6, 410, 40), 267.5) << "the pauses are within it";
  for (const double planned_s : {0.25, 4.0, 20.0, 100.0, 900.0})
    for (const double pauses_s : {0.0, 0.5 * planned_s}) {
      const double late_s = 10 + 4 * planned_s,
                   share_s = memory::sweeps_share_s(planned_s, 1e6, late_s, pauses_s);
      EXPECT_LT(share_s + pauses_s, late_s) << planned_s;
      EXPECT_GE(share_s, 2 * (planned_s - pauses_s)) << "what is half as fast as planned is tested in full";
    }
}

TEST(MemoryPatternSizing, ARegionInChunksMayBeLate) {
  EXPECT_EQ(memory::time_until_late_s(1, 410), 410);
  const double late_s = memory::time_until_late_s(2, 410);
  EXPECT_DOUBLE_EQ(memory::sweeps_share_s(100, 1e6, late_s, 0), 600) << "six times the plan";
}

TEST(MemoryPlan, ALongSoakIsPlannedBySegments) {
  const MemorySuite suite;
  Config config = config_of(suite, Level::soak);
  const auto seconds = [&](double duration_s) {
    config.duration_s = duration_s;
    const Topology topology = cluster({1, 2, 2, 2});
    double sum = 0;
    for (const Case& c : suite.plan({config, topology, 64 * gib, 1}))
      if (c.operation == "pattern") sum += c.seconds - 2 * c.parameters.value("pause_s", 0.0);
    return sum;
  };
  EXPECT_NEAR(seconds(8 * 3600), seconds(1800), 1);
  EXPECT_LT(seconds(8 * 3600), 0.31 * 1800);
}

TEST(MemoryLatencySizing, KeepsItsShareAtAnyLatency) {
  constexpr std::uint64_t most = 1 << 20;
  for (double step_s = 1e-10; step_s < 1; step_s *= 10) {
    const std::uint64_t steps = memory::fitted_steps(most, step_s, 0.05);
    EXPECT_TRUE(steps == most / 64 || static_cast<double>(steps) * step_s <= 0.05) << step_s;
    EXPECT_TRUE(steps == most || 2 * static_cast<double>(steps) * step_s > 0.05) << step_s;
  }
}

TEST(StreamData, ExpectedValuesAreExactAndAlternate) {
  fakes::HookedDevice device;
  memory::StreamData data(device, kernels::StreamOp::triad, 3 * memory::period + 17 * 8, 5);
  for (int i = 0; i < 20; ++i) {
    data.run(1);
    EXPECT_EQ(data.check().count, 0u) << i;
  }
  const auto* words = reinterpret_cast<const double*>(device.arena().data());
  const double last = words[(19 % memory::rotations) * memory::period];
  data.run(1);
  EXPECT_NE(words[(20 % memory::rotations) * memory::period], last);
}

}  // namespace
}  // namespace assay
