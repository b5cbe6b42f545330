// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <utility>

#include "results/inventory_names.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double gb = 1e9;

/// Nodes with two ranks, eth0, and `ports` InfiniBand ports each.
class PathFleet {
 public:
  explicit PathFleet(int nodes, int ports = 0) : results(cluster(nodes, 2)) {
    auto& table = results.inventory["nic"];
    for (int n = 0; n < nodes; ++n) {
      const std::string node = "node" + std::to_string(n);
      list(table, row_named(results, node + "/eth0"), "ethernet", 1.25e9);
      for (int p = 0; p < ports; ++p) {
        const auto row = static_cast<std::int32_t>(results.entities.size());
        const std::string name = node + "/mlx5_" + std::to_string(p) + ":1";
        results.entities.push_back({"nic", "guid-" + name, "guid", name, row_named(results, node), -1});
        list(table, row, "infiniband", 25e9);
      }
    }
    add_selftest(results, "pair");
  }

  /// Each of `pairs` sent `payload` bytes in this case.
  std::string sent(const std::string& name, const std::vector<std::pair<std::string, std::string>>& pairs,
                   double payload) {
    const auto many = pairs.size();
    auto& c = add_case(results, "p2p", name, "bandwidth", "B/s", results::Better::higher, "link",
                       std::vector<std::int32_t>(many, -1), std::vector<double>(many, 1e9));
    c.parameters["path"] = "ob1/self,tcp,vader";
    for (const auto& [from, to] : pairs) {
      c.source.push_back(row_named(results, from));
      c.destination.push_back(row_named(results, to));
    }
    c.metrics.push_back({"payload", "B", results::Better::none, false, results::Role::covariate, false,
                         std::vector<double>(many, payload)});
    return c.path();
  }

  void moved(const std::string& path, const std::string& nic, double bytes) {
    results.counters.push_back({path, row_named(results, nic), "tx_bytes", 1000, 1000 + bytes});
  }

  /// Findings about paths.
  std::vector<results::Finding> found() const {
    std::vector<results::Finding> all;
    for (auto& f : judge(results).findings)
      if (f.metric == "path") all.push_back(f);
    return all;
  }

  results::Results results;

 private:
  static void list(results::InventoryTable& table, std::int32_t row, const char* kind, double rate) {
    table.entity.push_back(row);
    table.text["kind"].emplace_back(kind);
    table.text["state"].emplace_back("up");
    table.number[results::inventory::rate].push_back(rate);
  }
};

const std::string a0 = "node0/cores0-1", a1 = "node0/cores2-3", b0 = "node1/cores0-1", b1 = "node1/cores2-3";

TEST(VerdictPaths, BytesOnTheNicThatShouldCarryThemAreNoFinding) {
  PathFleet fleet(2);
  const auto path = fleet.sent("bandwidth-uni-4194304-cross-mpi", {{a0, b0}, {b0, a0}, {a1, b1}}, gb);
  fleet.moved(path, "node0/eth0", 2.02 * gb);
  fleet.moved(path, "node1/eth0", 1.02 * gb);
  EXPECT_THAT(fleet.found(), IsEmpty());
}

TEST(VerdictPaths, BytesThatNoNicMovedTookAnotherWay) {
  PathFleet fleet(2);
  const auto path = fleet.sent("bandwidth-uni-4194304-cross-mpi", {{a0, b0}, {b0, a0}}, gb);
  fleet.moved(path, "node0/eth0", 0.9 * gb);
  fleet.moved(path, "node1/eth0", 1.01 * gb);
  const auto found = fleet.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "node0");
  EXPECT_EQ(found[0].severity, "WARN");
  EXPECT_EQ(found[0].kind, "mismatch");
  EXPECT_THAT(found[0].text, HasSubstr("of 1 GB sent to other nodes its NICs moved 900 MB"));
}

TEST(VerdictPaths, LocalAndSmallMessagesAreIgnored) {
  PathFleet fleet(2);
  const auto inside = fleet.sent("bandwidth-uni-4194304-node-mpi", {{a0, a1}, {b1, b0}}, gb);
  const auto small = fleet.sent("latency-8-cross-mpi", {{a0, b0}, {b0, a0}}, 1e6);
  for (const auto& path : {inside, small})
    for (const char* nic : {"node0/eth0", "node1/eth0"}) fleet.moved(path, nic, 0);
  EXPECT_THAT(fleet.found(), IsEmpty());
}

TEST(VerdictPaths, AdaptersThatTheKernelDoesNotCountAreNotAccused) {
  for (const char* path : {"cm/ofi", "cm/psm2", "mpi", "requested:rc_mlx5"}) {
    PathFleet fleet(2);
    fleet.moved(fleet.sent("bandwidth-uni-4194304-cross-mpi", {{a0, b0}}, gb), "node0/eth0", 1e6);
    EXPECT_EQ(fleet.found().size(), 1U);
    fleet.results.cases.front().parameters["path"] = path;
    EXPECT_THAT(fleet.found(), IsEmpty()) << path;
  }
}

TEST(VerdictPaths, CountersThatCannotBeReadClaimNothing) {
  PathFleet fleet(2);
  const auto path = fleet.sent("bandwidth-uni-4194304-cross-mpi", {{a0, b0}}, gb);
  fleet.results.counters.push_back(
      {path, row_named(fleet.results, "node0/eth0"), "tx_bytes", results::not_taken, results::not_taken});
  EXPECT_THAT(fleet.found(), IsEmpty());
}

/// A counter without a number has one row in the run, in the first case.
TEST(VerdictPaths, CountersThatCannotBeReadClaimNothingOfLaterCases) {
  PathFleet fleet(2);
  const auto first = fleet.sent("bandwidth-uni-262144-cross-mpi", {{a0, b0}}, gb);
  fleet.sent("bandwidth-uni-4194304-cross-mpi", {{a0, b0}}, gb);
  fleet.results.counters.push_back(
      {first, row_named(fleet.results, "node0/eth0"), "tx_bytes", results::not_taken, results::not_taken});
  EXPECT_THAT(fleet.found(), IsEmpty());
}

TEST(VerdictPaths, InterfacesOfContainersComeAndGo) {
  PathFleet fleet(2);
  auto& r = fleet.results;
  const auto veth = static_cast<std::int32_t>(r.entities.size());
  r.entities.push_back({"nic", "veth7", "path", "node0/veth7", row_named(r, "node0"), -1});
  r.counters.push_back({"p2p/x", veth, "rx_bytes", 5, results::not_taken});
  const auto unreadable = [&] { return all_reasons(judge(r)).find("unreadable") != std::string::npos; };
  EXPECT_FALSE(unreadable());
  const auto inventory = std::exchange(r.inventory, {});
  EXPECT_TRUE(unreadable()) << "without an inventory nobody knows";
  r.inventory = inventory;
  r.counters.push_back({"p2p/x", veth, "rx_errors", 5, results::not_taken});
  EXPECT_TRUE(unreadable()) << "no traffic";
}

TEST(VerdictPaths, AnInterfaceThatWentAwayHidesNothing) {
  PathFleet fleet(2);
  auto& r = fleet.results;
  const auto veth = static_cast<std::int32_t>(r.entities.size());
  r.entities.push_back({"nic", "veth7", "path", "node0/veth7", row_named(r, "node0"), -1});
  const auto first = fleet.sent("bandwidth-uni-262144-cross-mpi", {{a0, b0}, {b0, a0}}, gb);
  const auto second = fleet.sent("bandwidth-uni-4194304-cross-mpi", {{a0, b0}, {b0, a0}}, gb);
  r.counters.push_back({first, veth, "tx_bytes", 7, results::not_taken});
  r.counters.push_back({second, veth, "tx_bytes", results::not_taken, results::not_taken});
  for (const auto& path : {first, second}) {
    fleet.moved(path, "node0/eth0", 0.2 * gb);
    fleet.moved(path, "node1/eth0", 1.01 * gb);
  }
  const auto found = fleet.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "node0");
}

TEST(VerdictPaths, SingleNicWithoutItsTrafficIsNamed) {
  PathFleet fleet(2, 2);
  const auto path =
      fleet.sent("bandwidth-uni-4194304-cross-ucx-mlx5_1.1",
                 {{"node0/mlx5_1:1", "node1/mlx5_1:1"}, {"node1/mlx5_1:1", "node0/mlx5_1:1"}}, gb);
  for (const char* node : {"node0", "node1"}) fleet.moved(path, std::string(node) + "/mlx5_1:1", 1.02 * gb);
  EXPECT_THAT(fleet.found(), IsEmpty());
  fleet.results.counters.pop_back();
  fleet.moved(path, "node1/mlx5_1:1", 1e6);
  fleet.moved(path, "node1/mlx5_0:1", 1.01 * gb);
  const auto found = fleet.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "node1/mlx5_1:1");
  EXPECT_EQ(found[0].level, "nic");
  EXPECT_THAT(
      found[0].text,
      HasSubstr("1 GB were sent over node1/mlx5_1:1 alone, which moved 1 MB; node1/mlx5_0:1 moved 1.01 GB"));
}

TEST(VerdictPaths, ANicThatTheCaseDoesNotMentionMovedNothing) {
  PathFleet fleet(2, 2);
  const auto path =
      fleet.sent("bandwidth-uni-4194304-cross-ucx-mlx5_1.1", {{"node0/mlx5_1:1", "node1/mlx5_1:1"}}, gb);
  fleet.moved(path, "node0/mlx5_0:1", 1.01 * gb);
  EXPECT_THAT(fleet.found(), IsEmpty()) << "nobody knows whether its counter can be read";
  fleet.moved("gemm/fp32-n2048-together", "node0/mlx5_1:1", 0);
  const auto found = fleet.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].text,
              HasSubstr("over node0/mlx5_1:1 alone, which moved 0 B; node0/mlx5_0:1 moved 1.01 GB"));
}

TEST(VerdictPaths, TcpWhereThereIsInfiniBandIsOneFindingForAllNodes) {
  PathFleet fleet(2, 1);
  const auto path = fleet.sent("bandwidth-uni-4194304-cross-mpi", {{a0, b0}, {b0, a0}}, gb);
  for (const std::string node : {"node0", "node1"}) {
    fleet.moved(path, node + "/eth0", 1.05 * gb);
    fleet.moved(path, node + "/mlx5_0:1", 0);
  }
  const auto found = fleet.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].level, "cluster");
  EXPECT_THAT(found[0].members, ElementsAre("node0", "node1"));
  EXPECT_THAT(found[0].text, HasSubstr("InfiniBand and RoCE ports moved 0 B, node0/eth0 1.05 GB; 2 parts"));
}

TEST(VerdictPaths, TheInterfaceThatRidesOnAPortIsNotCountedTwice) {
  PathFleet fleet(2, 1);
  const auto path = fleet.sent("bandwidth-uni-4194304-cross-mpi", {{a0, b0}}, gb);
  fleet.results.inventory["nic"].text["netdev_info"] = {"", "ib0", "", "ib0"};
  fleet.results.entities.push_back(
      {"nic", "mac-ib0", "mac", "node0/ib0", row_named(fleet.results, "node0"), -1});
  fleet.moved(path, "node0/ib0", 1.05 * gb);
  fleet.moved(path, "node0/mlx5_0:1", 0);
  fleet.moved(path, "node0/eth0", 0);
  const auto found = fleet.found();
  ASSERT_EQ(found.size(), 1U) << "IPoIB would hide that the port moved nothing";
  EXPECT_THAT(found[0].text, HasSubstr("its NICs moved 0 B"));
}

TEST(VerdictPaths, OneOfSeveralPortsThatCarriesAllRanksIsNamed) {
  PathFleet fleet(2, 4);
  const auto path = fleet.sent("bandwidth-uni-4194304-cross-mpi", {{a0, b0}, {a1, b1}}, gb);
  fleet.moved(path, "node0/mlx5_2:1", 2.01 * gb);
  for (const char* nic : {"node0/mlx5_0:1", "node0/mlx5_1:1", "node0/mlx5_3:1", "node0/eth0"})
    fleet.moved(path, nic, 1e6);
  auto found = fleet.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, "WARN");
  EXPECT_EQ(found[0].name, "node0/mlx5_2:1");
  EXPECT_THAT(
      found[0].text,
      HasSubstr("of the bytes of 2 ranks; nearly idle: node0/mlx5_0:1 node0/mlx5_1:1 node0/mlx5_3:1"));
  fleet.results.counters.pop_back();
  fleet.moved(path, "node0/mlx5_1:1", gb);
  found = fleet.found();
  EXPECT_THAT(found, IsEmpty()) << "two ports shared the work";
}

}  // namespace
}  // namespace assay
