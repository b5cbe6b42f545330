// SPDX-License-Identifier: Apache-2.0
// Collectives against a baseline.
#include <gmock/gmock.h>

#include "baseline_rig.hpp"
#include "simulate/simulate.hpp"
#include "verdict/baseline.hpp"
#include "verdict/references.hpp"

namespace assay {
namespace {

using namespace fabricate;
using baseline_rig::baseline;
using baseline_rig::judged;
using results::Results;
using testing::HasSubstr;

Results collective(std::int64_t nodes, const std::string& id, const std::string& fault = "") {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.metrics = simulate::pick_metrics({"allreduce"});
  if (!fault.empty()) spec.faults.push_back(simulate::parse_fault("slow:suite=allreduce,node=1," + fault));
  auto r = simulate::screen(spec);
  r.info.injected = false;
  r.info.run_id = id;
  return r;
}

/// Of few nodes no groups tell who is slow: what the same ranks reached before is known.
TEST(VerdictBaseline, HoldsCollectivesWhateverTheNumberOfNodes) {
  for (const int nodes : {2, 4, 6}) {
    const auto fleet = baseline(collective(nodes, "before"));
    const auto good = judged(collective(nodes, "now"), fleet);
    EXPECT_EQ(good.state, "PASS");
    EXPECT_THAT(good.basis, HasSubstr("nothing 0"));
    const auto slow = judged(collective(nodes, "now", "percent=70"), fleet);
    EXPECT_EQ(slow.state, "WARN");
    ASSERT_EQ(slow.findings.size(), 1U);
    EXPECT_NEAR(*slow.findings[0].deficit, 0.7, 0.02);
    const auto dead = judged(collective(nodes, "now", "percent=99.9"), fleet);
    EXPECT_EQ(dead.state, "INCONCLUSIVE");
    EXPECT_EQ(dead.findings.at(0).reference_kind, "baseline");
    // Others of their own number of ranks are no reference, and that is said.
    const auto other = judged(collective(nodes + 1, "now", "percent=70"), fleet);
    EXPECT_EQ(other.state, "INCONCLUSIVE") << "no metric in common";
    EXPECT_THAT(other.findings.at(0).text, HasSubstr("no collective of as many ranks"));
  }
}

/// A collective of the four ranks of each node.
Results inside_nodes(int nodes, const std::string& id, int slow = -1) {
  auto r = cluster(nodes, 4);
  r.info.run_id = id;
  const auto devices = rows_of_kind(r, "device");
  std::vector<double> values;
  for (std::size_t i = 0; i < devices.size(); ++i)
    values.push_back(static_cast<int>(i / 4) == slow ? 2e10 : 1e11);
  auto& c = add_case(r, "allreduce", "allreduce-1048576-node", "busbw", "B/s", results::Better::higher,
                     "device", devices, values);
  c.stage = "node-local";
  results::Judging judging;
  judging.of = results::MetricClass::collective;
  judging.shared_by = results::SharedBy::node;
  c.metrics[0].judging = judging;
  add_selftest(r, "allreduce");
  return r;
}

TEST(VerdictBaseline, HoldsCollectivesInsideNodesWhateverTheNumberOfNodes) {
  const auto fleet = baseline(inside_nodes(8, "before"));
  ASSERT_EQ(fleet->totals.size(), 1U);
  EXPECT_EQ(fleet->totals[0].ranks, 4);
  for (const int nodes : {1, 3, 8}) {
    EXPECT_EQ(find_kind(judged(inside_nodes(nodes, "now"), fleet), "mismatch"), nullptr) << nodes;
    const auto v = judged(inside_nodes(nodes, "now", nodes - 1), fleet);
    const auto* slow = find_kind(v, "slow");
    ASSERT_NE(slow, nullptr) << nodes << all_reasons(v);
    EXPECT_EQ(slow->name, "node" + std::to_string(nodes - 1));
    EXPECT_EQ(slow->reference_kind, "baseline");
  }
}

TEST(VerdictBaseline, TheStoredCollectivesRepeatTheVerdict) {
  auto r = collective(4, "now", "percent=70");
  const auto first = judged(r, baseline(collective(4, "before")));
  r.verdict = first;
  r.verdict->inputs = Json::parse(first.inputs.dump());
  const auto second = verdict::judge(r, verdict::options_from(r));
  EXPECT_EQ(second.state, "WARN");
  EXPECT_EQ(second.inputs, first.inputs);
}

}  // namespace
}  // namespace assay
