// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <numeric>
#include <set>

#include "tests/unit/topology_tree.hpp"
#include "topology/topology.hpp"

namespace assay {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::made_node;
using ::testing::SizeIs;

using Masks = std::vector<std::vector<int>>;

std::vector<int> range(int n) {
  std::vector<int> cpus(static_cast<std::size_t>(n));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

TEST(ShareCpus, UnboundRanksSplitTheCoresEvenly) {
  const auto shares = share_cpus(made_node("n", 8), Masks(4, range(8)), 0);
  EXPECT_THAT(shares[0].cpus, ElementsAre(0, 1));
  EXPECT_THAT(shares[3].cpus, ElementsAre(6, 7));
  for (const auto& share : shares) EXPECT_FALSE(share.shared);
}

TEST(ShareCpus, UnboundRanksThatDoNotDivideLeaveNoCoreOut) {
  const auto shares = share_cpus(made_node("n", 8), Masks(3, range(8)), 0);
  std::set<int> used;
  for (const auto& share : shares) {
    EXPECT_FALSE(share.shared);
    used.insert(share.cpus.begin(), share.cpus.end());
  }
  EXPECT_EQ(used.size(), 8U);
}

TEST(ShareCpus, FourRanksOnTwoCoresTakeTurns) {
  const auto shares = share_cpus(made_node("n", 2), Masks(4, range(2)), 0);
  EXPECT_THAT(shares[0].cpus, ElementsAre(0));
  EXPECT_THAT(shares[1].cpus, ElementsAre(0));
  EXPECT_THAT(shares[2].cpus, ElementsAre(1));
  EXPECT_THAT(shares[3].cpus, ElementsAre(1));
  for (const auto& share : shares) EXPECT_TRUE(share.shared);
}

TEST(ShareCpus, SixtyFourRanksOnTwoCores) {
  const auto shares = share_cpus(made_node("n", 2), Masks(64, range(2)), 0);
  int on_first = 0;
  for (const auto& share : shares) {
    ASSERT_THAT(share.cpus, SizeIs(1));
    EXPECT_TRUE(share.shared);
    on_first += share.cpus[0] == 0 ? 1 : 0;
  }
  EXPECT_EQ(on_first, 32);
}

TEST(ShareCpus, BoundRanksKeepTheirOwn) {
  const auto shares = share_cpus(made_node("n", 4), {{0}, {1}, {2, 3}}, 0);
  EXPECT_THAT(shares[0].cpus, ElementsAre(0));
  EXPECT_THAT(shares[2].cpus, ElementsAre(2, 3));
  EXPECT_FALSE(shares[0].shared);
  EXPECT_FALSE(shares[2].shared);
}

TEST(ShareCpus, OverlappingMasksAreShared) {
  const auto shares = share_cpus(made_node("n", 4), {{0, 1}, {1, 2}, {3}}, 0);
  EXPECT_TRUE(shares[0].shared);
  EXPECT_TRUE(shares[1].shared);
  EXPECT_FALSE(shares[2].shared);
}

TEST(ShareCpus, OneThreadPerCoreWithSmt) {
  const Node node = made_node("n", 4, 2);  // core i has the threads i and i + 4
  auto shares = share_cpus(node, Masks(2, range(8)), 0);
  EXPECT_THAT(shares[0].cpus, ElementsAre(0, 1));
  EXPECT_THAT(shares[1].cpus, ElementsAre(2, 3));
  EXPECT_FALSE(shares[0].shared);
  shares = share_cpus(node, {{0}, {4}}, 0);  // one hardware thread each of one core
  EXPECT_TRUE(shares[0].shared) << "they share the core";
  shares = share_cpus(node, Masks(8, range(8)), 0);
  EXPECT_THAT(shares[0].cpus, ElementsAre(0));
  EXPECT_THAT(shares[1].cpus, ElementsAre(4)) << "a hardware thread of its own while there are enough";
  EXPECT_TRUE(shares[0].shared);
}

TEST(ShareCpus, QuotaCapsTheThreads) {
  Node node = made_node("n", 8);
  node.cpu_quota_cores = 4;
  auto shares = share_cpus(node, Masks(2, range(8)), 0);
  EXPECT_THAT(shares[0].cpus, SizeIs(2));
  EXPECT_THAT(shares[1].cpus, SizeIs(2));
  EXPECT_FALSE(shares[0].shared);
  node.cpu_quota_cores = 1.5;
  shares = share_cpus(node, Masks(2, range(8)), 0);
  EXPECT_THAT(shares[0].cpus, SizeIs(1)) << "never fewer than one";
  EXPECT_TRUE(shares[0].shared) << "two threads under a quota of one and a half take turns";
}

TEST(ShareCpus, AnOverrideWins) {
  Node node = made_node("n", 8, 2);
  EXPECT_THAT(share_cpus(node, Masks(2, range(16)), 1)[1].cpus, ElementsAre(4));
  auto shares = share_cpus(node, Masks(2, range(16)), 8);
  EXPECT_THAT(shares[0].cpus, ElementsAre(0, 1, 2, 3, 8, 9, 10, 11))
      << "the second hardware threads of its own cores";
  EXPECT_FALSE(shares[0].shared);
  shares = share_cpus(made_node("n", 2), Masks(1, range(2)), 4);
  EXPECT_THAT(shares[0].cpus, ElementsAre(0, 0, 1, 1));
  EXPECT_TRUE(shares[0].shared);
}

TEST(ShareCpus, UnknownCpusCountAsCores) {
  const auto shares = share_cpus(Node{}, {{3, 5}, {3, 5}}, 0);
  EXPECT_THAT(shares[0].cpus, ElementsAre(3));
  EXPECT_THAT(shares[1].cpus, ElementsAre(5));
  EXPECT_THAT(share_cpus(made_node("n", 2), {{}}, 0)[0].cpus, IsEmpty());
  EXPECT_THAT(share_cpus(made_node("n", 2), {}, 0), IsEmpty());
}

}  // namespace
}  // namespace assay
