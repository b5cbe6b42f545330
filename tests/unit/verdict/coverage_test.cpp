// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "report/report.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/link_coverage.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

/// Nodes with two NICs on switches of their own pair by pair; `links` over the first NIC, 100 bytes each way.
results::Results fleet(int nodes, const std::vector<std::pair<std::string, std::string>>& links) {
  auto r = cluster(nodes, 2);
  results::InventoryTable table;
  for (int n = 0; n < nodes; ++n)
    for (const char* nic : {"eth0", "eth1"}) {
      const std::string node = "node" + std::to_string(n);
      if (std::string(nic) == "eth1")
        r.entities.push_back({"nic", "mac1-" + node, "mac", node + "/eth1", row_named(r, node), -1});
      table.entity.push_back(row_named(r, node + "/" + nic));
      table.text["switch"].push_back((std::string(nic) == "eth0" ? "leaf" : "rail") + std::to_string(n / 2));
      table.text["state"].push_back("up");
    }
  r.inventory["nic"] = table;
  std::vector<std::int32_t> rows, source, destination;
  for (const auto& [a, b] : links)
    for (const bool forth : {true, false}) {
      const std::string &from = forth ? a : b, &to = forth ? b : a;
      source.push_back(row_named(r, from));
      destination.push_back(row_named(r, to));
      rows.push_back(static_cast<std::int32_t>(r.entities.size()));
      r.entities.push_back({"link", "id-" + from + to, "path", from + ">" + to, 0, -1});
    }
  auto& c = add_case(r, "p2p", "bandwidth-uni-1048576-cross-ucx-eth0", "bandwidth", "B/s",
                     results::Better::higher, "link", rows, std::vector<double>(rows.size(), 1e9));
  c.source = source;
  c.destination = destination;
  c.metrics.push_back({"payload", "B", results::Better::none, false, results::Role::covariate, false,
                       std::vector<double>(rows.size(), 100)});
  return r;
}

TEST(LinkCoverage, CountsPairsAndSaysWhatCarriedNothing) {
  const auto r = fleet(4, {{"node0/eth0", "node1/eth0"}, {"node0/eth0", "node2/eth0"}});
  const auto coverage = verdict::link_coverage(r);
  EXPECT_EQ(coverage.nodes.size(), 2U);
  EXPECT_EQ(coverage.node_pairs, 6);
  EXPECT_EQ(coverage.nics.size(), 2U);
  EXPECT_EQ(coverage.nic_pairs, 12);  // of eth0 and of eth1
  EXPECT_EQ(coverage.cables.size(), 8U);
  EXPECT_EQ(coverage.cables.at(row_named(r, "node0/eth0")).bytes, 400);
  EXPECT_EQ(coverage.cables.at(row_named(r, "node3/eth0")).bytes, 0);
  ASSERT_EQ(coverage.switches.size(),
            2U);  // leaf0-leaf1, rail0-rail1: no NIC has a namesake on a leaf and a rail
  EXPECT_EQ(coverage.switches.at({"leaf0", "leaf1"}).bytes, 200);
  EXPECT_EQ(coverage.switches.at({"rail0", "rail1"}).bytes, 0);
  EXPECT_EQ(report::coverage_line(r),
            "links: 2 of 6 pairs of nodes, 2 of 12 pairs of NICs, 1 of 2 pairs of switches, 400 B; no "
            "traffic on node3/eth0, node0/eth1, node1/eth1, node2/eth1, "
            "node3/eth1, rail0-rail1");
  const auto csv = report::coverage_csv(r, {});
  EXPECT_THAT(csv, HasSubstr("level,from,to,bytes,cases\nnode,node0,node1,200,1\n"));
  EXPECT_THAT(csv, HasSubstr("\nnic,node0/eth0,node1/eth0,200,1\n"));
  EXPECT_THAT(csv, HasSubstr("\ncable,node3/eth0,leaf1,0,0\n"));
  EXPECT_THAT(csv, HasSubstr("\nswitch,leaf0,leaf1,200,1\nswitch,rail0,rail1,0,0\n"));
}

TEST(LinkCoverage, PairsAcrossRailsCountApart) {
  const auto r = fleet(4, {{"node0/eth0", "node1/eth0"}, {"node0/eth0", "node2/eth1"}});
  EXPECT_THAT(report::coverage_line(r), HasSubstr(", 1 of 12 pairs of NICs and 1 across rails, "));
  EXPECT_EQ(verdict::link_coverage(r).along_rails, 1U);
}

TEST(LinkCoverage, WhereANodeHasSeveralNicsTheirCountersTell) {
  auto r = fleet(2, {{"node0/cores0-1", "node1/cores0-1"}});
  const auto nic = row_named(r, "node1/eth1");
  r.counters.push_back({r.cases[0].path(), nic, "tx_bytes", 5e6, 8e6});
  r.counters.push_back({r.cases[0].path(), row_named(r, "node0/eth0"), "tx_bytes", 5e6, 5.1e6});
  const auto coverage = verdict::link_coverage(r);
  EXPECT_EQ(coverage.nodes.size(), 1U);
  EXPECT_TRUE(coverage.nics.empty()) << "which of two NICs it was is not known";
  EXPECT_EQ(coverage.cables.at(nic).bytes, 3e6);
  EXPECT_EQ(coverage.cables.at(row_named(r, "node0/eth0")).bytes, 0)
      << "what a kernel says to its neighbours";
  EXPECT_TRUE(coverage.idle(coverage.cables.at(row_named(r, "node0/eth0"))));
  EXPECT_FALSE(coverage.cables.at(row_named(r, "node0/eth1")).known) << "it has no counter";
  const auto csv = report::coverage_csv(r, {});
  EXPECT_THAT(csv, HasSubstr("\ncable,node0/eth0,leaf0,0,0\n"));
  EXPECT_THAT(csv, HasSubstr("\ncable,node0/eth1,rail0,,\n"));
  r.cases[0].metrics.pop_back();
  EXPECT_THAT(report::coverage_csv(r, {}), HasSubstr("\ncable,node1/eth1,rail0,,\n"))
      << "no bytes were recorded";
}

TEST(LinkCoverage, IsSilentWithoutMessagesBetweenNodes) {
  auto r = cluster(2);
  EXPECT_EQ(report::coverage_line(r), "");
  EXPECT_EQ(report::coverage_csv(r, {}), "level,from,to,bytes,cases\n");
}

}  // namespace
}  // namespace assay
