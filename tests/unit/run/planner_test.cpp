// SPDX-License-Identifier: Apache-2.0
#include "run/planner.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "results/partial.hpp"
#include "results/save.hpp"
#include "run/agree_config.hpp"
#include "run/assemble.hpp"

namespace assay {
namespace {

constexpr std::uint64_t gib = 1ULL << 30;

Topology nodes_of(std::vector<std::uint64_t> available_bytes, int ranks_per_node) {
  Topology topology;
  for (std::size_t n = 0; n < available_bytes.size(); ++n) {
    Node node;
    node.hostname = "node" + std::to_string(10000 + n);
    node.memory_bytes = 2 * available_bytes[n];
    node.memory_available_bytes = available_bytes[n];
    topology.nodes.push_back(node);
    for (int r = 0; r < ranks_per_node; ++r) {
      RankPlace place;
      place.rank = static_cast<int>(topology.ranks.size());
      place.node = static_cast<int>(n);
      place.local_rank = r;
      place.local_size = ranks_per_node;
      place.cpus = {r};
      topology.ranks.push_back(place);
    }
  }
  return topology;
}

/// Plans what it is told.
class FixedSuite : public Suite {
 public:
  explicit FixedSuite(std::vector<Case> cases) : cases_(std::move(cases)) {}
  std::string_view name() const noexcept override { return "fixed"; }
  std::string_view summary() const noexcept override { return "for tests"; }
  std::vector<OptionSpec> options() const override { return {}; }
  std::vector<results::MetricSpec> metrics() const override { return {}; }
  std::vector<Case> plan(const PlanInput&) const override { return cases_; }
  void run(const Case&, Context&) override {}

 private:
  std::vector<Case> cases_;
};

/// One required case by each amount of memory in GiB, and with one of `least` no plan for less.
class NeedySuite final : public FixedSuite {
 public:
  explicit NeedySuite(std::uint64_t least = 0) : FixedSuite({}), least_(least) {}
  std::vector<Case> plan(const PlanInput& input) const override {
    if (input.memory_per_rank_bytes < least_) throw_usage("too little");
    std::vector<Case> cases;
    for (const std::uint64_t need : {1, 2, 3}) {
      Case& c = cases.emplace_back();
      c.suite = "fixed";
      c.name = std::to_string(need) + "-gib";
      c.required = need != 3;
      c.bytes = std::min(input.memory_per_rank_bytes, need * gib);
      if (c.bytes < need * gib / 2) c.not_applicable = "too little memory";
    }
    return cases;
  }

 private:
  std::uint64_t least_;
};

Case make(const std::string& name, Stage stage, double seconds, bool required) {
  Case c;
  c.suite = "fixed";
  c.name = name;
  c.stage = stage;
  c.seconds = seconds;
  c.required = required;
  return c;
}

Config config_of(Level level, std::uint64_t seed = 1) {
  Config config;
  config.suites = {"fixed"};
  config.level = level;
  config.seed = seed;
  return config;
}

std::vector<std::unique_ptr<Suite>> suite_with(std::vector<Case> cases) {
  std::vector<std::unique_ptr<Suite>> suites;
  suites.push_back(std::make_unique<FixedSuite>(std::move(cases)));
  return suites;
}

TEST(Memory, LeavesTheReserveAndTakesThePoorestNode) {
  EXPECT_EQ(memory_per_rank(nodes_of({64 * gib, 32 * gib}, 1), 0.5), 16 * gib);
  EXPECT_EQ(memory_per_rank(nodes_of({64 * gib}, 4), 0.5), 8 * gib);
  EXPECT_EQ(memory_per_rank(nodes_of({10 * gib}, 1), 0.9), 6 * gib) << "4 GiB stay free";
}

TEST(Memory, WhatMostRanksGotInTimeLimitsIt) {
  constexpr std::uint64_t mib = 1 << 20;
  EXPECT_EQ(memory_in_time({600 * mib, 600 * mib, 600 * mib}), 592 * mib) << "in steps of 16 MiB";
  EXPECT_EQ(memory_in_time({0}), least_memory_bytes);
  EXPECT_EQ(memory_in_time({gib / 2, 2 * gib, gib, gib}), gib / 2);
  EXPECT_EQ(memory_in_time({2 * mib, 2 * gib, gib, gib, gib}), gib) << "one is 500 times slower";
  EXPECT_EQ(memory_in_time({2 * mib, gib}), gib);
  Config config;
  for (const auto& [level, seconds] : {std::pair(Level::smoke, 6.0), std::pair(Level::quick, 24.0)}) {
    config.level = level;
    EXPECT_DOUBLE_EQ(memory_seconds(config), seconds);
  }
  config.level = Level::standard;
  EXPECT_TRUE(std::isinf(memory_seconds(config)));
}

TEST(Memory, ThatIsLateMakesAPlanWithLessThatSaysWhatIsGone) {
  Config config;
  config.suites = {"fixed"};
  config.level = Level::smoke;
  const auto topology = nodes_of({64 * gib}, 1);
  std::vector<std::unique_ptr<Suite>> suites;
  suites.push_back(std::make_unique<NeedySuite>());
  const Plan whole = make_plan(config, topology, suites);
  ASSERT_EQ(whole.arena_bytes, 3 * gib);
  auto less = limited_plan(config, topology, suites, whole, gib);
  ASSERT_TRUE(less);
  EXPECT_EQ(less->plan.memory_per_rank_bytes, gib);
  EXPECT_EQ(less->finding.severity, "info") << less->finding.text;
  less = limited_plan(config, topology, suites, whole, gib / 2);
  ASSERT_TRUE(less);
  EXPECT_EQ(less->finding.severity, "warn");
  EXPECT_NE(less->finding.text.find("not measured: fixed/2-gib"), std::string::npos) << less->finding.text;
  config.expect_devices = 1;
  EXPECT_EQ(limited_plan(config, topology, suites, whole, gib / 2)->finding.severity, "inconclusive");
  config.faults = {parse_fault("hang:case=1-gib")};
  EXPECT_TRUE(limited_plan(config, topology, suites, whole, gib / 2));
  config.faults = {parse_fault("hang:case=2-gib")};
  EXPECT_FALSE(limited_plan(config, topology, suites, whole, gib / 2)) << "a fault is to be in it";
  config.faults.clear();
  suites.front() = std::make_unique<NeedySuite>(2 * gib);
  EXPECT_FALSE(limited_plan(config, topology, suites, whole, gib)) << "an option asks for more";
}

TEST(Memory, TheCgroupLimitCounts) {
  auto topology = nodes_of({64 * gib}, 1);
  topology.nodes[0].cgroup_limit_bytes = 20.0 * gib;
  topology.nodes[0].cgroup_used_bytes = 4.0 * gib;
  EXPECT_EQ(memory_per_rank(topology, 0.5), 8 * gib);
}

TEST(Plan, StagesInOrderAndShuffledInside) {
  std::vector<Case> cases;
  for (int i = 0; i < 20; ++i)
    cases.push_back(make("c" + std::to_string(i), i % 2 == 0 ? Stage::world : Stage::node_local, 0.01, true));
  const auto topology = nodes_of({8 * gib}, 2);
  const auto a = make_plan(config_of(Level::quick, 1), topology, suite_with(cases));
  const auto b = make_plan(config_of(Level::quick, 2), topology, suite_with(cases));
  for (std::size_t i = 1; i < a.cases.size(); ++i) EXPECT_LE(a.cases[i - 1].stage, a.cases[i].stage);
  std::vector<std::string> names_a, names_b;
  for (const Case& c : a.cases) names_a.push_back(c.name);
  for (const Case& c : b.cases) names_b.push_back(c.name);
  EXPECT_NE(names_a, names_b);
  EXPECT_NE(a.hash, b.hash);
  EXPECT_EQ(a.hash, make_plan(config_of(Level::quick, 1), topology, suite_with(cases)).hash);
}

TEST(Plan, RequiredCasesAreScaledIntoTheBudget) {
  std::vector<Case> cases;
  for (int i = 0; i < 10; ++i) cases.push_back(make("c" + std::to_string(i), Stage::world, 10, true));
  const auto plan = make_plan(config_of(Level::smoke), nodes_of({8 * gib}, 1), suite_with(cases));
  EXPECT_LE(plan.required_s(), 15.0 * 0.86);
  EXPECT_GE(plan.required_s(), 15.0 * 0.80);
}

TEST(Plan, TellsWhereRequiredCasesTakeLongerThanTheBudget) {
  std::vector<Case> cases = {make("a", Stage::world, 10, true)};
  const auto topology = nodes_of({8 * gib}, 1);
  EXPECT_EQ(make_plan(config_of(Level::smoke), topology, suite_with(cases)).over_budget(), "");
  cases[0].overhead_seconds = 100;
  const auto plan = make_plan(config_of(Level::smoke), topology, suite_with(cases));
  EXPECT_EQ(plan.over_budget(),
            "required cases need " + format_seconds(plan.required_s()) + ", the budget is 15 s");
}

TEST(Plan, LaterPassesAreOpportunisticAndComeAfterTheFirst) {
  std::vector<Case> cases = {make("a", Stage::world, 1, true), make("b", Stage::world, 1, true)};
  cases[0].in_every_pass = true;
  const auto plan = make_plan(config_of(Level::standard), nodes_of({8 * gib}, 1), suite_with(cases));
  ASSERT_EQ(plan.cases.size(), 4u);
  EXPECT_EQ(plan.cases[2].name, "a.p2");
  EXPECT_EQ(plan.cases[3].name, "a.p3");
  EXPECT_FALSE(plan.cases[3].required);
}

TEST(Plan, ASpareSelfTestComesWhereNoOtherCaseTestsTheChecker) {
  std::vector<Case> cases = {make("rate", Stage::world, 1, true), make("pattern", Stage::world, 1, true),
                             make("selftest", Stage::world, 0.01, true)};
  cases[1].parameters["checker"] = cases[2].parameters["checker"] = "words";
  cases[2].spare = true;
  const auto planned = [&](const std::string& glob) {
    Config config = config_of(Level::quick);
    config.cases_glob = glob;
    std::set<std::string> names;
    for (const Case& c : make_plan(config, nodes_of({8 * gib}, 1), suite_with(cases)).cases)
      names.insert(c.name);
    return names;
  };
  EXPECT_EQ(planned("*"), (std::set<std::string>{"rate", "pattern"}));
  EXPECT_EQ(planned("pattern"), (std::set<std::string>{"pattern"}));
  EXPECT_EQ(planned("rate"), (std::set<std::string>{"rate", "selftest"}));
  cases[1].not_applicable = "too little memory";
  EXPECT_EQ(planned("*"), (std::set<std::string>{"rate", "pattern", "selftest"}));
}

TEST(Plan, NothingMatchingIsAUsageError) {
  Config config = config_of(Level::quick);
  config.cases_glob = "fixed/nothing*";
  try {
    make_plan(config, nodes_of({8 * gib}, 1), suite_with({make("a", Stage::world, 1, true)}));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(e.what()).find("fixed/nothing*"), std::string::npos);
  }
}

TEST(Plan, IllegalAndDoubleNamesAreBugs) {
  const auto topology = nodes_of({8 * gib}, 1);
  EXPECT_THROW(make_plan(config_of(Level::quick), topology, suite_with({make("A b", Stage::world, 1, true)})),
               Error);
  const Case twice = make("a", Stage::world, 1, true);
  EXPECT_THROW(make_plan(config_of(Level::quick), topology, suite_with({twice, twice})), Error);
}

TEST(Plan, TextNamesEveryCaseAndTheTotals) {
  const auto topology = nodes_of({8 * gib}, 1);
  auto cases = std::vector{make("a", Stage::world, 1, true), make("b", Stage::pairs, 1, false)};
  cases[1].not_applicable = "one rank";
  const Config config = config_of(Level::quick);
  const auto text = plan_text(make_plan(config, topology, suite_with(cases)), config, topology);
  EXPECT_NE(text.find("fixed/a"), std::string::npos);
  EXPECT_NE(text.find("not applicable: one rank"), std::string::npos);
  EXPECT_NE(text.find("required cases 1.02 s"), std::string::npos) << text;
}

TEST(Telemetry, OfManyGpusFewerReadingsAreKept) {
  Config config = config_of(Level::standard);
  config.telemetry_hz = 1;
  const auto plan_of = [&](int nodes) {
    auto topology = nodes_of(std::vector<std::uint64_t>(static_cast<std::size_t>(nodes), 8 * gib), 1);
    for (Node& node : topology.nodes) node.gpus.edit().resize(8);
    return make_plan(config, topology, suite_with({make("a", Stage::world, 1, true)}));
  };
  EXPECT_EQ(plan_of(64).telemetry_every, 1U);
  const Plan large = plan_of(12500);
  const double readings = large.budget_s / static_cast<double>(large.telemetry_every);
  EXPECT_LE(readings * 9 * 12500, 4e6) << "the process of the results holds them all";
  EXPECT_GE(readings * 9 * 12500, 3e6);
  EXPECT_GT(plan_of(2500).counter_bytes, 100 * plan_of(25).counter_bytes * 0.99);
  config.telemetry_given = true;
  EXPECT_EQ(plan_of(12500).telemetry_every, 1U) << "as asked for";
}

TEST(FileBytes, CountRequiredCasesAndWhatTheBudgetLeavesTimeFor) {
  Plan plan;
  plan.budget_s = 100;
  Case c = make("a", Stage::pairs, 50, true);
  c.overhead_seconds = 0;
  c.entities = 1000;
  c.samples = 100;
  plan.cases = {c};
  const std::uint64_t required = plan.file_bytes();
  EXPECT_NEAR(static_cast<double>(required), 1000.0 * 100 * 8.8, 0.15 * 1000 * 100 * 8.8);
  // Two further numbers of each sample.
  plan.columns["fixed "] = {3, 0};
  EXPECT_NEAR(static_cast<double>(plan.file_bytes() - required), 2 * 1000.0 * 100 * 5.3, 1e4);
  plan.columns.clear();
  // Nine more of which the other 50 s hold one.
  c.required = false;
  for (int i = 0; i < 9; ++i) plan.cases.push_back(c);
  EXPECT_NEAR(static_cast<double>(plan.file_bytes()), 2.0 * static_cast<double>(required),
              0.1 * static_cast<double>(required));
  // No time is left for any of them.
  plan.budget_s = 50;
  EXPECT_EQ(plan.file_bytes(), required);
}

TEST(FileBytes, AllowedAreMoreOnManyNodesUnlessTheyAreGiven) {
  constexpr std::uint64_t mib = 1 << 20;
  Config config = config_of(Level::standard);
  EXPECT_EQ(most_file_bytes(config, 1), 4096 * mib);
  EXPECT_EQ(most_file_bytes(config, 1638), 4096 * mib);
  EXPECT_EQ(most_file_bytes(config, 12'500), 31'250 * mib);
  config.max_file_bytes = 100 * mib;
  EXPECT_EQ(most_file_bytes(config, 12'500), 100 * mib);
  // A plan of 5 GB is refused on few nodes only.
  Plan plan;
  plan.budget_s = 100;
  Case c = make("a", Stage::pairs, 50, true);
  c.entities = 10'000'000;
  c.samples = 55;
  plan.cases = {c};
  config.max_file_bytes = 0;
  const auto refused = [&](std::size_t nodes) {
    const Topology topology = nodes_of(std::vector<std::uint64_t>(nodes, gib), 1);
    return plan_text(plan, config, topology).find("run refuses this plan: --max-file allows") !=
           std::string::npos;
  };
  EXPECT_TRUE(refused(64));
  EXPECT_FALSE(refused(2300));
}

/// A case of links as ranks report it: on a clock of nanoseconds that began long ago, with noise.
CaseRecord links_of(const std::vector<int>& ends, std::size_t samples, std::uint64_t bytes) {
  CaseRecord record;
  record.declare({"bandwidth", "B/s", results::Better::higher});
  const RandomStream random(1, "links");
  const double boot_s = 54321.0;
  std::uint64_t drawn = 0;
  for (const int source : ends)
    for (const int destination : ends) {
      if (source == destination) continue;
      auto& row = record.add_link(source, destination);
      double now = boot_s + random.uniform(drawn++);
      for (std::size_t i = 0; i < samples; ++i) {
        const double end = now + 1e-3 * (1 + 0.1 * random.uniform(drawn++));
        row.t.push_back(now - boot_s);
        row.block.push_back(static_cast<std::int32_t>(3 * i / samples));
        row.values["bandwidth"].push_back(static_cast<double>(bytes) / (end - now));
        now = end + 1e-4 * random.uniform(drawn++);
      }
    }
  return record;
}

// Many links, which are packed; few are in cli.file_size.
TEST(FileBytes, AreThoseOfAFileOfManyLinks) {
  Topology topology = nodes_of(std::vector<std::uint64_t>(30, gib), 2);
  for (Node& node : topology.nodes) node.id = "4c4c4544-0042-3510-8054-b7c04f4d" + node.hostname;
  EntityTable entities(topology);
  std::vector<int> ends;
  for (int rank = 0; rank < topology.size(); ++rank) ends.push_back(entities.device_of_rank(rank));
  Case c = make("a", Stage::pairs, 50, true);
  c.entity_kind = "link";
  c.samples = 60;
  c.entities = static_cast<std::int64_t>(ends.size() * (ends.size() - 1));
  auto bundle = assemble(c, {links_of(ends, c.samples, 20 << 22)}, entities, "id");
  const auto path = std::filesystem::temp_directory_path() / ("packed" + std::to_string(getpid()) + ".h5");
  results::write_bundle(path, bundle, 0, 0, [](std::size_t) {});
  const auto ended = static_cast<double>(std::filesystem::file_size(path));
  results::Results file;
  file.cases.push_back(std::move(bundle.data));
  file.entities = entities.rows();
  results::save(file, path, true);
  const auto written = static_cast<double>(std::filesystem::file_size(path));
  std::filesystem::remove(path);
  Plan plan;
  plan.budget_s = 100;
  plan.cases = {c};
  const double unpacked = 16 * 60 * static_cast<double>(c.entities);
  EXPECT_LT(written - 30 * static_cast<double>(c.entities), 0.65 * unpacked) << "shuffle, deflate, clock";
  EXPECT_NEAR(static_cast<double>(plan.file_bytes()), written, 0.3 * written);
  EXPECT_NEAR(static_cast<double>(plan.case_files_bytes()), ended, 0.3 * ended);
  // Links that another case has too take no second row.
  const auto more = [&](const std::string& links) {
    plan.cases = {c};
    const std::uint64_t once = plan.file_bytes();
    plan.cases.push_back(c);
    plan.cases.back().links = links;
    return static_cast<double>(plan.file_bytes() - once) / static_cast<double>(c.entities);
  };
  EXPECT_LT(more(""), 9.5 * 60);
  EXPECT_NEAR(more("others") - more(""), 30, 1);
}

}  // namespace
}  // namespace assay
