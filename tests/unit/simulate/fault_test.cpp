// SPDX-License-Identifier: Apache-2.0
#include "simulate/fault.hpp"

#include "simulate/catalogue.hpp"
#include "tests/unit/expect_error.hpp"

namespace assay::simulate {
namespace {

using ::testing::HasSubstr;

TEST(SimulateFault, SaysWhereAndHowMuch) {
  const Fault f = parse_fault("slow:node=17,device=3,percent=5,metric=bandwidth,duty=0.25");
  EXPECT_EQ(f.kind, Kind::slow);
  EXPECT_DOUBLE_EQ(f.factor, 0.95);
  EXPECT_DOUBLE_EQ(f.duty, 0.25);
  EXPECT_TRUE(f.hits_device(17, "sim17", 3));
  EXPECT_FALSE(f.hits_device(17, "sim17", 2));
  EXPECT_FALSE(f.hits_device(16, "sim16", 3));
  EXPECT_TRUE(f.hits_metric("memory", "triad-alone", "bandwidth"));
  EXPECT_FALSE(f.hits_metric("memory", "latency-alone", "latency"));
}

TEST(SimulateFault, NodesAreNumbersRangesOrGlobs) {
  EXPECT_TRUE(parse_fault("slow:node=2-5+9,factor=0.5").nodes.contains(9, "sim09"));
  EXPECT_FALSE(parse_fault("slow:node=2-5+9,factor=0.5").nodes.contains(6, "sim06"));
  EXPECT_TRUE(parse_fault("slow:node=sim1?,factor=0.5").nodes.contains(12, "sim12"));
  EXPECT_FALSE(parse_fault("slow:node=sim1?,factor=0.5").nodes.contains(22, "sim22"));
}

TEST(SimulateFault, AFaultOfTheNetworkLeavesTheDevicesAlone) {
  EXPECT_FALSE(parse_fault("slow:node=3,nic=0,percent=5").hits_device(3, "sim03", 0));
  EXPECT_FALSE(parse_fault("slow:leaf=3,percent=2").hits_device(3, "sim03", 0));
  EXPECT_FALSE(parse_fault("slowlink:pair=1>2,factor=0.5").hits_device(1, "sim01", 0));
}

TEST(SimulateFault, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"slower:node=1", "no fault 'slower'"},
      {"slow:node=1", "slow needs factor= or percent="},
      {"slow:factor=0.5,percent=5", "factor and percent"},
      {"slow:percent=0", "percent=0: must be between 0 and 100"},
      {"slow:percent=x", "percent=x: not a number"},
      {"slow:factor=1", "factor=1: must be between 0 and 1"},
      {"slow:colour=red,factor=0.5", "slow has no key 'colour'"},
      {"slow:node,factor=0.5", "node needs a value"},
      {"slow:node=1,node=2,factor=0.5", "node is given twice"},
      {"slow:node=5-2,factor=0.5", "node=5-2"},
      {"slow:device=x,factor=0.5", "device=x"},
      {"slow:device=1,nic=1,factor=0.5", "different parts"},
      {"slow:node=1,leaf=1,factor=0.5", "a leaf is no part of a node"},
      {"slow:direction=tx,factor=0.5", "direction needs nic= or leaf="},
      {"slowlink:factor=0.5", "slowlink needs pair="},
      {"slowlink:pair=1>1,factor=0.5", "no link to itself"},
      {"slowlink:pair=1-2,factor=0.5", "two ranks as SRC>DST"},
      {"bitflip:target=disk,node=1", "target=disk: one of gemm, memory, message"},
      {"bitflip", "needs node="},
      {"dead:node=1,value=3", "value=3: must be 0, below it, inf or -inf"},
      {"missing:node=1,what=soul", "what=soul: one of"},
      {"slow:node=a\nb,factor=0.5", "control character"},
  };
  for (const auto& [text, wanted] : cases)
    EXPECT_THAT(usage_message([&] { parse_fault(text); }), HasSubstr(wanted)) << text;
}

TEST(SimulateMetrics, AreNamedBySuiteGlobOrNumber) {
  EXPECT_EQ(pick_metrics({"30"}).size(), 30u);
  for (const auto& m : pick_metrics({"30"})) EXPECT_EQ(m.subject, Subject::device);
  const auto two = pick_metrics({"memory/triad*", "memory/triad-alone"});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].path(), "memory/triad-together:bandwidth");
  for (const auto& m : pick_metrics({"p2p"})) EXPECT_EQ(m.suite, "p2p");
  EXPECT_THAT(usage_message([] { pick_metrics({"gmm"}); }), HasSubstr("'gmm' names no metric"));
  EXPECT_THAT(usage_message([] { pick_metrics({"31"}); }), HasSubstr("'31'"));
  EXPECT_THAT(usage_message([] { pick_metrics({"0"}); }), HasSubstr("'0'"));
}

}  // namespace
}  // namespace assay::simulate
