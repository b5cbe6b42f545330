// SPDX-License-Identifier: Apache-2.0
// What a page claims of a run: no more than was measured and compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "report/html/confirmation.hpp"
#include "report/html/grouping.hpp"
#include "report/link_ends.hpp"
#include "report/report.hpp"
#include "report/words.hpp"
#include "results/schema.hpp"
#include "tests/unit/report/page_made.hpp"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

verdict::Options limit(const std::string& metric, const std::string& bound) {
  verdict::Options o;
  o.limits_name = "limits.toml";
  o.limits_text = "[[limit]]\nmetric = \"" + metric + "\"\n" + bound + "\n";
  return o;
}

/// Links between the NICs of all nodes, `slow` of them at 9 us, the others about 1 us.
results::Results linked(int nodes, const std::set<std::string>& slow, int nics = 1) {
  auto r = fabricate::cluster(nodes);
  for (int n = 0; n < nodes; ++n)
    for (int k = 1; k < nics; ++k) {
      const std::string node = "node" + std::to_string(n), name = node + "/eth" + std::to_string(k);
      r.entities.push_back({"nic", "mac-" + name, "mac", name, fabricate::row_named(r, node), -1});
    }
  std::vector<std::int32_t> rows, from, to;
  std::vector<double> values;
  const auto ends = fabricate::rows_of_kind(r, "nic");
  for (const auto a : ends)
    for (const auto b : ends) {
      const auto &one = r.entities[static_cast<std::size_t>(a)],
                 &other = r.entities[static_cast<std::size_t>(b)];
      if (one.parent == other.parent) continue;
      const std::string name = one.name + ">" + other.name;
      from.push_back(a);
      to.push_back(b);
      rows.push_back(static_cast<std::int32_t>(r.entities.size()));
      values.push_back((slow.contains(name) ? 9e-6 : 1e-6) * fabricate::wobble(values.size()));
      r.entities.push_back({"link", "l-" + name, "path", name, 0, -1});
    }
  auto& c = fabricate::add_case(r, "p2p", "latency-8-cross-mpi", "latency", "s", results::Better::lower,
                                "link", rows, values);
  c.source = from;
  c.destination = to;
  return r;
}

TEST(Claims, PairsAcrossRailsAreNoPairsOfOneName) {
  auto r = linked(4, {}, 2);
  r.inventory["nic"].entity = fabricate::rows_of_kind(r, "nic");
  auto& c = fabricate::first_case(r);
  c.metrics.push_back({"payload", "B", results::Better::none, false, results::Role::covariate, false,
                       std::vector<double>(c.entity.size(), 100)});
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  EXPECT_THAT(page, HasSubstr("12 of 12 pairs of NICs and 12 across rails"));
  EXPECT_THAT(page, HasSubstr("<td>pairs of NICs of one name</td><td class=\"num\">12</td>"));
  EXPECT_THAT(page, HasSubstr("not counted: 12 pairs across rails"));
}

TEST(Claims, AFindingSaysHowItWasConfirmed) {
  auto r = fleet(8, 0.7);
  r.errors.push_back({"memory/triad-together", fabricate::row_named(r, "node1/cores0-1"), 1, 2, 3, 4, 0});
  const auto told = [](const Made& made, const char* kind) {
    const report::Retests retests(made.results);
    for (const auto& f : made.verdict.findings)
      if (f.kind == kind && f.severity == "FAIL") return retests.confirmation_of(f);
    return std::string("no such finding");
  };
  const Made once(r, limit("memory/triad-*:bandwidth", "min = \"90 GB/s\""));
  EXPECT_THAT(told(once, "slow"),
              HasSubstr("yes: the whole 95 % interval lies beyond the bound; not measured again"));
  EXPECT_EQ(told(once, "corrupt"), "yes: a wrong result is a fact");
  const std::string page = report::page_html(once.input());
  EXPECT_THAT(page, HasSubstr("lies beyond the bound; not measured again</dd>"));
  EXPECT_THAT(page, Not(HasSubstr("<dd>yes, measured again")));
  r.cases.push_back(r.cases.front());
  auto& again = r.cases.back();
  again.name += ".c1";
  again.entity = {fabricate::row_named(r, "node3/cores0-1")};
  again.count.resize(1);
  for (auto& m : again.metrics) m.values.assign(again.samples(), 7e10);
  const Made twice(std::move(r), limit("memory/triad-*:bandwidth", "min = \"90 GB/s\""));
  EXPECT_EQ(told(twice, "slow"), "yes: measured again, 12 samples of retests");
  results::Finding f;
  f.text = "x, confirmed by the retest, certain by its size, 3 blocks over 60 s";
  const report::Retests retests(twice.results);
  EXPECT_EQ(retests.confirmation_of(f), "no");
  f.confirmed = true;  // of a file from an earlier version
  EXPECT_EQ(retests.confirmation_of(f), "yes");
  for (const auto& by : results::allowed_values("confirmed_by")) {
    if (by.empty()) continue;
    f.confirm(by);
    EXPECT_THAT(retests.confirmation_of(f), testing::StartsWith("yes: ")) << by;
    EXPECT_NE(report::confirmation_words(f), "") << by;
  }
  f.confirm("blocks");
  EXPECT_THAT(retests.confirmation_of(f), HasSubstr("yes: it lasted"));
}

TEST(Claims, APassSaysWhatWasComparedWithWhat) {
  auto alone = fleet(1);
  fabricate::plan_only(alone, "p2p", "bandwidth", true);
  alone.plan.back().state = "not_applicable";
  Made one(std::move(alone));
  EXPECT_EQ(
      report::pass_words(one.judgement),
      "Every required case that applies was measured, and no fault was found. No rate was compared: 1 value "
      "with nothing. Only checks of results, parts and counters decided. 1 required case was not applicable "
      "here.");
  one.verdict.state = "PASS";
  const std::string page = report::page_html(one.input());
  EXPECT_THAT(page, HasSubstr("No rate was compared: 1 value with nothing."));
  EXPECT_THAT(page, Not(HasSubstr("is alike")));
  EXPECT_THAT(page, HasSubstr("<td class=\"num\">not compared</td><td>nothing</td>"));
  EXPECT_THAT(report::page_markdown(one.input()), HasSubstr("No rate was compared: 1 value with nothing."));
  const Made peers(fleet(8));
  EXPECT_THAT(report::pass_words(peers.judgement), HasSubstr("Values compared: 8 with peers only."));
  EXPECT_THAT(report::page_html(peers.input()), HasSubstr("compared with peers only is alike"));
  const Made bound(fleet(8), limit("memory/triad-*:bandwidth", "min = \"90 GB/s\""));
  EXPECT_THAT(report::pass_words(bound.judgement), HasSubstr("Values compared: 8 with limits."));
}

TEST(Claims, TheCoverHasWhatIsSigned) {
  auto r = fleet(3);
  r.info.level = "smoke";
  r.info.command_line = "assay run --expect-nodes 3";
  r.config["expect-nodes"] = 3;
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input()),
                    cover = page.substr(0, page.find("id=\"contract\""));
  for (const char* there :
       {"<pre class=\"command\">assay run --expect-nodes 3</pre>", "Names of the 3 nodes</summary>",
        "<a href=\"#node/node2\">node2</a>", "<dt>Expected</dt><dd>3 nodes</dd>", "deficits over 20 %</dd>",
        "<dd>3 nodes, 3 devices, 3 NICs</dd>"})
    EXPECT_THAT(cover, HasSubstr(there));
}

TEST(Claims, EndsOfSlowLinksAreNoFaultyNodes) {
  const Made made(linked(6, {"node0/eth0>node1/eth0", "node2/eth0>node3/eth0"}),
                  limit("p2p/latency-*:latency", "max = \"2 us\""));
  const auto ends = report::link_ends(made.results, made.verdict);
  EXPECT_EQ(ends.links, 2U);
  EXPECT_EQ(ends.only.size(), 8U);
  const std::string page = report::page_html(made.input());
  EXPECT_THAT(page,
              HasSubstr("<strong>2</strong><span>links FAIL; 4 nodes and 4 parts at their ends</span>"));
  EXPECT_THAT(page, Not(HasSubstr("nodes FAIL</span>")));
  EXPECT_THAT(report::page_markdown(made.input()),
              HasSubstr("- 2 links FAIL; 4 nodes FAIL only as their ends"));
  EXPECT_THAT(report::summary(made.results, made.verdict, "run.h5", {200, false}),
              HasSubstr("2 links FAIL, 4 nodes only as their ends"));
  // A node with a fault of its own fails for that.
  auto other = made.verdict;
  other.findings.push_back(other.findings.front());
  other.findings.back().name = "node0/cores0-1";
  other.findings.back().level = "device";
  EXPECT_EQ(report::link_ends(made.results, other).only.size(), 7U);
}

/// The nodes are among those that FAIL, the link must be somewhere, too.
TEST(Claims, ALinkBetweenFaultyNodesIsToldAsWell) {
  Made made(linked(6, {"node0/eth0>node1/eth0"}), limit("p2p/latency-*:latency", "max = \"2 us\""));
  const results::Finding link = made.verdict.findings.front();
  for (const char* name : {"node0/cores0-1", "node1/cores0-1"}) {
    auto& f = made.verdict.findings.emplace_back(link);
    f.name = name;
    f.level = "device";
  }
  const auto ends = report::link_ends(made.results, made.verdict);
  EXPECT_EQ(ends.nodes, 0U);
  EXPECT_THAT(report::page_html(made.input()),
              HasSubstr("<strong>1</strong><span>link FAIL; 0 nodes and 2 parts at its ends</span>"));
  EXPECT_THAT(report::page_markdown(made.input()), HasSubstr("- 1 link FAIL\n"));
  EXPECT_THAT(report::summary(made.results, made.verdict, "run.h5", {200, false}),
              HasSubstr("other parts: 1 link FAIL (node0/eth0>node1/eth0)"));
  for (auto& f : made.verdict.findings) {
    if (f.level != "device") continue;
    f.name = f.name.substr(0, f.name.find('/'));
    f.level = "node";
  }
  EXPECT_THAT(report::page_html(made.input()), HasSubstr("<strong>1</strong><span>link FAIL</span>"));
}

TEST(Claims, AMatrixMarksBothEndsOfALink) {
  const Made made(linked(6, {"node0/eth0>node1/eth0"}), limit("p2p/latency-*:latency", "max = \"2 us\""));
  const std::string page = report::page_html(made.input());
  for (const char* node : {"\u25C2 node0<", "\u25C2 node1<"}) EXPECT_THAT(page, HasSubstr(node));
  EXPECT_THAT(page, Not(HasSubstr("\u25C2 node2<")));
}

TEST(Claims, AMatrixShowsTheSlowestLinkOfAPair) {
  const Made made(linked(4, {"node2/eth1>node0/eth0"}, 2));
  const auto matrices = report::matrices_of(made.judgement);
  ASSERT_EQ(matrices.shown.size(), 1U);
  const auto& m = matrices.shown.front();
  EXPECT_EQ(m.all.pairs.size(), 12U) << "each pair once";
  for (const auto& pair : m.all.pairs)
    EXPECT_NEAR(pair.deficit, pair.from == 2 && pair.to == 0 ? 8.0 / 9 : 0, 0.02) << pair.from << pair.to;
  ASSERT_FALSE(m.slowest.empty());
  EXPECT_EQ(made.judgement.entities.name(m.slowest[0].from), "node2/eth1");
  EXPECT_EQ(made.judgement.entities.name(m.slowest[0].to), "node0/eth0");
  EXPECT_NEAR(m.slowest[0].value, 9e-6, 1e-7);
  // A node is judged by all of its links.
  for (const auto& e : m.ends) EXPECT_LT(std::fmax(e.sends, e.receives), 0.1);
}

TEST(Claims, ManyMetricsOfLightTailsShowASmallSlowdown) {
  auto r = fabricate::cluster(128);
  const auto rows = fabricate::rows_of_kind(r, "device");
  std::mt19937 random(1);
  std::normal_distribution<double> spread(1, 0.0045);
  for (int k = 0; k < 30; ++k) {
    std::vector<double> values;
    for (std::size_t i = 0; i < rows.size(); ++i) values.push_back(1e11 * spread(random));
    fabricate::add_case(r, "memory", "copy" + std::to_string(k) + "-together", "bandwidth", "B/s",
                        results::Better::higher, "device", rows, values, 12);
  }
  const Made made(std::move(r));
  const auto all = verdict::sensitivity_of(made.judgement);
  ASSERT_EQ(all.size(), 30U);
  for (const auto& s : all) {
    EXPECT_GT(s.visible, 0.02);
    EXPECT_LT(s.visible, 0.05) << s.metric;
  }
}

TEST(Claims, AGroupHasItsRatesInUnits) {
  EXPECT_EQ(report::group_words("across simulated, simulated x5e+10 > simulated, simulated x2.5e+10"),
            "across simulated, simulated 50 GB/s NIC > simulated, simulated 25 GB/s NIC");
  for (const char* same : {"AMD EPYC, AMD EPYC x16", "a x86 x", "", " x"})
    EXPECT_EQ(report::group_words(same), same);
}

}  // namespace
}  // namespace assay
