// SPDX-License-Identifier: Apache-2.0
// What the suites of this build declare of themselves.
#include <gtest/gtest.h>

#include <set>

#include "results/described.hpp"
#include "results/schema.hpp"
#include "run/planner.hpp"
#include "simulate/catalogue.hpp"
#include "suite/suite.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

TEST(SuitesDescribed, FilesBeforeSchema13AreJudgedAlike) {
  std::size_t compared = 0;
  for (const auto& suite : make_suites()) {
    if (suite->name() == "storage") continue;  // no file before has it
    for (const results::MetricSpec& m : suite->metrics()) {
      ASSERT_TRUE(m.judging.has_value()) << suite->name() << " " << m.name;
      if (m.role != results::Role::metric) continue;  // covariates are not judged
      results::CaseData old;
      old.suite = suite->name();
      old.name = m.cases;
      results::Metric metric{m.name, m.unit, m.better, m.required, m.role, m.per_sample, {}};
      const results::Judging before = results::judging_of(old, metric);
      EXPECT_EQ(before.of, m.judging->of) << suite->name() << "/" << m.cases << ":" << m.name;
      EXPECT_EQ(before.fault_threshold, m.judging->fault_threshold)
          << suite->name() << "/" << m.cases << ":" << m.name;
      EXPECT_EQ(before.weight, m.judging->weight) << suite->name() << "/" << m.cases << ":" << m.name;
      metric.judging = m.judging;
      EXPECT_EQ(results::judging_of(old, metric), *m.judging) << "what a file says is what counts";
      ++compared;
    }
  }
  EXPECT_GT(compared, 40u);
}

TEST(SuitesDescribed, TheSimulatorsDefaultListIsDeclaredBySuites) {
  std::vector<simulate::Declared> declared;
  for (const auto& suite : make_suites())
    declared.push_back({std::string(suite->name()), suite->metrics(), suite->checkers()});
  auto models = simulate::catalogue();
  simulate::describe(models, declared);
  for (std::size_t i = 0; i < models.size(); ++i) {
    const simulate::MetricModel &listed = simulate::catalogue()[i], &model = models[i];
    EXPECT_EQ(listed.unit, model.unit) << model.path();
    EXPECT_EQ(listed.better, model.better) << model.path();
    EXPECT_FALSE(model.title.empty()) << model.path();
    ASSERT_TRUE(model.judging.has_value()) << model.path();
    // Operating curves have no suites.
    EXPECT_EQ(simulate::judging_without_suite(listed), *model.judging) << model.path();
  }
}

TEST(SuitesDescribed, EveryMetricSaysWhatItIs) {
  for (const auto& suite : make_suites()) {
    std::set<std::string> seen;
    EXPECT_FALSE(suite->checkers().empty())
        << suite->name() << " declares neither a checker nor that it needs none";
    for (const results::MetricSpec& m : suite->metrics()) {
      const std::string what = std::string(suite->name()) + "/" + m.operation + ":" + m.name;
      EXPECT_TRUE(seen.insert(what).second) << what << " is declared twice";
      EXPECT_FALSE(m.title.empty() || m.operation.empty() || m.cases.empty()) << what;
      EXPECT_TRUE(results::is_unit(m.unit)) << what << " is in " << m.unit;
      EXPECT_TRUE(m.judging->is_sane()) << what;
    }
  }
}

/// The plan of all suites that run by default, for `ranks` on one machine of 2 TiB with two sockets of 64
/// cores.
Plan plan_of_large_machine(Level level, int ranks) {
  const auto suites = make_suites();
  Config config;
  config.level = level;
  for (const auto& suite : suites) {
    for (const OptionSpec& option : suite->options()) config.options.set(option, {});
    if (suite->name() != "selftest") config.suites.emplace_back(suite->name());
  }
  Topology topology = fakes::cluster({1, ranks, 2, 64, std::uint64_t{256} << 20});
  topology.nodes.front().memory_bytes = std::uint64_t{2} << 40;
  topology.nodes.front().memory_available_bytes = std::uint64_t{2000} << 30;
  return make_plan(config, topology, suites);
}

// A page is touched at 1 GB/s and more by each core.
TEST(SuitesDescribed, ShortLevelsTouchLittleOfALargeMachine) {
  for (const int ranks : {1, 2, 8}) {
    for (const auto& [level, most_s] : {std::pair(Level::smoke, 0.1), std::pair(Level::quick, 0.5)}) {
      const Plan plan = plan_of_large_machine(level, ranks);
      const double cores = 128, bytes = static_cast<double>(plan.arena_bytes) * ranks;
      EXPECT_GT(plan.memory_per_rank_bytes * static_cast<std::uint64_t>(ranks), std::uint64_t{900} << 30);
      EXPECT_LT(bytes / (cores * 1e9), most_s) << ranks << " ranks, " << to_string(level) << ": " << bytes;
      EXPECT_LT(plan.required_s() + bytes / (cores * 1e9), plan.budget_s)
          << ranks << " ranks, " << to_string(level);
      EXPECT_GT(plan.required_s(), 0.05 * plan.budget_s) << "something is planned";
    }
  }
}

}  // namespace
}  // namespace assay
