// SPDX-License-Identifier: Apache-2.0
// Pairs of nodes of a large cluster that are not all reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "comm_planner.hpp"
#include "suites/p2p/p2p_plan.hpp"
#include "suites/p2p/p2p_suite.hpp"
#include "suites/p2p/sweep.hpp"
#include "tests/unit/expect_error.hpp"

namespace assay {
namespace {

using namespace comm_plan;
using testing::Each;
using testing::ElementsAre;
using testing::Pair;

Topology indexed(int nodes, int ranks) {
  Topology topology = topology_of(nodes, ranks, ranks);
  topology.index_ranks();
  return topology;
}

TEST(PairSweep, APartnerIsThatOfTheListedRound) {
  for (const int nodes : {2, 3, 7, 8, 64, 65}) {
    const p2p::Meetings all(static_cast<std::size_t>(nodes), RandomStream(5, "meetings"));
    std::set<std::pair<int, int>> met;
    for (std::size_t round = 0; round < all.rounds(); ++round) {
      const p2p::Round pairs = all.nodes_of(round);
      for (int node = 0; node < nodes; ++node)
        EXPECT_EQ(all.partner_of(round, node), p2p::partner_of(pairs, node)) << nodes;
      for (const p2p::Pair& pair : pairs) met.insert(std::minmax(pair.a, pair.b));
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(nodes * (nodes - 1) / 2));
  }
}

TEST(PairSweep, WhatTheScheduleLeavesOutIsSwept) {
  const P2pSuite p2p;
  const Topology topology = indexed(470, 8);
  const Case c = find(Planner(p2p, Level::standard).plan(topology), "bandwidth-uni-262144-cross-mpi");
  const p2p::Spec spec = p2p::spec_of(c);
  Config config;
  config.level = Level::standard;
  const p2p::Timing timing = p2p::make_timing(spec, p2p::shape_of(c), config, topology);
  const auto stream = p2p::schedule_stream(7, c.name, spec, topology);
  const auto schedule = p2p::schedule_of(spec, topology, stream, timing);
  EXPECT_EQ(timing.rounds, 200'000U / 470);
  const p2p::Sweep sweep(topology, stream, schedule.size(), timing.swept);
  const auto node = [&](int rank) { return topology.ranks[static_cast<std::size_t>(rank)].node; };
  std::map<std::pair<int, int>, int> met;
  for (const auto& round : schedule)
    for (const p2p::Pair& pair : round) ++met[std::minmax(node(pair.a), node(pair.b))];
  for (std::size_t i = 0; i < sweep.rounds(); ++i)
    for (int rank = 0; rank < topology.size(); ++rank) {
      const int peer = sweep.partner_of(i, rank);
      if (peer < rank) continue;
      EXPECT_EQ(sweep.partner_of(i, peer), rank);
      ++met[std::minmax(node(rank), node(peer))];
    }
  EXPECT_EQ(met.size(), 470U * 469 / 2);
  for (const auto& [pair, times] : met) EXPECT_EQ(times, 1);
}

TEST(PairSweep, ItFitsStandard) {
  const P2pSuite p2p;
  const auto planned = [&](int nodes) {
    return find(Planner(p2p, Level::standard).plan(indexed(nodes, 1)), "bandwidth-uni-262144-cross-mpi");
  };
  const Case few = planned(447), many = planned(1024), most = planned(12'500);
  EXPECT_EQ(few.rounds, 447U) << "all pairs are scheduled";
  EXPECT_EQ(many.entities, 195 * 1024);
  EXPECT_LT(many.expected_s(), 25);
  EXPECT_EQ(most.entities, 16 * 12'500);
  EXPECT_GT(most.min_seconds, 60);
  EXPECT_LT(most.expected_s(), 120);
  // A round of a retest takes as long as one of the schedule.
  EXPECT_NEAR(most.seconds / static_cast<double>(most.rounds), few.seconds / static_cast<double>(few.rounds),
              0.4);
}

TEST(PairSweep, LinksAreAsManyAsAskedFor) {
  const P2pSuite p2p;
  Planner planner(p2p, Level::standard);
  const Case c =
      find(planner.option("p2p.links", "24").plan(topology_of(8, 1, 1)), "bandwidth-uni-262144-cross-mpi");
  EXPECT_EQ(c.entities, 24);
  EXPECT_EQ(usage_message([&] { planner.option("p2p.links", "0").plan(topology_of(8, 1, 1)); }),
            "--p2p.links: 0 is less than 1");
}

/// What every rank of a simulated sweep of all pairs meets.
class SimulatedSweep {
 public:
  SimulatedSweep(int nodes, std::uint64_t seed) : nodes_(nodes), random_(seed, "rates") {}

  /// Bad nodes and the bad pair have half the rate, bad receivers only to them.
  std::set<int> bad_nodes, bad_receivers;
  std::pair<int, int> bad_pair{-1, -1};

  std::vector<p2p::Suspect> suspects() const {
    std::vector<std::vector<p2p::Met>> met(static_cast<std::size_t>(nodes_));
    for (int a = 0; a < nodes_; ++a)
      for (int b = 0; b < nodes_; ++b)
        if (a != b) met[static_cast<std::size_t>(a)].push_back({b, rate(a, b), rate(b, a)});
    std::vector<p2p::Usual> of_ranks;
    for (const auto& of_rank : met) of_ranks.push_back(p2p::usual_rate(of_rank));
    const std::vector<p2p::Usual> usual = p2p::usual_rates(of_ranks);
    std::vector<p2p::Suspect> all;
    for (int a = 0; a < nodes_; ++a)
      for (const auto& one : p2p::suspects_of(a, met[static_cast<std::size_t>(a)], usual)) all.push_back(one);
    return all;
  }

 private:
  /// The faster of two samples. One in fifty of these is disturbed and has any share of the rate.
  double rate(int a, int b) const {
    const bool slow = bad_nodes.contains(a) || bad_nodes.contains(b) || bad_receivers.contains(b) ||
                      bad_pair == std::pair(a, b) || bad_pair == std::pair(b, a);
    double best = 0;
    for (int sample = 0; sample < 2; ++sample) {
      const auto at = static_cast<std::uint64_t>((a * nodes_ + b) * 2 + sample) * 2;
      const double share =
          random_.uniform(at) < 0.02 ? random_.uniform(at + 1) : 1 + 0.05 * (random_.uniform(at + 1) - 0.5);
      best = std::max(best, share);
    }
    return (slow ? 0.5 : 1) * best;
  }

  int nodes_;
  RandomStream random_;
};

TEST(PairSweep, TheSlowPairIsMeasuredAndNoPairsOfSlowNodesInItsPlace) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SimulatedSweep sweep(300, seed);
    sweep.bad_nodes = {11, 12, 13, 14, 15, 200};
    sweep.bad_receivers = {20, 21, 22, 23, 24, 25};
    sweep.bad_pair = {static_cast<int>(seed) * 16 + 5, 7};
    const auto rounds = p2p::rounds_of(sweep.suspects(), indexed(300, 1));
    ASSERT_FALSE(rounds.empty());
    const p2p::Pair bad{7, sweep.bad_pair.first};
    EXPECT_TRUE(std::ranges::any_of(rounds, [&](const auto& r) { return std::ranges::count(r, bad) == 1; }))
        << seed;
    EXPECT_LE(rounds.size(), p2p::suspect_rounds);
    EXPECT_LT(p2p::pair_count(rounds), 300U) << "of 3,500 pairs of slow nodes";
  }
}

TEST(PairSweep, ARankHasItsSlowestFewAsSuspects) {
  std::vector<p2p::Met> met;
  for (int peer = 1; peer < 40; ++peer) met.push_back({peer, peer < 10 ? 0.01 * peer : 1.0});
  std::vector<p2p::Usual> usual(40, {1.0, 1.0, 39});
  EXPECT_DOUBLE_EQ(p2p::usual_rate(met).to, 1.0);
  EXPECT_DOUBLE_EQ(p2p::usual_rate(met).from, 0.0) << "not measured";
  const auto found = p2p::suspects_of(0, met, usual);
  ASSERT_EQ(found.size(), p2p::suspects_of_rank);
  for (int i = 0; i < static_cast<int>(found.size()); ++i)
    EXPECT_EQ(found[static_cast<std::size_t>(i)].pair, (p2p::Pair{0, i + 1}));
  usual[1].from = 0.01;  // slow from all
  EXPECT_EQ(p2p::suspects_of(0, met, usual).front().pair.b, 2);
  usual[0].to = 0.01;  // slow to all
  EXPECT_TRUE(p2p::suspects_of(0, met, usual).empty());
}

TEST(PairSweep, ARankThatMetFewReachesWhatOthersDo) {
  const auto usual = [](const std::vector<p2p::Usual>& of_ranks) {
    std::vector<std::pair<double, double>> rates;
    for (const p2p::Usual& one : p2p::usual_rates(of_ranks)) rates.emplace_back(one.to, one.from);
    return rates;
  };
  EXPECT_THAT(usual({{0.5, 4, 1}, {1, 5, 8}, {3, 7, 9}, {2, 0, 10}, {}}),
              ElementsAre(Pair(2, 6), Pair(1, 5), Pair(3, 7), Pair(2, 6), Pair(2, 6)));
  EXPECT_THAT(usual({{0.5, 1, 1}, {1, 1, 2}, {3, 1, 7}}), Each(Pair(1, 1)));
  EXPECT_THAT(usual({{}, {}}), Each(Pair(0, 0))) << "nothing to compare with";
}

TEST(PairSweep, RoundsOfSuspectsAreDisjointAndHoldAPairOnce) {
  std::vector<p2p::Suspect> suspects;
  for (int peer = 1; peer <= 20; ++peer) {
    suspects.push_back({{0, peer}, 0.01 * peer});
    suspects.push_back({{peer, 0}, 0.01 * peer});
  }
  suspects.push_back({{30, 31}, 0.5});
  const auto rounds = p2p::rounds_of(p2p::suspects_from(p2p::text_of(suspects)), indexed(32, 1));
  ASSERT_EQ(rounds.size(), p2p::suspect_rounds);
  EXPECT_EQ(rounds.front(), (p2p::Round{{0, 1}, {30, 31}}));
  for (std::size_t r = 1; r < rounds.size(); ++r)
    EXPECT_EQ(rounds[r], (p2p::Round{{0, static_cast<int>(r) + 1}}));
  EXPECT_EQ(p2p::schedule_from(p2p::text_of(rounds)), rounds);
  EXPECT_TRUE(p2p::rounds_of({}, indexed(32, 1)).empty());
}

TEST(PairSweep, SuspectsOfOneNodeAreInRoundsOfTheirOwn) {
  const auto rounds = p2p::rounds_of({{{0, 2}, 0.5}, {{1, 5}, 0.6}, {{4, 6}, 0.7}}, indexed(4, 2));
  EXPECT_EQ(rounds, (p2p::Schedule{{{0, 2}, {4, 6}}, {{1, 5}}}));
}

TEST(PairSweep, SuspectsAreAFewOfThePairsOfTheirRounds) {
  const Topology topology = indexed(64, 2);
  const p2p::Sweep all(topology, RandomStream(3, "fill"), 8, 55);
  const p2p::Schedule suspects = p2p::rounds_of({{{0, 2}, 0.5}, {{4, 6}, 0.6}, {{1, 9}, 0.7}}, topology);
  p2p::Schedule rounds = suspects;
  p2p::fill(rounds, all, topology);
  ASSERT_EQ(rounds.size(), 2U);
  std::multiset<std::pair<int, int>> pairs;
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    EXPECT_GE(rounds[r].size(), 28U);
    EXPECT_TRUE(std::equal(suspects[r].begin(), suspects[r].end(), rounds[r].begin()));
    std::set<int> nodes;
    for (const p2p::Pair& pair : rounds[r]) {
      EXPECT_TRUE(nodes.insert(pair.a / 2).second);
      EXPECT_TRUE(nodes.insert(pair.b / 2).second);
      pairs.insert({pair.a, pair.b});
    }
  }
  EXPECT_EQ(std::set(pairs.begin(), pairs.end()).size(), pairs.size());
}

TEST(PairSweep, PairsThatAreAddedMeetOnce) {
  const Topology topology = indexed(16, 1);
  const p2p::Sweep all(topology, RandomStream(3, "few"), 8, 2);
  p2p::Schedule rounds{{{0, 1}}, {{0, 2}}, {{0, 3}}, {{0, 4}}};
  p2p::fill(rounds, all, topology);
  std::multiset<std::pair<int, int>> pairs;
  for (const p2p::Round& round : rounds)
    for (const p2p::Pair& pair : round) pairs.insert({pair.a, pair.b});
  EXPECT_GT(pairs.size(), 4U);
  EXPECT_EQ(std::set(pairs.begin(), pairs.end()).size(), pairs.size());
}

TEST(PairSweep, RanksThatTheScheduleDoesNotUseAreNotSwept) {
  const Topology topology = indexed(64, 16);
  const p2p::Sweep all(topology, RandomStream(3, "lanes"), 4, 59);
  for (std::size_t i = 0; i < all.rounds(); ++i)
    for (int rank = 0; rank < topology.size(); ++rank)
      EXPECT_TRUE(all.partner_of(i, rank) < 0 || rank % 16 < 4) << rank;
}

TEST(PairSweep, SmallClustersHaveItWhereItIsAskedFor) {
  const P2pSuite p2p;
  const auto planned = [&](Planner planner) {
    return find(planner.plan(topology_of(8, 1, 1)), "bandwidth-uni-262144-cross-mpi");
  };
  EXPECT_FALSE(planned(Planner(p2p, Level::standard)).parameters.contains("meetings"));
  Planner asked(p2p, Level::standard);
  EXPECT_TRUE(planned(asked.option("p2p.links", "24")).parameters.contains("meetings"));
}

}  // namespace
}  // namespace assay
