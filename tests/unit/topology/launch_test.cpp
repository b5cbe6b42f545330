// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/expect_error.hpp"
#include "tests/unit/topology_tree.hpp"
#include "topology/discover.hpp"
#include "topology/launch_check.hpp"

namespace assay {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::made_node;

/// `masks[node][local rank]`.
Topology topology(const std::vector<Node>& nodes, const std::vector<std::vector<std::vector<int>>>& masks,
                  int threads = 0) {
  std::vector<std::string> descriptions, facts;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const int leader = static_cast<int>(facts.size());
    for (std::size_t local = 0; local < masks[node].size(); ++local) {
      descriptions.push_back(local == 0 ? to_json(nodes[node]).dump() : "");
      facts.push_back(
          to_text({nodes[node].hostname, leader, static_cast<int>(local), masks[node][local], 1, "1"}));
    }
  }
  return discover(descriptions, facts, 0, threads);
}

std::vector<std::string> kinds(const std::vector<LaunchFinding>& findings) {
  std::vector<std::string> list;
  for (const auto& finding : findings) list.push_back(finding.severity + " " + finding.kind);
  return list;
}

LaunchEnvironment launcher(int size) { return {true, 0, size, 0, size, "openmpi"}; }

TEST(LaunchCheck, AGoodLaunchHasNoFindings) {
  const Topology t = topology({made_node("a", 2), made_node("b", 2)}, {{{0}, {1}}, {{0}, {1}}});
  EXPECT_THAT(check_launch(t, {2, 4, 2}, launcher(4)), IsEmpty());
  EXPECT_THAT(check_launch(t, {}, {}), IsEmpty());
}

TEST(LaunchCheck, CountsAgainstWhatWasExpected) {
  const Topology t = topology({made_node("a", 2), made_node("b", 2)}, {{{0}, {1}}, {{0, 1}}});
  const auto findings = check_launch(t, {3, 2, 2}, launcher(3));
  EXPECT_THAT(kinds(findings),
              ElementsAre("inconclusive missing", "inconclusive mismatch", "inconclusive missing"));
  EXPECT_THAT(findings[0].text, HasSubstr("2 nodes, expected 3"));
  EXPECT_THAT(findings[1].text, HasSubstr("3 ranks, expected 2"));
  EXPECT_EQ(findings[2].node, 1);
  EXPECT_THAT(findings[2].text, HasSubstr("b: 1 device, expected 2"));
  EXPECT_EQ(findings[2].event_kind(), "launch-inconclusive");
}

TEST(LaunchCheck, AccidentalSingletons) {
  const Topology t = topology({made_node("a", 2)}, {{{0, 1}}});
  auto findings = check_launch(t, {}, launcher(4));
  EXPECT_THAT(kinds(findings), ElementsAre("inconclusive singletons"));
  EXPECT_THAT(findings[0].text, HasSubstr("started 4 process"));
  EXPECT_THAT(kinds(check_launch(t, {}, {}, 3)), ElementsAre("inconclusive singletons"));
  const Topology two = topology({made_node("a", 2)}, {{{0}, {1}}});
  EXPECT_THAT(kinds(check_launch(two, {}, launcher(4))), ElementsAre("inconclusive mismatch"));
}

TEST(LaunchCheck, Oversubscription) {
  const Topology t = topology({made_node("a", 2)}, {{{0, 1}, {0, 1}, {0, 1}, {0, 1}}});
  const auto findings = check_launch(t, {}, launcher(4));
  EXPECT_THAT(kinds(findings), ElementsAre("warn oversubscribed"));
  EXPECT_THAT(findings[0].text, HasSubstr("4 ranks with 4 threads on 2 cores"));
  LaunchEnvironment told = launcher(4);
  told.oversubscribe_asked = true;
  const auto noted = check_launch(t, {}, told);
  EXPECT_THAT(kinds(noted), ElementsAre("info oversubscribed"));
  EXPECT_THAT(noted[0].text, HasSubstr("as requested"));
  EXPECT_THAT(kinds(check_launch(topology({made_node("a", 2)}, {{{0, 1}}}, 4), {}, {})),
              ElementsAre("warn oversubscribed"));
}

TEST(LaunchCheck, CoresUnderNoMaskAreNamed) {
  auto findings = check_launch(topology({made_node("a", 4)}, {{{0}}}), {}, {});
  EXPECT_THAT(kinds(findings), ElementsAre("warn uncovered"));
  EXPECT_THAT(findings[0].text, HasSubstr("a: 3 of 4 cores (CPUs 1-3)"));
  EXPECT_THAT(kinds(check_launch(topology({made_node("a", 4)}, {{{0}}}), {.devices = 1}, {})),
              ElementsAre("inconclusive uncovered"))
      << "who counts devices wants all of each";
  Node limited = made_node("a", 4);
  limited.allowed_cpus = {0, 1};
  EXPECT_THAT(check_launch(topology({limited}, {{{0, 1}}}), {}, {}), IsEmpty())
      << "what the cgroup keeps away is not ours";
  EXPECT_THAT(check_launch(topology({made_node("a", 2, 2)}, {{{0, 1}}}), {}, {}), IsEmpty())
      << "one thread of each core is enough";
}

TEST(LaunchCheck, UnevenSharesAndQuota) {
  EXPECT_THAT(kinds(check_launch(topology({made_node("a", 3)}, {{{0, 1, 2}, {0, 1, 2}}}), {}, launcher(2))),
              ElementsAre("info uneven"));
  Node limited = made_node("a", 4);
  limited.cpu_quota_cores = 1.5;
  const auto findings = check_launch(topology({limited}, {{{0, 1, 2, 3}}}), {}, {});
  EXPECT_THAT(kinds(findings), ElementsAre("warn quota"));
  EXPECT_THAT(findings[0].text, HasSubstr("1.5 of 4 cores"));
}

TEST(LaunchCheck, TheOddNodeIsNamed) {
  std::vector<Node> nodes;
  for (const char* name : {"a", "b", "c", "d"}) {
    nodes.push_back(made_node(name, 1));
    nodes.back().kernel = "6.1";
    nodes.back().software.edit()["glibc"] = "2.36";
  }
  nodes[2].software.edit()["glibc"] = "2.31";
  nodes[3].software.edit()["env UCX_TLS"] = "tcp";
  nodes[1].kernel = "5.10";
  const auto findings = check_launch(topology(nodes, {{{0}}, {{0}}, {{0}}, {{0}}}), {}, launcher(4));
  ASSERT_THAT(kinds(findings), ElementsAre("info mismatch", "warn mismatch", "warn mismatch"));
  EXPECT_THAT(findings[0].text, names({"b: ", "kernel", "'5.10'", "'6.1'", "3"}));
  EXPECT_EQ(findings[0].node, 1);
  EXPECT_THAT(findings[1].text, names({"d: ", "env UCX_TLS", "'tcp'", "none", "3"}));
  EXPECT_THAT(findings[2].text, names({"c: ", "glibc", "'2.31'", "'2.36'", "3"}));
}

TEST(LaunchCheck, WithoutAMajorityBothSidesAreNamed) {
  std::vector<Node> nodes = {made_node("a", 1), made_node("b", 1)};
  nodes[0].software.edit()["hwloc"] = "2.8";
  nodes[1].software.edit()["hwloc"] = "2.9";
  const auto findings = check_launch(topology(nodes, {{{0}}, {{0}}}), {}, launcher(2));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].text, "a: hwloc is '2.8'; b: hwloc is '2.9'");
}

TEST(LaunchCheck, CountsSiblingsButNotTheSupervisor) {
  testing::Tree tree;
  const auto process = [&tree](int pid, int parent, const std::string& command) {
    tree.file("/" + std::to_string(pid) + "/stat",
              std::to_string(pid) + " (a) b) S " + std::to_string(parent) + " 1 1\n");
    tree.file("/" + std::to_string(pid) + "/cmdline", command);
  };
  const std::string mine("assay\0run\0", 10), other("assay\0plan\0", 11);
  process(10, 1, "sh");
  process(11, 10, mine), process(12, 11, mine);  // supervisor and its worker: this process
  process(13, 10, mine), process(14, 13, mine);  // another pair
  process(15, 10, mine);
  process(16, 10, other);
  process(17, 1, mine);  // someone else's
  tree.file("/self_pid", "12");
  EXPECT_EQ(count_sibling_singletons(tree.root()), 2);
  tree.file("/self_pid", "17");
  EXPECT_EQ(count_sibling_singletons(tree.root()), 0);
  tree.file("/self_pid", "99");
  EXPECT_EQ(count_sibling_singletons(tree.root()), 0);
}

}  // namespace
}  // namespace assay
