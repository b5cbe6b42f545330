// SPDX-License-Identifier: Apache-2.0
// Trends and comparisons of runs in which not the same parts took part.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/fabricate.hpp"
#include "verdict/compare.hpp"
#include "verdict/trend.hpp"

namespace assay {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using verdict::Relation;
using verdict::Snapshot;

/// A device and its rate, beside a usual one of 1.
struct Measured {
  std::string node, device;
  double rate = 1;
};

/// Who shares a value.
enum class Sharing { none, all, node };

/// Values differ by 0.2 % from run to run.
Snapshot run_of(int number, const std::vector<Measured>& measured, Sharing sharing = Sharing::none) {
  Snapshot run;
  run.source.run_id = run.source.file = "run" + std::to_string(number);
  run.source.started = "2026-01-" + std::to_string(10 + number) + "T00:00:00Z";
  verdict::SnapshotSeries s;
  s.suite = "x";
  s.name = "case";
  s.metric = "bandwidth";
  s.unit = "B/s";
  s.kind = "device";
  s.stage = sharing == Sharing::all ? "world" : sharing == Sharing::node ? "groups" : "node-local";
  s.case_key = "k";
  s.shared = sharing != Sharing::none;
  s.by_node = sharing == Sharing::node;
  s.strata = {""};
  auto rows = std::make_shared<verdict::PartRows>();
  std::map<std::string, std::int32_t> nodes;
  for (const Measured& m : measured) {
    const auto [node, fresh] = nodes.try_emplace(m.node, static_cast<std::int32_t>(run.parts.size()));
    if (fresh) run.parts.push_back({"node", m.node, m.node, node->second, -1, {}});
    const auto row = static_cast<std::int32_t>(run.parts.size());
    const std::string name = m.node + "/" + m.device;
    run.parts.push_back({"device", name, name, node->second, -1, {}});
    rows->part.push_back(row);
    rows->stratum.push_back(0);
    const double noise = fabricate::wobble(static_cast<std::size_t>(row * 3 + number * 7));
    s.log_rate.push_back(static_cast<float>(std::log(1e10 * m.rate * noise)));
    s.log_clock.push_back(static_cast<float>(std::log(1e9 * m.rate)));
  }
  s.rows = rows;
  run.series.push_back(std::move(s));
  return run;
}

/// Nodes `from` to `to`, of one device each.
std::vector<Measured> some_nodes(int from, int to, double rate = 1) {
  std::vector<Measured> out;
  for (int i = from; i < to; ++i) out.push_back({"node" + std::to_string(i), "cores0-1", rate});
  return out;
}

std::vector<Measured> operator+(std::vector<Measured> a, const std::vector<Measured>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Twelve runs, other ones from the seventh on.
std::vector<verdict::TrendChange> changes(const std::vector<Measured>& before,
                                          const std::vector<Measured>& after,
                                          Sharing sharing = Sharing::none) {
  std::vector<Snapshot> runs;
  for (int n = 0; n < 12; ++n) runs.push_back(run_of(n, n < 6 ? before : after, sharing));
  const auto trend = verdict::trend_of(runs);
  return trend.at(0).changes;
}

TEST(TrendComposition, OtherOrMoreNodesAreNoStep) {
  EXPECT_THAT(changes(some_nodes(0, 8), some_nodes(0, 4) + some_nodes(8, 12, 0.8)), IsEmpty())
      << "half are others";
  EXPECT_THAT(changes(some_nodes(0, 8), some_nodes(0, 8) + some_nodes(8, 20, 0.8)), IsEmpty()) << "more";
  EXPECT_THAT(changes(some_nodes(0, 4) + some_nodes(4, 12, 0.8), some_nodes(0, 4)), IsEmpty()) << "fewer";
  EXPECT_THAT(changes(some_nodes(0, 4), some_nodes(4, 8, 0.8)), IsEmpty()) << "all are others";
}

TEST(TrendComposition, AStepAmongOtherNodesIsTold) {
  const auto fleet = changes(some_nodes(0, 8), some_nodes(0, 4, 0.9) + some_nodes(8, 12, 0.7));
  ASSERT_THAT(fleet, SizeIs(1));
  EXPECT_EQ(fleet[0].name, "fleet");
  EXPECT_EQ(fleet[0].run, 6U);
  EXPECT_NEAR(fleet[0].change, -0.1, 0.01);
  const auto one =
      changes(some_nodes(0, 8), some_nodes(0, 1, 0.9) + some_nodes(1, 6) + some_nodes(8, 12, 0.7));
  ASSERT_THAT(one, SizeIs(1));
  EXPECT_EQ(one[0].name, "node0/cores0-1");
  EXPECT_NEAR(one[0].change, -0.1, 0.01);
}

TEST(TrendComposition, CollectivesOfOtherRanksAreOthers) {
  EXPECT_THAT(changes(some_nodes(0, 4), some_nodes(0, 2, 0.7) + some_nodes(4, 6, 0.7), Sharing::all),
              IsEmpty());
  const auto slower = changes(some_nodes(0, 4), some_nodes(0, 4, 0.7), Sharing::all);
  ASSERT_THAT(slower, SizeIs(1));
  EXPECT_EQ(slower[0].name, "fleet");
  EXPECT_NEAR(slower[0].change, -0.3, 0.01);
}

/// Each of these sends to another partner in every run.
Snapshot drawn_links(int number, const std::vector<Measured>& senders) {
  Snapshot run = run_of(number, senders);
  run.series[0].kind = "link";
  for (auto& part : run.parts)
    if (part.kind == "device") {
      part.kind = "link";
      part.id = part.name = part.id + " > partner of run " + std::to_string(number);
    }
  return run;
}

/// No link is measured twice: the nodes that send are compared with themselves.
TEST(TrendComposition, LinksDrawnAnewTellAStepOfTheirSenders) {
  for (const double rate : {1.0, 0.8}) {
    std::vector<Snapshot> runs;
    // From the seventh run on half of the senders are others, which are slower by themselves.
    for (int n = 0; n < 12; ++n)
      runs.push_back(
          drawn_links(n, n < 6 ? some_nodes(0, 8) : some_nodes(0, 4, rate) + some_nodes(8, 12, 0.7 * rate)));
    const auto trend = verdict::trend_of(runs);
    const auto& told = trend.at(0).changes;
    ASSERT_THAT(told, SizeIs(rate < 1 ? 1 : 0));
    if (told.empty()) continue;
    EXPECT_EQ(told[0].name, "fleet");
    EXPECT_EQ(told[0].run, 6U);
    EXPECT_NEAR(told[0].change, rate - 1, 0.01);
  }
}

/// Four ranks of each node; those of `slow` have this rate.
std::vector<Measured> ranks_of(int of_nodes, int slow = -1, double rate = 1) {
  std::vector<Measured> out;
  for (int i = 0; i < of_nodes; ++i)
    for (const char* device : {"gpu0", "gpu1", "gpu2", "gpu3"})
      out.push_back({"node" + std::to_string(i), device, i == slow ? rate : 1});
  return out;
}

TEST(CompareComposition, TheNodeIsTheUnitOfCollectivesInsideNodes) {
  const auto a = run_of(0, ranks_of(16), Sharing::node);
  for (const bool device_unit : {false, true}) {
    verdict::CompareOptions options;
    options.device_unit = device_unit;
    const auto same = verdict::compare({a}, {run_of(1, ranks_of(16), Sharing::node)}, options);
    EXPECT_EQ(same.metrics.at(0).unit_of, "node");
    EXPECT_EQ(same.metrics[0].a.units, 16U);
    EXPECT_EQ(same.relation, Relation::same);
    const auto slow = verdict::compare({a}, {run_of(1, ranks_of(16, 3, 0.4), Sharing::node)}, options);
    EXPECT_EQ(slow.relation, Relation::ambiguous);
    EXPECT_THAT(slow.notes, Contains(HasSubstr("node3")));
  }
}

TEST(CompareComposition, CollectivesOfOtherNumbersOfRanksAreNoPair) {
  const auto side = [](int first, int of_nodes) {
    std::vector<Snapshot> runs;
    for (int n = first; n < first + 4; ++n) runs.push_back(run_of(n, ranks_of(of_nodes), Sharing::all));
    return runs;
  };
  const auto other = verdict::compare(side(0, 8), side(4, 6), {});
  EXPECT_EQ(other.relation, Relation::incomparable);
  EXPECT_THAT(other.metrics.at(0).note, HasSubstr("24 ranks against one of 32"));
  EXPECT_NE(verdict::compare(side(0, 8), side(4, 8), {}).relation, Relation::incomparable);
  // One run of each is too little to tell anything, whatever it is of.
  const auto few = verdict::compare({side(0, 8)[0]}, {side(4, 6)[0]}, {});
  EXPECT_EQ(few.relation, Relation::insufficient);
}

/// One run without a node made the metric of all runs incomparable.
TEST(CompareComposition, ARunOfAnotherNumberOfRanksIsLeftOut) {
  const auto side = [](int first, int odd, double rate) {
    std::vector<Snapshot> runs;
    for (int n = first; n < first + 30; ++n)
      runs.push_back(
          run_of(n, some_nodes(0, n < first + odd ? 6 : 8, n < first + odd ? 0.3 : rate), Sharing::all));
    return runs;
  };
  const auto same = verdict::compare(side(0, 1, 1), side(30, 0, 1), {});
  EXPECT_EQ(same.relation, Relation::same);
  EXPECT_EQ(same.metrics.at(0).a.units, 29U);
  EXPECT_EQ(same.metrics[0].b.units, 30U);
  EXPECT_THAT(same.metrics[0].note, HasSubstr("1 run left out (A 1, B 0)"));
  EXPECT_THAT(same.metrics[0].note, HasSubstr("8 ranks"));
  EXPECT_EQ(verdict::compare(side(0, 0, 1), side(30, 2, 0.8), {}).relation, Relation::slower);
  EXPECT_EQ(verdict::compare(side(0, 27, 1), side(30, 0, 1), {}).relation, Relation::incomparable)
      << "three runs in common are too few";
}

/// The case_key of a collective has its number of ranks in it.
TEST(CompareComposition, TheKeyOfARunThatIsLeftOutSaysNothing) {
  const auto side = [](int first, int odd, const std::string& key = "8 ranks") {
    std::vector<Snapshot> runs;
    for (int n = first; n < first + 30; ++n) {
      runs.push_back(run_of(n, some_nodes(0, n < first + odd ? 6 : 8), Sharing::all));
      runs.back().series[0].case_key = n < first + odd ? "6 ranks" : key;
    }
    return runs;
  };
  const auto same = verdict::compare(side(0, 1), side(30, 0), {});
  EXPECT_EQ(same.relation, Relation::same);
  EXPECT_THAT(same.metrics.at(0).note, HasSubstr("1 run left out (A 1, B 0)"));
  const auto other = verdict::compare(side(0, 1), side(30, 0, "another library"), {});
  EXPECT_EQ(other.relation, Relation::incomparable);
  EXPECT_THAT(other.metrics.at(0).note, HasSubstr("case_key 8 ranks against another library"));
}

/// The value of one rank cannot be: it took part, and the operation is the same.
TEST(CompareComposition, AnImpossibleValueIsNoOtherNumberOfRanks) {
  const auto side = [](int first, const std::string& metric) {
    std::vector<Snapshot> runs;
    for (int n = first; n < first + 30; ++n) {
      runs.push_back(run_of(n, some_nodes(0, n == 0 ? 7 : 8), Sharing::all));
      if (n == 0) runs.back().left_out = {"node7/cores0-1 in " + metric};
    }
    return runs;
  };
  const auto all = verdict::compare(side(0, "x/case:bandwidth"), side(30, ""), {});
  EXPECT_EQ(all.metrics.at(0).a.units, 30U);
  EXPECT_EQ(all.metrics[0].note, "");
  const auto other = verdict::compare(side(0, "x/case:latency"), side(30, ""), {});
  EXPECT_EQ(other.metrics.at(0).a.units, 29U) << "of another metric";
}

TEST(CompareComposition, ClocksOfPairsAreComparedInPairs) {
  std::vector<Measured> a, b;
  for (int i = 0; i < 10; ++i) {
    const Measured m{"node" + std::to_string(i), "cores0-1", 1 + 0.02 * i};
    if (i < 9) a.push_back(m);
    if (i > 0) b.push_back(m);
  }
  const auto result = verdict::compare({run_of(0, a)}, {run_of(1, b)}, {});
  ASSERT_TRUE(result.metrics.at(0).paired);
  EXPECT_NEAR(result.metrics[0].clock_ratio, 1, 1e-6);
}

}  // namespace
}  // namespace assay
