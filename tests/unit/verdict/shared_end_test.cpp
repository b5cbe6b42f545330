// SPDX-License-Identifier: Apache-2.0
// Links that break a bound and hang on one part are that part. The rates are those that each test writes
// down, link by link; nothing is drawn or modelled.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using Rate = std::function<double(const std::string& from, const std::string& to)>;

bool of(const std::string& end, const std::string& node) { return end.starts_with(node + "/"); }
int number(const std::string& end) { return std::stoi(end.substr(4)); }

/// Pairs of all devices (or NICs) of different nodes, both ways.
results::Results links(int nodes, int devices, const Rate& rate, const std::string& kind = "device",
                       int samples = 6) {
  auto r = cluster(nodes, devices);
  std::vector<std::int32_t> rows, source, destination;
  std::vector<double> rates;
  const auto ends = rows_of_kind(r, kind);
  for (const auto a : ends)
    for (const auto b : ends) {
      const auto &from = r.entities[static_cast<std::size_t>(a)],
                 &to = r.entities[static_cast<std::size_t>(b)];
      if (from.parent == to.parent) continue;
      if (rate(from.name, to.name) == 0) continue;
      source.push_back(a);
      destination.push_back(b);
      rates.push_back(rate(from.name, to.name));
    }
  for (std::size_t i = 0; i < source.size(); ++i) {
    const std::string name = r.entities[static_cast<std::size_t>(source[i])].name + ">" +
                             r.entities[static_cast<std::size_t>(destination[i])].name;
    rows.push_back(static_cast<std::int32_t>(r.entities.size()));
    r.entities.push_back({"link", "id-" + name, "path", name, 0, -1});
  }
  auto& c = add_case(r, "p2p", "bandwidth-uni-4194304-cross-mpi", "bandwidth", "B/s", results::Better::higher,
                     "link", rows, rates, samples);
  c.source = source;
  c.destination = destination;
  add_selftest(r, "pair");
  return r;
}

verdict::Options promised(const results::Results& r) {
  auto options = verdict::options_from(r);
  options.limits_text = "[[limit]]\nmetric = \"p2p/bandwidth-uni-*:bandwidth\"\nmin = \"9 GB/s\"\n";
  options.limits_name = "limits.toml";
  return options;
}

std::vector<std::string> failed(const results::Results& r) {
  std::vector<std::string> names;
  for (const auto& f : verdict::judge(r, promised(r)).findings)
    if (f.severity == "FAIL") names.push_back(f.level + " " + f.name);
  return names;
}

TEST(SharedEnd, ANodeAllOfWhoseLinksAreSlow) {
  const auto r =
      links(4, 1, [](const auto& a, const auto& b) { return of(a, "node2") || of(b, "node2") ? 5e9 : 1e10; });
  const auto v = verdict::judge(r, promised(r));
  ASSERT_EQ(failed(r), std::vector<std::string>{"node node2"});
  EXPECT_THAT(v.findings[0].text, HasSubstr("median of 6 of the 6 links it has"));
  EXPECT_EQ(v.findings[0].part, "");  // the inventory told of no NIC
  EXPECT_EQ(state_of(r, v, "node2"), "FAIL");
  EXPECT_EQ(state_of(r, v, "node1"), "PASS");
}

TEST(SharedEnd, OnlyWhatItReceives) {
  const auto r = links(4, 1, [](const auto&, const auto& b) { return of(b, "node1") ? 5e9 : 1e10; });
  ASSERT_EQ(failed(r), std::vector<std::string>{"node node1"});
  EXPECT_THAT(verdict::judge(r, promised(r)).findings[0].text,
              HasSubstr("3 of the 3 links it receives over"));
}

TEST(SharedEnd, ASlowLinkTheOtherWayIsNoFindingOfItsOwn) {
  // node1 receives slowly from all, and sends slowly to node3 alone.
  const auto r = links(4, 1, [](const auto& a, const auto& b) {
    return of(b, "node1") || (of(a, "node1") && of(b, "node3")) ? 5e9 : 1e10;
  });
  EXPECT_EQ(failed(r), std::vector<std::string>{"node node1"});
}

TEST(SharedEnd, OneDeviceOfANodeIsNotTheNode) {
  const auto slow = [](const std::string& a, const std::string& b) {
    return a == "node1/cores2-3" || b == "node1/cores2-3" ? 5e9 : 1e10;
  };
  EXPECT_EQ(failed(links(3, 2, slow)), std::vector<std::string>{"device node1/cores2-3"});
  const auto both = [](const auto& a, const auto& b) {
    return of(a, "node1") || of(b, "node1") ? 5e9 : 1e10;
  };
  EXPECT_EQ(failed(links(4, 2, both)), std::vector<std::string>{"node node1"});
}

TEST(SharedEnd, ANicThatWasMeasuredByItselfIsNamed) {
  const auto slow = [](const auto& a, const auto& b) {
    return of(a, "node0") || of(b, "node0") ? 5e9 : 1e10;
  };
  EXPECT_EQ(failed(links(4, 1, slow, "nic")), std::vector<std::string>{"nic node0/eth0"});
}

TEST(SharedEnd, TwoOfFiveAndASingleLink) {
  const auto r = links(5, 1, [](const auto& a, const auto& b) {
    return of(a, "node0") || of(b, "node0") || of(a, "node3") || of(b, "node3") ||
                   (of(a, "node1") && of(b, "node4"))
               ? 5e9
               : 1e10;
  });
  EXPECT_THAT(failed(r),
              UnorderedElementsAre("node node0", "node node3", "link node1/cores0-1>node4/cores0-1"));
}

TEST(SharedEnd, PartnersOfASlowPartAreNotNamed) {
  const auto r = links(6, 1, [](const auto& a, const auto& b) {
    const auto hit = [&](const char* node) { return of(a, node) || of(b, node); };
    if (hit("node0") && !hit("node4") && !hit("node5")) return 0.0;  // not measured
    return hit("node4") || hit("node5") ? 5e9 : 1e10;
  });
  EXPECT_THAT(failed(r), UnorderedElementsAre("node node4", "node node5"));
}

TEST(SharedEnd, ANodeWhoseOtherLinksArePartOfAnotherSlowOne) {
  const auto r = links(6, 1, [](const auto& a, const auto& b) {
    const auto hit = [&](const char* node) { return of(a, node) || of(b, node); };
    if (hit("node1") && !hit("node0") && !hit("node2")) return 0.0;  // not measured
    return hit("node0") || hit("node1") ? 5e9 : 1e10;
  });
  EXPECT_THAT(failed(r), UnorderedElementsAre("node node0", "node node1"));
}

TEST(SharedEnd, ALinkThatTheRetestClearedDoesNotCount) {
  const auto rate = [](bool again) {
    return [again](const std::string& a, const std::string& b) {
      if (of(a, "node3") && of(b, "node2")) return again ? 1e10 : 8.5e9;
      const auto hit = [&](const char* node) { return of(a, node) || of(b, node); };
      return hit("node0") || hit("node1") ? 5e9 : 1e10;
    };
  };
  auto r = links(4, 1, rate(false));
  auto again = first_case(r);
  const auto now = links(4, 1, rate(true));
  again.metrics = now.cases[0].metrics;
  again.name += ".c1";
  r.cases.push_back(again);
  EXPECT_THAT(failed(r), UnorderedElementsAre("node node0", "node node1"));
}

TEST(SharedEnd, SeventyOfManyNodes) {
  const auto r = links(160, 1, [&](const auto& a, const auto& b) {
    const auto [low, high] = std::minmax(number(a), number(b));
    if (low >= 70) return high - low <= 4 ? 1e10 : 0.0;  // 0: not measured
    return high >= 70 && (high - low) % 90 < 4 ? 5e9 : 0.0;
  });
  const auto names = failed(r);
  EXPECT_THAT(names, SizeIs(70));
  EXPECT_THAT(names, ::testing::Each(::testing::StartsWith("node node")));
}

TEST(SharedEnd, CommonSlownessNamesNoPart) {
  EXPECT_THAT(failed(links(3, 1, [](const auto&, const auto&) { return 5e9; })), SizeIs(6));
  EXPECT_THAT(failed(links(2, 1, [](const auto&, const auto&) { return 5e9; })), SizeIs(2));
  EXPECT_THAT(failed(links(6, 1, [](const auto&, const auto&) { return 5e9; })),
              ElementsAre("cluster cluster"));
  EXPECT_THAT(failed(links(6, 1, [](const auto&, const auto&) { return 1e10; })), IsEmpty());
}

/// Node n hangs on switch n / below.
void add_switches(results::Results& r, int nodes, int below = 2) {
  results::InventoryTable table;
  table.entity = rows_of_kind(r, "nic");
  std::vector<std::string> leaves;
  for (int n = 0; n < nodes; ++n) leaves.push_back("leaf" + std::to_string(n / below));
  table.text["switch"] = leaves;
  r.inventory["nic"] = table;
  for (int l = 0; l < nodes / below; ++l)
    r.entities.push_back({"switch", "", "path", "switch:leaf" + std::to_string(l), 0, -1});
}

TEST(SharedEnd, ASwitchWhoseUplinkIsSlow) {
  auto r = links(6, 1, [](const auto& a, const auto& b) {
    const auto below = [](const std::string& end) { return of(end, "node0") || of(end, "node1"); };
    return below(a) != below(b) ? 5e9 : 1e10;
  });
  add_switches(r, 6);
  EXPECT_EQ(failed(r), std::vector<std::string>{"switch switch:leaf0"});
  // One way only.
  auto up = links(6, 1, [](const auto& a, const auto& b) {
    const auto below = [](const std::string& end) { return of(end, "node0") || of(end, "node1"); };
    return below(a) && !below(b) ? 5e9 : 1e10;
  });
  add_switches(up, 6);
  EXPECT_EQ(failed(up), std::vector<std::string>{"switch switch:leaf0"});
}

/// Three quarters of all links across each switch are slow, and all that were measured between two switches.
TEST(SharedEnd, EverySecondNodeIsNoSwitchAndNoPath) {
  const auto slow = [](const auto& a, const auto& b) { return number(a) % 2 == 0 || number(b) % 2 == 0; };
  auto all = links(12, 1, [&](const auto& a, const auto& b) { return slow(a, b) ? 5e9 : 1e10; });
  add_switches(all, 12, 4);
  EXPECT_THAT(failed(all), UnorderedElementsAre("node node0", "node node2", "node node4", "node node6",
                                                "node node8", "node node10"));
  auto path = links(8, 1, [&](const auto& a, const auto& b) {
    if (slow(a, b)) return 5e9;
    return number(a) / 4 == number(b) / 4 ? 1e10 : 0.0;  // 0: not measured
  });
  add_switches(path, 8, 4);
  EXPECT_THAT(failed(path), UnorderedElementsAre("node node0", "node node2", "node node4", "node node6"));
}

/// Of two switches nobody knows which one is slow, and no node is at fault.
TEST(SharedEnd, APathBetweenSwitchesIsNamedByBoth) {
  const auto side = [](const std::string& end) { return of(end, "node0") || of(end, "node1") ? 0 : 1; };
  auto two = links(4, 1, [&](const auto& a, const auto& b) { return side(a) != side(b) ? 5e9 : 1e10; });
  add_switches(two, 4);
  const auto v = verdict::judge(two, promised(two));
  EXPECT_EQ(failed(two), std::vector<std::string>{"switch switch:leaf0 and switch:leaf1"});
  EXPECT_THAT(v.findings[0].text,
              HasSubstr("8 of the 8 links between them, which are beyond it; either switch"));
  for (const char* node : {"node0", "node1", "node2", "node3"}) EXPECT_NE(state_of(two, v, node), "FAIL");
  EXPECT_EQ(state_of(two, v, "switch:leaf1"), "FAIL");
  // One path of three.
  auto three = links(6, 1, [&](const auto& a, const auto& b) {
    const bool last = of(a, "node4") || of(a, "node5") || of(b, "node4") || of(b, "node5");
    return !last && side(a) != side(b) ? 5e9 : 1e10;
  });
  add_switches(three, 6);
  EXPECT_EQ(failed(three), std::vector<std::string>{"switch switch:leaf0 and switch:leaf1"});
  // A slow node is no slow path.
  auto node = links(
      4, 1, [&](const auto& a, const auto& b) { return of(a, "node2") || of(b, "node2") ? 5e9 : 1e10; });
  add_switches(node, 4);
  EXPECT_EQ(failed(node), std::vector<std::string>{"node node2"});
}

}  // namespace
}  // namespace assay
