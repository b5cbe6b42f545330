// SPDX-License-Identifier: Apache-2.0
// Collectives that the links or other sizes of the same run contradict.
#include <gmock/gmock.h>

#include <algorithm>

#include "simulate/simulate.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

/// Before any retest; faults are not marked as injected, so that states are those of a real run.
results::Results screened(const simulate::Spec& spec) {
  auto r = simulate::screen(spec);
  r.info.injected = false;
  return r;
}

std::vector<std::string> accused(const results::VerdictData& v) {
  std::vector<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity != "INFO") names.push_back(f.level + " " + f.name);
  return names;
}

/// Pairs and all-reduce; the latter slow by `factor` among all nodes.
results::Results with_collectives(std::int64_t nodes, double factor, std::uint64_t seed = 1,
                                  std::int64_t devices = 1) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.devices_per_node = devices;
  spec.seed = seed;
  spec.spike_share = 0;
  spec.metrics = simulate::pick_metrics({"p2p", "allreduce"});
  if (factor < 1)
    spec.faults.push_back(simulate::parse_fault("slow:suite=allreduce,node=0-" + std::to_string(nodes - 1) +
                                                ",factor=" + std::to_string(factor)));
  return screened(spec);
}

TEST(VerdictBounds, WhatTheLinksOfTheRunContradictIsOpen) {
  for (const std::int64_t nodes : {2, 3, 4, 5, 6, 8, 12, 64, 256})
    for (const double factor : {1.0, 0.1, 0.03, 0.01, 0.001}) {
      if (nodes == 256 && factor != 0.01) continue;  // which takes longest
      const auto r = with_collectives(nodes, factor);
      const auto v = judge(r);
      if (factor > 0.05) {
        EXPECT_TRUE(accused(v).empty()) << nodes << " " << factor << all_reasons(v);
        continue;
      }
      EXPECT_EQ(v.state, "INCONCLUSIVE") << nodes << " " << factor << all_reasons(v);
      ASSERT_EQ(accused(v), std::vector<std::string>{"cluster cluster"});
      EXPECT_NEAR(*v.findings[0].value, 4.3e10 * factor, 0.1 * 4.3e10 * factor);
      EXPECT_THAT(v.findings[0].text, HasSubstr("the links of this run would allow"));
    }
  // The ends of these links are NICs.
  EXPECT_EQ(accused(judge(with_collectives(8, 0.02, 1, 4))), std::vector<std::string>{"cluster cluster"});
}

/// A slow NIC holds up all: its own finding says so.
TEST(VerdictBounds, WhatASlowLinkExplainsIsNotSaidAgain) {
  simulate::Spec spec;
  spec.nodes = 16;
  spec.spike_share = 0;
  spec.metrics = simulate::pick_metrics({"p2p", "allreduce/allreduce-world-*"});
  spec.faults.push_back(simulate::parse_fault("slow:node=3,nic=0,percent=98"));
  const auto v = judge(screened(spec));
  for (const auto& f : v.findings) EXPECT_NE(f.level, "cluster") << f.text;
  EXPECT_FALSE(v.findings.empty());
}

/// The same all-reduce of other sizes, each `times` as long as the model of a link says.
results::Results with_sizes(const std::vector<std::pair<double, double>>& sizes) {
  auto r = with_collectives(4, 1);
  const auto world = std::find_if(r.cases.begin(), r.cases.end(),
                                  [](const auto& c) { return c.name.starts_with("allreduce-world"); });
  const auto model = *world;
  r.cases.clear();
  for (const auto& [bytes, times] : sizes) {
    auto c = model;
    c.name = "allreduce-world-" + std::to_string(static_cast<int>(bytes)) + "-mpi";
    c.case_key = c.name;
    c.parameters["bytes"] = bytes;
    const double duration = times * (1e-5 + bytes / 2e10);
    auto& metric = c.metrics.front();
    metric.name = "duration", metric.unit = "s", metric.better = results::Better::lower;
    for (double& value : metric.values) value *= duration / 4.2e10;
    r.cases.push_back(std::move(c));
  }
  return r;
}

TEST(VerdictBounds, ASizeThatTakesFarLongerThanALargerOneIsOpen) {
  const auto of = [](double times) {
    return judge(with_sizes({{8, 1}, {1024, times}, {65536, 1}, {1 << 20, 1}}));
  };
  for (const auto& f : of(3).findings) EXPECT_FALSE(f.reference_kind == "peers") << f.text;
  const auto v = of(1000);
  const auto f = std::find_if(v.findings.begin(), v.findings.end(),
                              [](const auto& one) { return one.reference_kind == "peers"; });
  ASSERT_NE(f, v.findings.end());
  EXPECT_EQ(f->metric, "allreduce/allreduce-world-1024-mpi:duration");
  EXPECT_THAT(f->text, HasSubstr("64 KiB take"));
}

/// Of a run of pairs and all-reduce, with one operation of `bytes` instead that takes this long.
results::VerdictData small_operation(results::Results r, const char* operation, double bytes,
                                     double seconds) {
  std::erase_if(r.cases, [](const auto& c) { return c.name.starts_with("allreduce-groups"); });
  auto& c = *std::find_if(r.cases.begin(), r.cases.end(),
                          [](const auto& one) { return one.name.starts_with("allreduce-world"); });
  c.parameters["bytes"] = bytes;
  c.parameters["operation"] = operation;
  auto& metric = c.metrics.front();
  metric.name = "duration", metric.unit = "s", metric.better = results::Better::lower;
  for (double& value : metric.values) value = seconds;
  return judge(r);
}

TEST(VerdictBounds, LatenciesOfTheRunBoundSmallOperations) {
  const auto two = with_collectives(2, 1), many = with_collectives(32, 1);
  // By hand: 32 nodes take log2 32 = 5 steps of 1.8 us, all-reduce twice, and 10 us to start: 28 us.
  for (const char* operation : {"allreduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast"}) {
    EXPECT_TRUE(accused(small_operation(many, operation, 8, 200e-6)).empty()) << operation;
    const auto v = small_operation(many, operation, 8, 700e-6);
    ASSERT_EQ(accused(v), std::vector<std::string>{"cluster cluster"}) << operation;
    EXPECT_EQ(v.state, "INCONCLUSIVE");
  }
  EXPECT_THAT(small_operation(many, "allreduce", 8, 700e-6).findings[0].text, HasSubstr("would allow 28"));
  EXPECT_TRUE(accused(small_operation(two, "allreduce", 8, 200e-6)).empty());
  EXPECT_FALSE(accused(small_operation(two, "allreduce", 8, 300e-6)).empty());
  // What is sent in a ring takes 2 (n-1) steps, which is no reason to doubt 64 KiB.
  EXPECT_TRUE(accused(small_operation(many, "allreduce", 65536, 5 * 2 * 31 * 1.8e-6)).empty());
  EXPECT_TRUE(accused(small_operation(many, "", 8, 1)).empty());
}

TEST(VerdictBounds, RanksOnOneCoreAreANote) {
  auto r = with_collectives(3, 0.001);
  for (auto& e : r.entities)
    if (e.kind == "device") e.name += ".0";
  const auto v = judge(r);
  EXPECT_TRUE(accused(v).empty()) << all_reasons(v);
  EXPECT_NE(std::find_if(v.findings.begin(), v.findings.end(),
                         [](const auto& f) {
                           return f.text.find("its ranks shared their cores") != std::string::npos;
                         }),
            v.findings.end());
}

TEST(VerdictBounds, SizesOfAnotherVariantBoundNothing) {
  auto r = with_sizes({{8, 1}, {1024, 1000}, {65536, 1}, {1 << 20, 1}});
  for (auto& c : r.cases) c.parameters["variant"] = c.parameters["bytes"] == 1024.0 ? "graph" : "plain";
  for (const auto& f : judge(r).findings) EXPECT_FALSE(f.reference_kind == "peers") << f.text;
}

}  // namespace
}  // namespace assay
