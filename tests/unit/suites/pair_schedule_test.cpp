// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "suites/p2p/schedule.hpp"

namespace assay::p2p {
namespace {

std::vector<int> range(int n, int first = 0) {
  std::vector<int> items(static_cast<std::size_t>(n));
  std::iota(items.begin(), items.end(), first);
  return items;
}

std::set<std::pair<int, int>> pairs_of(const Schedule& schedule) {
  std::set<std::pair<int, int>> pairs;
  for (const Round& round : schedule)
    for (const Pair& pair : round) pairs.insert(std::minmax(pair.a, pair.b));
  return pairs;
}

/// Nobody is in two pairs of a round, or paired with itself.
void expect_disjoint(const Schedule& schedule) {
  for (const Round& round : schedule) {
    std::set<int> busy;
    for (const Pair& pair : round) {
      EXPECT_NE(pair.a, pair.b);
      EXPECT_TRUE(busy.insert(pair.a).second) << pair.a;
      EXPECT_TRUE(busy.insert(pair.b).second) << pair.b;
    }
  }
}

Topology topology_of(const std::vector<int>& ranks_per_node) {
  Topology topology;
  for (std::size_t node = 0; node < ranks_per_node.size(); ++node) {
    topology.nodes.emplace_back();
    for (int local = 0; local < ranks_per_node[node]; ++local) {
      RankPlace place;
      place.rank = topology.size();
      place.node = static_cast<int>(node);
      place.local_rank = local;
      place.local_size = ranks_per_node[node];
      topology.ranks.push_back(place);
    }
  }
  return topology;
}

constexpr std::size_t all = static_cast<std::size_t>(-1);

TEST(Tournament, CoversAllPairsOnceInDisjointRounds) {
  for (int n = 0; n <= 17; ++n) {
    const Schedule schedule = tournament(range(n, 100));
    expect_disjoint(schedule);
    EXPECT_EQ(schedule.size(), n < 2 ? 0u : static_cast<std::size_t>(n % 2 == 0 ? n - 1 : n)) << n;
    EXPECT_EQ(pair_count(schedule), static_cast<std::size_t>(n * (n - 1) / 2)) << n;
    EXPECT_EQ(pairs_of(schedule).size(), static_cast<std::size_t>(n * (n - 1) / 2)) << n;
    for (const Round& round : schedule) EXPECT_EQ(round.size(), static_cast<std::size_t>(n / 2));
  }
}

TEST(NodeSchedule, IsTheWholeTournamentUpToSixteen) {
  const auto ranks = range(16);
  const std::vector<int> numa(16, 0);
  const Schedule schedule = node_schedule(ranks, numa, RandomStream(1), all);
  EXPECT_EQ(schedule.size(), 15u);
  EXPECT_EQ(pairs_of(schedule).size(), 120u);
  EXPECT_EQ(node_schedule(ranks, numa, RandomStream(1), all), schedule) << "deterministic";
  EXPECT_NE(node_schedule(ranks, numa, RandomStream(2), all), schedule) << "another order from another seed";
  EXPECT_EQ(node_schedule(ranks, numa, RandomStream(1), 4).size(), 4u);
}

TEST(NodeSchedule, SamplesBothNumaClassesAboveSixteen) {
  const auto ranks = range(64);
  std::vector<int> numa;
  for (const int rank : ranks) numa.push_back(rank / 16);
  const auto domain = [&](int rank) { return numa[static_cast<std::size_t>(rank)]; };
  const Schedule schedule = node_schedule(ranks, numa, RandomStream(3), all);
  expect_disjoint(schedule);
  EXPECT_EQ(schedule.size(), static_cast<std::size_t>(sampled_rounds + sampled_near_rounds));
  int near = 0, far = 0;
  for (const Round& round : schedule) {
    EXPECT_EQ(round.size(), 32u) << "nobody idle";
    const bool same = domain(round[0].a) == domain(round[0].b);
    (same ? near : far) += 1;
    for (const Pair& pair : round) EXPECT_EQ(domain(pair.a) == domain(pair.b), same) << "one class a round";
  }
  EXPECT_EQ(near, sampled_rounds);
  EXPECT_EQ(far, sampled_near_rounds);
  const Schedule cut = node_schedule(ranks, numa, RandomStream(3), 3);
  EXPECT_EQ(cut.size(), 3u);
  EXPECT_TRUE(std::any_of(cut.begin(), cut.end(), [&](const Round& r) {
    return domain(r[0].a) != domain(r[0].b);
  })) << "a cut schedule keeps both classes";
}

TEST(NodeSchedule, WorksWithOneOrUnknownNumaDomain) {
  const auto ranks = range(33);
  const Schedule schedule = node_schedule(ranks, std::vector<int>(33, -1), RandomStream(3), all);
  expect_disjoint(schedule);
  EXPECT_EQ(schedule.size(), static_cast<std::size_t>(sampled_rounds));
  for (const Round& round : schedule) EXPECT_EQ(round.size(), 16u) << "odd: one waits";
}

TEST(CrossSchedule, PairsEveryTwoNodesWithEqualLocalRanks) {
  const Topology topology = topology_of({4, 4, 4, 4, 4});
  const Schedule schedule = make_schedule(Scope::cross, topology, RandomStream(1), all);
  expect_disjoint(schedule);
  EXPECT_EQ(schedule.size(), 5u);
  EXPECT_EQ(pairs_of(schedule).size(), 5u * 4u / 2u * 4u);
  for (const Round& round : schedule)
    for (const Pair& pair : round) {
      const auto& a = topology.ranks[static_cast<std::size_t>(pair.a)];
      const auto& b = topology.ranks[static_cast<std::size_t>(pair.b)];
      EXPECT_NE(a.node, b.node);
      EXPECT_EQ(a.local_rank, b.local_rank);
    }
}

TEST(CrossSchedule, UnequalNodesPairWhatTheyHave) {
  const Schedule schedule = make_schedule(Scope::cross, topology_of({3, 1}), RandomStream(1), all);
  EXPECT_EQ(pairs_of(schedule), (std::set<std::pair<int, int>>{{0, 3}}));
}

TEST(CrossSchedule, IsCompleteTo64NodesAndConstantBeyond) {
  EXPECT_EQ(round_count(Scope::cross, topology_of(std::vector<int>(64, 1))), 63u);
  for (const int nodes : {65, 100, 1024}) {
    const Topology topology = topology_of(std::vector<int>(static_cast<std::size_t>(nodes), 1));
    const Schedule schedule = make_schedule(Scope::cross, topology, RandomStream(5), all);
    expect_disjoint(schedule);
    ASSERT_EQ(schedule.size(), static_cast<std::size_t>(sampled_rounds + sampled_near_rounds));
    const Schedule random(schedule.begin(), schedule.begin() + sampled_rounds);
    EXPECT_EQ(pairs_of(random).size(), pair_count(random)) << "no pair twice in the random rounds";
    std::vector<int> partners(static_cast<std::size_t>(nodes), 0);
    for (const auto& [a, b] : pairs_of(schedule)) {
      ++partners[static_cast<std::size_t>(a)];
      ++partners[static_cast<std::size_t>(b)];
    }
    EXPECT_GE(*std::min_element(partners.begin(), partners.end()), sampled_rounds - 1);
  }
}

TEST(CrossSchedule, MeetsAsOftenAsAskedBeyond64Nodes) {
  const Topology topology = topology_of(std::vector<int>(99, 1));
  for (const std::size_t rounds : {20u, 99u}) {
    const Schedule schedule = make_schedule(Scope::cross, topology, RandomStream(5), rounds);
    expect_disjoint(schedule);
    EXPECT_EQ(schedule.size(), rounds);
    EXPECT_EQ(pairs_of(schedule).size(), rounds * 49) << "no pair twice";
  }
}

TEST(NodeSchedule, NobodyMeetsTwice) {
  for (const int count : {17, 18, 19, 24, 31, 32, 33, 48, 64})
    for (const int domains : {1, 2, 3, 4, 8})
      for (const bool uneven : {false, true}) {
        std::vector<int> numa;
        for (int i = 0; i < count; ++i)
          numa.push_back(uneven ? std::max(0, i - count + domains) : i * domains / count);
        for (const std::uint64_t seed : {1u, 2u, 3u}) {
          const Schedule schedule = node_schedule(range(count), numa, RandomStream(seed), all);
          expect_disjoint(schedule);
          EXPECT_EQ(pairs_of(schedule).size(), pair_count(schedule)) << count << " in " << domains;
        }
        EXPECT_EQ(node_schedule(range(count), numa, RandomStream(1), all).size(),
                  node_schedule(range(count), numa, RandomStream(9), all).size());
      }
}

TEST(CrossSchedule, NobodyMeetsTwice) {
  for (const int nodes : {2, 3, 4, 7, 8, 13, 14, 15, 16, 31, 40, 64, 65, 66, 99, 300}) {
    std::vector<std::vector<int>> ranks;
    for (int n = 0; n < nodes; ++n) ranks.push_back({2 * n, 2 * n + 1});
    for (const int leaf_count : {0, 2, 7})
      for (const std::size_t most : {std::size_t{5}, std::size_t{12}, all})
        for (const std::uint64_t seed : {1u, 2u, 3u}) {
          std::vector<int> leaves;  // the first holds more than half
          for (int n = 0; n < nodes && leaf_count > 0; ++n)
            leaves.push_back(std::max(0, n * 2 * leaf_count / nodes - leaf_count));
          const Schedule schedule = cross_schedule(ranks, RandomStream(seed), most, leaves);
          expect_disjoint(schedule);
          EXPECT_EQ(pairs_of(schedule).size(), pair_count(schedule)) << nodes << ", " << leaf_count;
        }
  }
}

/// The plan counts the pairs of one draw for all.
TEST(CrossSchedule, EachDrawBeyond64NodesHasAsManyPairs) {
  for (int nodes = 65; nodes <= 300; nodes += nodes < 80 ? 1 : 20) {
    std::vector<std::vector<int>> ranks;
    for (int n = 0; n < nodes; ++n) ranks.push_back({n});
    std::set<std::size_t> counts;
    for (const std::uint64_t seed : {1u, 2u, 3u, 4u})
      counts.insert(pair_count(cross_schedule(ranks, RandomStream(seed), all)));
    EXPECT_EQ(counts.size(), 1u) << nodes;
    EXPECT_GE(*counts.begin(), static_cast<std::size_t>(8 * (nodes / 2)));
  }
}

TEST(MakeSchedule, RunsTheNodesSideBySide) {
  const Topology topology = topology_of({4, 3, 1});
  const Schedule schedule = make_schedule(Scope::node, topology, RandomStream(1), all);
  expect_disjoint(schedule);
  EXPECT_EQ(schedule.size(), 3u);
  EXPECT_EQ(pairs_of(schedule).size(), 6u + 3u);
  EXPECT_EQ(partner_of(schedule[0], 7), -1) << "alone on its node";
  const Pair pair = schedule[0][0];
  EXPECT_EQ(partner_of(schedule[0], pair.a), pair.b);
  EXPECT_EQ(partner_of(schedule[0], pair.b), pair.a);
  EXPECT_TRUE(make_schedule(Scope::node, topology_of({1}), RandomStream(1), all).empty());
  EXPECT_TRUE(make_schedule(Scope::cross, topology_of({1}), RandomStream(1), all).empty());
}

/// Rounds whose pairs all cross leaves, and rounds whose pairs all stay below one.
std::pair<int, int> kinds(const Schedule& schedule, const std::vector<int>& leaves) {
  int crossing = 0, inside = 0;
  for (const Round& round : schedule) {
    const auto across = [&](const Pair& p) {
      return leaves[static_cast<std::size_t>(p.a)] != leaves[static_cast<std::size_t>(p.b)];
    };
    crossing += std::all_of(round.begin(), round.end(), across) ? 1 : 0;
    inside += std::none_of(round.begin(), round.end(), across) ? 1 : 0;
  }
  return {crossing, inside};
}

TEST(MakeSchedule, PairsAreCountedAsTheyAreMade) {
  std::vector<int> ranks(70, 3);
  ranks[4] = 2;
  for (const auto& nodes : {std::vector<int>{3, 2, 5, 3, 18}, ranks}) {
    Topology topology = topology_of(nodes);
    for (auto& place : topology.ranks) place.numa = place.local_rank % 2;
    topology.index_ranks();
    topology.index_kinds();
    EXPECT_LT(topology.kinds().size(), nodes.size());
    for (const Scope scope : {Scope::node, Scope::cross})
      for (const std::size_t rounds : {std::size_t{1}, std::size_t{5}, all})
        for (const Lanes lanes : {Lanes::all, Lanes::in_turn})
          EXPECT_EQ(pair_count(scope, topology, RandomStream(3), rounds, {}, lanes),
                    pair_count(make_schedule(scope, topology, RandomStream(3), rounds, lanes)));
  }
}

TEST(CrossSchedule, CrossesAndStaysBelowKnownLeaves) {
  for (const auto& [nodes, leaf_count] : {std::pair{1024, 32}, std::pair{200, 3}, std::pair{96, 2}}) {
    std::vector<std::vector<int>> ranks;
    std::vector<int> leaves;
    for (int n = 0; n < nodes; ++n) {
      ranks.push_back({n});
      leaves.push_back(n * leaf_count / nodes);
    }
    const Schedule schedule = cross_schedule(ranks, RandomStream(5), all, leaves);
    expect_disjoint(schedule);
    EXPECT_EQ(schedule.size(), 12U);
    EXPECT_EQ(kinds(schedule, leaves), std::pair(8, 4)) << nodes;
    EXPECT_EQ(pairs_of(schedule).size(), pair_count(schedule)) << "nobody meets twice";
    std::map<int, int> partners;
    for (const auto& [a, b] : pairs_of(schedule)) {
      ++partners[a];
      ++partners[b];
    }
    for (const auto& [node, n] : partners) EXPECT_GE(n, 8) << node;
    EXPECT_EQ(kinds(cross_schedule(ranks, RandomStream(5), 10, leaves), leaves), std::pair(6, 4));
    EXPECT_EQ(cross_schedule(ranks, RandomStream(5), 10, leaves),
              cross_schedule(ranks, RandomStream(5), 10, leaves));
  }
}

TEST(CrossSchedule, FewNodesMeetAllIfTimeAllows) {
  std::vector<std::vector<int>> ranks;
  std::vector<int> leaves;
  for (int n = 0; n < 16; ++n) {
    ranks.push_back({n});
    leaves.push_back(n / 4);
  }
  EXPECT_EQ(pairs_of(cross_schedule(ranks, RandomStream(5), all, leaves)).size(), 120U);
  const auto [crossing, inside] = kinds(cross_schedule(ranks, RandomStream(5), 10, leaves), leaves);
  EXPECT_GE(crossing, 6);
  EXPECT_EQ(inside, 3) << "4 nodes below a leaf meet in 3 rounds";
  leaves[3] = -1;
  EXPECT_EQ(cross_schedule(ranks, RandomStream(5), 10, leaves), cross_schedule(ranks, RandomStream(5), 10));
}

}  // namespace
}  // namespace assay::p2p
