// SPDX-License-Identifier: Apache-2.0
// Which parts a page shows beside a finding and over time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "report/html/grouping.hpp"
#include "report/html/markup.hpp"
#include "report/html/svg.hpp"
#include "tests/unit/report/page_made.hpp"
#include "verdict/baseline.hpp"

namespace assay {
namespace {

using testing::HasSubstr;

TEST(Seen, OfALinkBothEndsTheirNodesAndTheNicsThatItMayTake) {
  auto r = fabricate::cluster(3);
  const auto node = fabricate::row_named(r, "node1");
  r.entities.push_back({"nic", "mac-2", "mac", "node1/eth1", node, -1});
  for (const char* nic : {"node0/eth0", "node1/eth0", "node1/eth1", "node2/eth0"})
    r.counters.push_back({"p2p/x", fabricate::row_named(r, nic), "rx_errors", 0, 1});
  r.counters.push_back({"p2p/x", fabricate::row_named(r, "node1/cores0-1"), "unchanged", 1, 1});
  r.events.push_back({1, node, "xid", "79"});
  r.flags.push_back({1, fabricate::row_named(r, "node1/cores0-1"), "hw_thermal", 1});
  const report::Seen seen(r);
  const auto counters = [&](const std::string& name) {
    std::string parts;
    for (const auto* c : seen.near(name).counters)
      parts += r.entities[static_cast<std::size_t>(c->entity)].name + " ";
    return parts;
  };
  EXPECT_EQ(counters("node0/eth0>node1/eth1"), "node0/eth0 node1/eth1 ");
  EXPECT_EQ(counters("node1/cores0-1>node0/cores0-1"), "node0/eth0 node1/eth0 node1/eth1 ");
  EXPECT_EQ(counters("node0>node2"), "node0/eth0 node2/eth0 ");
  EXPECT_EQ(counters("node1"), "node1/eth0 node1/eth1 ");
  EXPECT_EQ(counters("node1/eth1"), "node1/eth1 ");
  EXPECT_EQ(seen.near("node0/eth0>node1/eth1").events.size(), 1U);
  EXPECT_TRUE(seen.near("node0/eth0>node1/eth1").flags.empty());
  EXPECT_EQ(seen.near("node1").flags.size(), 1U);
}

TEST(Page, AChangeThatRoundsToNothingHasNoSign) {
  EXPECT_EQ(report::signed_percent(-4e-5), "0.00 %");
  EXPECT_EQ(report::signed_percent(-6e-5), "\u22120.01 %");
  EXPECT_EQ(report::signed_percent(6e-5), "+0.01 %");
}

TEST(Page, OfManyCountersErrorsComeFirst) {
  auto r = fleet(300);
  for (const auto row : fabricate::rows_of_kind(r, "nic"))
    for (const char* counter : {"rx_bytes", "tx_bytes"}) r.counters.push_back({"p2p/x", row, counter, 0, 8});
  for (const auto row : fabricate::rows_of_kind(r, "device"))
    for (const char* counter : {"nvml_violation_power_ns", "nvml_violation_sync_boost_ns"})
      r.counters.push_back({"p2p/x", row, counter, 0, 8});
  r.counters.push_back({"p2p/x", fabricate::row_named(r, "node299"), "edac_ce", 0, 1});
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  const auto begin =
      page.find("Counters that changed while cases ran: 500 of 1201, the others are in the file");
  ASSERT_NE(begin, std::string::npos);
  const std::string table = page.substr(begin, page.find("No value was wrong", begin) - begin);
  std::size_t rows = 0;
  for (const std::string end : {"_bytes</td>", "_ns</td>"}) {
    for (auto at = table.find(end); at != std::string::npos; at = table.find(end, at + 1)) ++rows;
    EXPECT_LT(table.find("edac_ce</td>"), table.find(end));
  }
  EXPECT_EQ(rows, 499U);
}

TEST(Page, OfManyPartsTheExtremesAndTheMiddleAreDrawn) {
  auto r = fleet(100);
  const auto rows = fabricate::rows_of_kind(r, "device");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double value = static_cast<double>(i);
    r.telemetry.append({{rows[i], rows[i], rows[i]},
                        {0, 1, 2},
                        {{"temperature", {value, value, value}}},
                        {{"temperature", "K"}}});
    for (int k = 0; k < 50; ++k) r.flags.push_back({1, rows[i], "hw_thermal", k % 2});
    r.errors.push_back({"memory/triad-together", rows[i], 0, 1, 2, 2, 1});
  }
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  const Json data = data_of(page);
  ASSERT_EQ(data["telemetry"].size(), 24U);
  for (const std::size_t at : {0U, 8U, 23U})
    EXPECT_EQ(data["telemetry"][at]["part"], rows[at == 0 ? 0 : at == 8 ? 46 : 99]);
  EXPECT_LE(data["flags"].size(), 2000U);
  EXPECT_THAT(page, HasSubstr("24 of 100 parts: those with the lowest, the middle and the highest medians"));
  const auto once = [&](const std::string& mark) { return page.find(mark) == page.rfind(mark); };
  EXPECT_TRUE(once("class=\"flag set\"") && once("class=\"flag\"")) << "all at one time";
}

/// One part with many flags between others with a single one.
TEST(Page, EveryPartThatWasThrottledKeepsAFlag) {
  for (const std::size_t parts : {100U, 3000U}) {
    auto r = fabricate::cluster(static_cast<int>(parts));
    const auto rows = fabricate::rows_of_kind(r, "device");
    for (int k = 0; k < 20'000; ++k) {
      r.flags.push_back({0.1 * k, rows[50], "hw_thermal", 1});
      r.flags.push_back({0.1 * k, rows[51], "hw_thermal", 0});
      const auto at = static_cast<std::size_t>(k);
      if (at < parts && at != 51) r.flags.push_back({1, rows[at], "sw_power", 1});
    }
    const Made made(std::move(r));
    const Json flags = data_of(report::page_html(made.input()))["flags"];
    std::set<int> drawn;
    for (const auto& f : flags) {
      EXPECT_EQ(f["value"], 1);
      drawn.insert(f["part"].get<int>());
    }
    EXPECT_LE(flags.size(), 2000U);
    EXPECT_GE(flags.size(), 1000U);
    if (parts == 100) {
      EXPECT_EQ(drawn.size(), 99U) << "all but one, whose flags were never set";
    } else {
      EXPECT_GE(drawn.size(), 1000U) << "evenly, where there are more parts than flags";
    }
  }
}

TEST(Page, AFindingLinksToNodesAlone) {
  Made made(fleet(8, 0.7));
  auto& f = made.verdict.findings.front();
  for (const auto& [name, links] : std::map<std::string, std::string>{
           {"switch:leaf1", "</dl></details>"},
           {"node3/eth0>node4/eth0",
            "Node: <a href=\"#node/node3\">node3</a>, <a href=\"#node/node4\">node4</a></p></details>"}}) {
    f.name = name;
    EXPECT_THAT(report::page_html(made.input()), HasSubstr(links)) << name;
  }
}

TEST(Page, TheBoundOfPartsOfTwoKindsIsThatOfTheSlowerKind) {
  auto r = fabricate::cluster(8);
  verdict::Baseline baseline{"b", {}, {}, {}, {}};
  for (const int size : {1024, 4096, 16384}) {
    const std::string name = "copy-" + std::to_string(size) + "-together";
    fabricate::add_case(r, "memory", name, "bandwidth", "B/s", results::Better::higher, "device",
                        fabricate::rows_of_kind(r, "device"), std::vector<double>(8, 1e9), 12)
        .parameters["bytes"] = size;
    for (const double rate : {2e9, 3e9})
      baseline.values.push_back({"memory/" + name + ":bandwidth", "memory" + name, rate < 3e9 ? "A" : "B",
                                 std::log(rate), 0, 8, 0});
  }
  verdict::Options options;
  options.baseline = std::make_shared<const verdict::Baseline>(baseline);
  const Made made(std::move(r), options);
  const Json data = data_of(report::page_html(made.input()));
  ASSERT_EQ(data["sweeps"].size(), 1U);
  for (const Json& bound : data["sweeps"][0]["bound"]) EXPECT_NEAR(bound.get<double>(), 2e9, 1e5);
  // With a contract for one size the line is that of the contract.
  auto both = options;
  both.limits_text = "[[limit]]\nmetric = \"memory/copy-4096-*:bandwidth\"\nmin = \"3 MB/s\"\n";
  const Made promised(made.results, both);
  const Json sweep = data_of(report::page_html(promised.input()))["sweeps"][0];
  EXPECT_EQ(sweep["bound_kind"], "contract");
  EXPECT_EQ(sweep["bound"], Json::array({nullptr, 3e6, nullptr}));
}

TEST(Page, ANumberOfAPathIsNoSize) {
  const auto sweeps = [](bool sizes) {
    auto r = fabricate::cluster(8);
    const auto rows = fabricate::rows_of_kind(r, "node");
    for (int number = 1; number <= 4; ++number) {
      auto& c = fabricate::add_case(r, "storage", "local-write-" + std::to_string(number), "bandwidth", "B/s",
                                    results::Better::higher, "node", rows, std::vector<double>(8, 1e9), 12);
      if (sizes)
        c.parameters["bytes"] = number;
      else
        c.parameters["path_index"] = number - 1;
    }
    const Made made(std::move(r));
    return report::sweeps_of(made.judgement).size();
  };
  EXPECT_EQ(sweeps(false), 0U);
  EXPECT_EQ(sweeps(true), 1U);
}

TEST(Page, AloneAndTogetherAreComparedForPartsOfOneKindAndOneOperation) {
  const auto page_of = [](const char* kind, const char* operation) {
    auto r = fabricate::cluster(8);
    for (const bool together : {false, true}) {
      const auto rows = fabricate::rows_of_kind(r, together ? kind : "device");
      auto& c = fabricate::add_case(r, "memory", together ? "triad-together" : "triad-alone", "bandwidth",
                                    "B/s", results::Better::higher, together ? kind : "device", rows,
                                    std::vector<double>(rows.size(), together ? 25e9 : 100e9), 12);
      c.traits = results::CaseTraits{together ? operation : "stream", !together, false};
    }
    const Made made(std::move(r));
    return report::page_html(made.input());
  };
  const char* title = "Alone against together";
  EXPECT_THAT(page_of("device", "stream"), HasSubstr(title));
  EXPECT_THAT(page_of("numa", "stream"), testing::Not(HasSubstr(title))) << "a rank and a NUMA domain";
  EXPECT_THAT(page_of("device", "together"), testing::Not(HasSubstr(title)));
}

TEST(Page, OfManyValuesOfTheEnvironmentTheMostFrequentAreShown) {
  auto r = fleet(8);
  for (int i = 0; i < 6; ++i)
    for (int node = 0; node <= i; ++node)
      r.environment.push_back({"node" + std::to_string(node), "driver", "v" + std::to_string(i)});
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  const auto row = [](const char* what, const char* value) {
    return std::string("<td>") + what + "</td><td class=\"wide\">" + value + "</td>";
  };
  EXPECT_THAT(page, HasSubstr(row("driver", "v5")));
  EXPECT_THAT(page, HasSubstr(row("", "v2")));
  EXPECT_THAT(page, testing::Not(HasSubstr(row("", "v1"))));
  EXPECT_THAT(page, HasSubstr(row("", "2 more values")));
}

TEST(Page, RacksAreInTheOrderOfTheirNumbers) {
  auto r = fleet(12);
  results::InventoryTable nics;
  for (int node = 0; node < 12; ++node) {
    nics.entity.push_back(fabricate::row_named(r, "node" + std::to_string(node)));
    nics.text["rack"].push_back("rack" + std::to_string(12 - node));
  }
  r.inventory["nic"] = nics;
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  const auto first = page.find("<h3>rack1</h3>"), second = page.find("<h3>rack2</h3>"),
             tenth = page.find("<h3>rack10</h3>");
  ASSERT_NE(tenth, std::string::npos);
  EXPECT_LT(first, second);
  EXPECT_LT(second, tenth);
}

TEST(Page, AnAxisOfZerosHasRoom) {
  const auto scale = report::scale_of({0, 0, 0}, 0, 100);
  EXPECT_EQ(scale.low, -1);
  EXPECT_EQ(scale.high, 1);
  EXPECT_EQ(scale.at(0), 50);
}

}  // namespace
}  // namespace assay
