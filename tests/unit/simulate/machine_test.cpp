// SPDX-License-Identifier: Apache-2.0
#include "simulate/machine.hpp"

#include <cmath>
#include <set>

#include "measure/statistics.hpp"
#include "simulate/schedule.hpp"
#include "tests/unit/expect_error.hpp"

namespace assay::simulate {
namespace {

using ::testing::HasSubstr;

Spec small(std::int64_t nodes, std::int64_t devices,
           const std::vector<std::string>& metrics = {"memory/triad-alone"}) {
  Spec spec;
  spec.nodes = nodes;
  spec.devices_per_node = devices;
  spec.metrics = pick_metrics(metrics);
  return spec;
}

TEST(SimulateMachine, RowsLeadToTheirPartsAndBack) {
  Spec spec = small(5, 4);
  spec.nics_per_node = 2;
  spec.leaves = 4;
  const Machine m(spec);
  const auto entities = m.entities();
  EXPECT_EQ(entities.size(), 1u + 4 + 5 * (1 + 2 + 4));
  for (std::int64_t d = 0; d < m.devices(); ++d) {
    const auto row = m.device_row(d);
    EXPECT_EQ(entities[static_cast<std::size_t>(row)].kind, "device");
    EXPECT_EQ(entities[static_cast<std::size_t>(row)].rank, d);
    EXPECT_EQ(entities[static_cast<std::size_t>(row)].parent, m.node_row(m.node_of_device(d)));
    EXPECT_EQ(m.device_at(row), d);
    EXPECT_EQ(m.nic_at(row), -1);
  }
  for (std::int64_t k = 0; k < m.nics(); ++k) {
    EXPECT_EQ(entities[static_cast<std::size_t>(m.nic_row(k))].kind, "nic");
    EXPECT_EQ(m.nic_at(m.nic_row(k)), k);
    EXPECT_EQ(m.device_at(m.nic_row(k)), -1);
  }
  EXPECT_EQ(m.device_at(0), -1);
  EXPECT_EQ(m.nic_of_device(4), 2);  // first device of node 1
  EXPECT_EQ(m.nic_of_device(6), 3);
}

TEST(SimulateMachine, RailsHaveLeavesOfTheirOwn) {
  Spec spec = small(8, 2);
  spec.leaves = 4;
  const Machine m(spec);
  EXPECT_EQ(m.leaf_of_nic(0), 0);  // node 0, rail 0
  EXPECT_EQ(m.leaf_of_nic(1), 1);  // node 0, rail 1
  EXPECT_EQ(m.leaf_of_nic(6), 0);  // node 3
  EXPECT_EQ(m.leaf_of_nic(8), 2);  // node 4: the second pod
  EXPECT_EQ(m.leaf_of_nic(15), 3);
}

TEST(SimulateMachine, TrueRatesHaveTheSpreadAskedFor) {
  for (const auto population : {Population::normal, Population::heavy}) {
    Spec spec = small(2000, 1);
    spec.between_cv = 0.01;
    spec.population = population;
    const Machine m(spec);
    std::vector<double> y;
    for (std::int64_t d = 0; d < m.devices(); ++d) y.push_back(m.log_rate(spec.metrics[0], d));
    EXPECT_NEAR(mad_sigma(y), 0.01, 0.001);
    EXPECT_NEAR(median(y), 0, 0.001);
  }
}

TEST(SimulateMachine, TheSecondKindIsFasterByTheGap) {
  Spec spec = small(2000, 1);
  spec.between_cv = 0.001;
  spec.population = Population::models;
  spec.gap = 0.04;
  spec.share = 0.25;
  const Machine m(spec);
  std::vector<double> first, second;
  for (std::int64_t d = 0; d < m.devices(); ++d)
    (m.second_kind(d) ? second : first).push_back(m.log_rate(spec.metrics[0], d));
  EXPECT_NEAR(static_cast<double>(second.size()), 500, 80);
  EXPECT_NEAR(median(second) - median(first), std::log1p(0.04), 3e-4);
  const auto inventory = m.inventory();
  const auto& models = inventory.at("device").text.at("model");
  for (std::int64_t d = 0; d < m.devices(); ++d)
    EXPECT_EQ(models[static_cast<std::size_t>(d)], m.second_kind(d) ? "simulated B" : "simulated A");
}

TEST(SimulateMachine, AnotherRunOfTheMachineKeepsItsTrueRates) {
  Spec spec = small(4, 2);
  const Machine a(spec);
  spec.run = 3;
  const Machine b(spec);
  spec.seed = 2;
  const Machine c(spec);
  EXPECT_EQ(a.log_rate(spec.metrics[0], 5), b.log_rate(spec.metrics[0], 5));
  EXPECT_NE(a.log_rate(spec.metrics[0], 5), c.log_rate(spec.metrics[0], 5));
  EXPECT_EQ(a.entities()[7].id, b.entities()[7].id);
  EXPECT_NE(a.entities()[7].id, c.entities()[7].id);
}

TEST(SimulateMachine, ALinkIsAsFastAsTheSlowerEnd) {
  Spec spec = small(8, 1, {"p2p/bandwidth-uni*"});
  spec.leaves = 2;
  spec.nic_cv = 0;
  spec.faults = {parse_fault("slow:node=1,nic=0,direction=rx,percent=10"),
                 parse_fault("slow:leaf=1,percent=2"), parse_fault("slowlink:pair=2>3,factor=0.5")};
  const Machine m(spec);
  const auto& metric = spec.metrics[0];
  EXPECT_DOUBLE_EQ(m.log_link(metric, 0, 1, 0), std::log(0.9));
  EXPECT_DOUBLE_EQ(m.log_link(metric, 1, 0, 0), 0);               // it sends as it should
  EXPECT_DOUBLE_EQ(m.log_link(metric, 0, 4, 0), std::log(0.98));  // crosses to the bad leaf
  EXPECT_DOUBLE_EQ(m.log_link(metric, 4, 5, 0), 0);               // stays inside it
  EXPECT_DOUBLE_EQ(m.log_link(metric, 2, 3, 0), std::log(0.5));
  EXPECT_DOUBLE_EQ(m.log_link(metric, 3, 2, 0), 0);
}

TEST(SimulateMachine, WhatMakesNoClusterIsNamed) {
  const auto message = [](const auto& change) {
    Spec spec = small(4, 2, {"memory"});
    change(spec);
    return usage_message([&] { Machine{spec}; });
  };
  EXPECT_THAT(message([](Spec& s) { s.nodes = 0; }), HasSubstr("--nodes: 0"));
  EXPECT_THAT(message([](Spec& s) { s.devices_per_node = 2000; }), HasSubstr("--devices-per-node: 2000"));
  EXPECT_THAT(message([](Spec& s) { s.leaves = 9; }), HasSubstr("--leaves: 9"));
  EXPECT_THAT(message([](Spec& s) { s.samples = 0; }), HasSubstr("--samples: 0"));
  const auto fault = [&](const char* text) {
    return message([&](Spec& s) { s.faults = {parse_fault(text)}; });
  };
  EXPECT_THAT(fault("slow:node=4,percent=5"), HasSubstr("no such node"));
  EXPECT_THAT(fault("slow:device=2,percent=5"), HasSubstr("no such device"));
  EXPECT_THAT(fault("slow:leaf=0,percent=5"), HasSubstr("there are no leaves"));
  EXPECT_THAT(fault("slow:node=1,nic=0,percent=5"), HasSubstr("hits no metric"));
  EXPECT_THAT(fault("slow:suite=gemm,percent=5"), HasSubstr("hits no metric"));
  EXPECT_THAT(fault("slowlink:pair=0>8,factor=0.5"), HasSubstr("there are 8 ranks"));
  EXPECT_THAT(fault("throttle:node=1,percent=5"), HasSubstr("--clock-cv"));
  EXPECT_THAT(fault("bitflip:node=1,target=message"), HasSubstr("checks target message"));
  EXPECT_THAT(fault("bitflip:node=1"), HasSubstr("checks target gemm"));
  Spec checked = small(4, 2, {"memory"});
  checked.faults = {parse_fault("bitflip:node=1,target=memory")};
  EXPECT_NO_THROW(Machine{checked});
}

TEST(SimulateSchedule, RoundsAreDisjointAndSampledBeyond64Nodes) {
  for (const auto& [nodes, rounds] :
       std::vector<std::pair<std::int64_t, std::size_t>>{{2, 1}, {7, 7}, {64, 63}, {200, 12}}) {
    Spec spec = small(nodes, 1, {"p2p/bandwidth-uni*"});
    spec.leaves = nodes >= 200 ? 8 : 0;
    const Machine m(spec);
    const auto schedule = cross_rounds(m, "x");
    EXPECT_EQ(schedule.size(), rounds) << nodes;
    std::size_t inside = 0;
    for (std::size_t r = 0; r < schedule.size(); ++r) {
      std::set<std::int32_t> senders;
      bool all_inside = true;
      for (const auto& ends : schedule[r]) {
        EXPECT_TRUE(senders.insert(ends.source).second) << "round " << r;
        EXPECT_NE(ends.source, ends.destination);
        all_inside = all_inside &&
                     m.leaf_of_nic(m.device_at(ends.source)) == m.leaf_of_nic(m.device_at(ends.destination));
      }
      // Of an odd number one has a bye: of all, or of each of the 8 leaves.
      EXPECT_GE(senders.size() + (all_inside ? 8 : 1), static_cast<std::size_t>(nodes)) << "round " << r;
      inside += all_inside ? 1 : 0;
    }
    if (nodes == 200) {
      EXPECT_EQ(inside, near_rounds);
    }
  }
}

}  // namespace
}  // namespace assay::simulate
