// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "topology/discover.hpp"
#include "topology/entities.hpp"
#include "topology/gpu_place.hpp"
#include "topology/inventory_tables.hpp"
#include "topology/launch_check.hpp"

namespace assay {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Visible = std::vector<VisibleGpus>;

TEST(PlaceOnGpus, LocalRankTakesTheGpuOfItsNumber) {
  const std::vector<std::string> all{"A", "B", "C"};
  EXPECT_THAT(place_on_gpus({all, all, all}, false), ElementsAre("A", "B", "C"));
  EXPECT_THAT(place_on_gpus({all, all}, false), ElementsAre("A", "B"));
  EXPECT_THAT(place_on_gpus({{}, {}}, true), ElementsAre("", ""));
}

TEST(PlaceOnGpus, WhatTheLauncherBoundStays) {
  EXPECT_THAT(place_on_gpus({{"C"}, {"A"}, {"B"}}, false), ElementsAre("C", "A", "B"));
  EXPECT_THAT(place_on_gpus({{"A", "B"}, {"A"}}, false), ElementsAre("B", "A"));
  EXPECT_THAT(place_on_gpus({{"A", "B"}, {"A", "B"}, {"C", "D"}, {"C", "D"}}, false),
              ElementsAre("A", "B", "C", "D"));
}

TEST(PlaceOnGpus, SurplusRanksGetNoneUnlessTheyShare) {
  const std::vector<std::string> all{"A", "B"};
  EXPECT_THAT(place_on_gpus({all, all, all, all, all}, false), ElementsAre("A", "B", "", "", ""));
  EXPECT_THAT(place_on_gpus({all, all, all, all, all}, true), ElementsAre("A", "B", "A", "B", "A"));
  EXPECT_THAT(place_on_gpus({{"A"}, {"A"}, {"B"}}, false), ElementsAre("A", "", "B"));
  EXPECT_THAT(place_on_gpus({{"A"}, {"A"}, {"B"}}, true), ElementsAre("A", "A", "B"));
}

DeviceWish wish(const std::string& device, bool share = false) { return {device, share, "cuda"}; }

TEST(ChooseDevices, AutoTakesGpusWhereEveryNodeHasThem) {
  const Visible some{{"A"}, {}, {"C"}, {}};
  const auto choice = choose_devices({"a", "a", "b", "b"}, some, wish("auto"));
  EXPECT_EQ(choice.kind, "cuda");
  EXPECT_THAT(choice.gpu, ElementsAre("A", "", "C", ""));
  EXPECT_THAT(choice.takes_part, ElementsAre(true, false, true, false));
  ASSERT_EQ(choice.notes.size(), 2U);
  EXPECT_THAT(choice.notes[1].text, HasSubstr("b: 2 ranks for 1 GPU: rank 3"));
}

TEST(ChooseDevices, ANodeWithoutGpusIsLeftOutWhereHalfOfThemHaveSome) {
  for (const char* device : {"auto", "cuda"}) {
    const auto choice =
        choose_devices({"a", "b", "b", "c", "d"}, {{"A"}, {}, {}, {"C"}, {}}, wish(device), {"d"});
    EXPECT_EQ(choice.kind, "cuda");
    EXPECT_THAT(choice.gpu, ElementsAre("A", "", "", "C", ""));
    EXPECT_THAT(choice.takes_part, ElementsAre(true, false, false, true, false));
    ASSERT_EQ(choice.notes.size(), 2U);
    EXPECT_EQ(choice.notes[0].host, "b");
    EXPECT_EQ(choice.notes[0].severity, "inconclusive") << "it may never have had one";
    EXPECT_THAT(choice.notes[0].text,
                HasSubstr("b: no rank can use a GPU, and none is on the PCI bus; 2 of 4 nodes"));
    EXPECT_EQ(choice.notes[1].host, "d");
    EXPECT_EQ(choice.notes[1].severity, "fail");
    EXPECT_THAT(choice.notes[1].text, HasSubstr("d: no rank can use a GPU, though one is on the PCI bus"));
  }
}

TEST(ChooseDevices, AutoStaysWithTheHostWhereMostNodesHaveNone) {
  const auto choice = choose_devices({"a", "b", "c"}, {{"A"}, {}, {}}, wish("auto"));
  EXPECT_EQ(choice.kind, "host");
  EXPECT_THAT(choice.gpu, ElementsAre("", "", ""));
  EXPECT_THAT(choice.takes_part, ElementsAre(true, true, true));
  ASSERT_EQ(choice.notes.size(), 1U);
  EXPECT_THAT(choice.notes[0].text, HasSubstr("no rank on b, c can use one"));
  EXPECT_THAT(choose_devices({"a", "b"}, {{}, {}}, wish("auto")).notes, IsEmpty());
  EXPECT_THAT(choose_devices({"a"}, {{}}, wish("host"), {"a"}).notes, IsEmpty());
  EXPECT_THAT(choose_devices({"a"}, {{"A"}}, wish("host")).kind, "host");
  EXPECT_THAT(choose_devices({"a"}, {{"A"}}, {"auto", false, ""}).kind, "host");
}

/// All ranks measured the CPUs of nodes with GPUs, and nothing was said.
TEST(ChooseDevices, GpusOnTheBusThatNoRankCanUseAreTold) {
  const auto choice = choose_devices({"a", "b", "c", "c"}, {{}, {}, {}, {}}, wish("auto"), {"b", "c"});
  EXPECT_EQ(choice.kind, "host");
  EXPECT_THAT(choice.takes_part, ElementsAre(true, true, true, true));
  ASSERT_EQ(choice.notes.size(), 1U);
  EXPECT_EQ(choice.notes[0].host, "b");
  EXPECT_EQ(choice.notes[0].severity, "warn");
  EXPECT_EQ(choice.notes[0].kind, "uncovered") << "inconclusive with --expect-devices";
  EXPECT_THAT(choice.notes[0].text, HasSubstr("on the PCI bus of b, c, but no rank can use one"));
  EXPECT_THAT(choose_devices({"a"}, {{}}, {"auto", false, ""}, {"a"}).notes, IsEmpty())
      << "a build without GPUs";
}

TEST(ChooseDevices, CudaThatCannotBeHadIsAnErrorThatNamesTheNodes) {
  const auto what = [](const DeviceWish& w) {
    try {
      choose_devices({"a", "b", "c"}, {{"A"}, {}, {}}, w);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(what(wish("cuda")), HasSubstr("--device: cuda, but no rank on b, c can use a GPU"));
  EXPECT_THAT(what({"cuda", false, ""}), HasSubstr("--device: cuda is not built"));
}

TEST(OfferedDevices, ListsThatRanksHaveInCommonAreKeptOnce) {
  const VisibleGpus all{"GPU-1", "GPU-2"};
  std::vector<std::string> texts;
  for (const double quota : {unsupported, 0.5, 2.0})
    texts.push_back(to_text(OfferedDevices{"a", quota, {{all, {}, true}, {{}, {"GPU 1 fell off"}}}, 7}));
  texts.push_back(to_text(OfferedDevices{"b", unsupported, {{{"GPU-3"}, {}}, {}}}));
  const auto offered = offered_devices(texts, {0, 2, 3});
  ASSERT_EQ(offered.size(), 3U);
  EXPECT_EQ(offered[1].host, "a");
  EXPECT_EQ(offered[1].quota_cores, 2);
  EXPECT_TRUE(std::isnan(offered[0].quota_cores));
  EXPECT_TRUE(offered[0].available[0].on_bus);
  EXPECT_FALSE(offered[0].available[1].on_bus);
  EXPECT_FALSE(offered[2].available[0].on_bus);
  EXPECT_EQ(offered[0].leader, 7);
  EXPECT_EQ(offered[2].leader, 0);
  EXPECT_EQ(offered[0].available[0].gpus, all);
  EXPECT_EQ(&offered[0].available[0].gpus.get(), &offered[1].available[0].gpus.get());
  EXPECT_THAT(offered[0].available[1].lost, ElementsAre("GPU 1 fell off"));
  EXPECT_THAT(offered[2].available[0].gpus.get(), ElementsAre("GPU-3"));
}

/// c1.rack1 and c1.rack2: the GPUs of one node were looked for among those of the other.
TEST(OfferedDevices, NodesOfOneHostNameAreToldApart) {
  std::vector<OfferedDevices> offered(5);
  for (OfferedDevices& one : offered) one.host = "c1";
  offered[1].leader = offered[3].leader = 1;
  offered[2].leader = 2;
  offered[4].host = "c2", offered[4].leader = 1;
  const auto hosts = distinct_hosts(offered);
  EXPECT_THAT(hosts, ElementsAre("c1", "c1~2", "c1~3", "c1~2", "c2"));
  const auto choice = choose_devices(hosts, {{"A"}, {}, {"C"}, {}, {"D"}}, wish("auto"), {"c1~2"});
  EXPECT_THAT(choice.gpu, ElementsAre("A", "", "C", "", "D"));
  ASSERT_EQ(choice.notes.size(), 1U);
  EXPECT_EQ(choice.notes[0].severity, "fail") << "as one node of five ranks it had idle ranks";
  EXPECT_THAT(choice.notes[0].text, HasSubstr("c1~2: no rank can use a GPU, though one is on the PCI bus"));
}

TEST(OfferedDevices, RanksThatSeeTheSameGpusAreOfOneNode) {
  std::vector<OfferedDevices> offered(4);
  for (int rank = 0; rank < 4; ++rank) {
    OfferedDevices& one = offered[static_cast<std::size_t>(rank)];
    one.host = "c1", one.leader = rank;
    one.available = {{{rank < 2 ? std::vector<std::string>{"A", "B"} : std::vector<std::string>{"C"}}, {}}};
  }
  EXPECT_THAT(distinct_hosts(offered), ElementsAre("c1", "c1", "c1~2", "c1~2"));
}

TEST(GpuOnBus, IsADisplayOrAcceleratorOfTheMakerThatTheBackendUses) {
  const TemporaryFolder folder;
  const std::string root = folder.path().string();
  const auto device = [&](const std::string& address, const std::string& kind, const std::string& maker) {
    const auto at = std::filesystem::path(root) / "bus/pci/devices" / address;
    std::filesystem::create_directories(at);
    std::ofstream(at / "class") << kind << "\n";
    std::ofstream(at / "vendor") << maker << "\n";
  };
  EXPECT_FALSE(has_gpu_on_bus(root, "0x10de"));
  device("0000:00:01.0", "0x030000", "0x1a03");  // a management controller
  device("0000:00:02.0", "0x040300", "0x10de");  // sound of a GPU
  device("0000:00:03.0", "0x030000", "0x1002");  // a display adapter of a maker that CUDA cannot use
  EXPECT_FALSE(has_gpu_on_bus(root, "0x10de"));
  device("0000:17:00.0", "0x030200", "0x10de");
  EXPECT_TRUE(has_gpu_on_bus(root, "0x10de"));
  EXPECT_FALSE(has_gpu_on_bus(root, "")) << "of an unknown maker";
}

Node made_node(const std::string& name, int gpus) {
  Node node;
  node.hostname = node.id = name;
  node.id_source = "hostname";
  node.cpu_model = "CPU";
  for (int i = 0; i < gpus; ++i) {
    Gpu gpu;
    gpu.name = "H100";
    node.gpus.push_back(gpu);
    node.gpu_uuids.push_back("GPU-" + name + std::to_string(i));
  }
  return node;
}

RankFacts facts(const std::string& host, int leader, int local, const std::string& gpu,
                const std::vector<std::string>& visible = {}) {
  return {host, leader, local, {0}, 1, "1", visible, gpu.empty() ? "host" : "cuda", gpu};
}

Topology discovered(const std::vector<Node>& nodes, const std::vector<RankFacts>& ranks) {
  std::vector<std::string> texts, places;
  std::size_t next = 0;
  for (const RankFacts& rank : ranks) {
    texts.push_back(rank.local_rank == 0 ? to_json(nodes[next++]).dump() : "");
    places.push_back(to_text(rank));
  }
  return discover(texts, places, 0, 0);
}

TEST(GpuTopology, RanksKnowTheirGpu) {
  const Topology t =
      discovered({made_node("a", 2)}, {facts("a", 0, 0, "GPU-a1"), facts("a", 0, 1, "GPU-a0")});
  EXPECT_EQ(t.device_kind, "cuda");
  EXPECT_EQ(t.ranks[0].gpu, 1);
  EXPECT_EQ(t.ranks[1].gpu, 0);
  EXPECT_FALSE(t.ranks[0].shares_gpu);
  const EntityTable entities(t);
  const auto row = entities.row(entities.device_of_rank(0));
  EXPECT_EQ(row.name, "a/gpu1");
  EXPECT_EQ(row.id, "GPU-a1");
  EXPECT_EQ(row.id_source, "uuid");
  EXPECT_EQ(row.rank, 0);
}

TEST(GpuTopology, WhatARankMeasuredOfItsGpuArrives) {
  RankFacts rank = facts("a", 0, 0, "GPU-a0");
  rank.gpu_free_bytes = 7e10;
  rank.gpu_sweep_rate = 2.5e12;
  const Topology t = discovered({made_node("a", 1)}, {rank});
  EXPECT_EQ(t.ranks[0].gpu_free_bytes, 7e10);
  EXPECT_EQ(t.ranks[0].gpu_sweep_rate, 2.5e12);
}

TEST(GpuTopology, SharedGpusHaveARowForEachRankAndOneForThemselves) {
  const Topology t =
      discovered({made_node("a", 1)}, {facts("a", 0, 0, "GPU-a0"), facts("a", 0, 1, "GPU-a0")});
  EXPECT_TRUE(t.ranks[0].shares_gpu);
  const EntityTable entities(t);
  EXPECT_EQ(entities.row(entities.device_of_rank(0)).name, "a/gpu0.0");
  EXPECT_EQ(entities.row(entities.device_of_rank(1)).name, "a/gpu0.1");
  EXPECT_EQ(entities.row(entities.device_of_rank(1)).id, "GPU-a0.1") << "found again in another run";
  EXPECT_EQ(entities.row(entities.gpu(0, 0)).rank, -1);
  const auto table = inventory_tables(t, entities).at("device");
  EXPECT_THAT(table.text.at("device_kind"), ElementsAre("gpu share", "gpu share", "gpu"));
}

TEST(GpuTopology, GpusOfAHostRunAreThereAndBelongToNobody) {
  const Topology t =
      discovered({made_node("a", 2), made_node("b", 0)}, {facts("a", 0, 0, ""), facts("b", 1, 0, "")});
  const EntityTable entities(t);
  EXPECT_EQ(entities.row(entities.device_of_rank(0)).name, "a/cores0");
  EXPECT_EQ(entities.row(entities.find("device", "a/gpu1")).rank, -1);
  const auto tables = inventory_tables(t, entities);
  EXPECT_THAT(tables.at("node").number.at("gpus"), ElementsAre(2, 0))
      << "0 is a number here: node b lacks what a has";
  EXPECT_THAT(tables.at("device").text.at("device_kind"), ElementsAre("host", "host", "gpu", "gpu"));
}

TEST(GpuTopology, WithoutGpusNothingIsAdded) {
  const Topology t = discovered({made_node("a", 0)}, {facts("a", 0, 0, "")});
  const auto tables = inventory_tables(t, EntityTable(t));
  EXPECT_FALSE(tables.at("node").number.contains("gpus"));
  EXPECT_FALSE(tables.at("device").text.contains("device_kind"));
}

TEST(GpuTopology, WhatNvmlDoesNotKnowIsAddedFromTheRanks) {
  const Topology t = discovered({made_node("a", 1)}, {facts("a", 0, 0, "MIG-1", {"MIG-1", "MIG-2"})});
  ASSERT_EQ(t.nodes[0].gpus.size(), 3U);
  EXPECT_EQ(t.nodes[0].gpu_uuid(1), "MIG-1");
  EXPECT_EQ(t.ranks[0].gpu, 1);
  EXPECT_THAT(inventory_tables(t, EntityTable(t)).at("node").number.at("gpus"), ElementsAre(1))
      << "slices are no GPUs more";
}

/// Of five GPUs the driver has lost the second, and keeps the fourth from the node's first rank.
Node node_with_gaps() {
  Node node = made_node("a", 3);
  for (const std::size_t gpu : {0, 1, 2}) node.gpus.edit()[gpu].number = 2 * static_cast<int>(gpu);
  node.gpus_lost = {"GPU 1 of the driver does not answer"};
  node.gpus_hidden = {3};
  return node;
}

TEST(GpuTopology, AGpuIsCalledByTheNumberOfTheDriver) {
  const Topology t = discovered({node_with_gaps()}, {facts("a", 0, 0, "GPU-a2")});
  EXPECT_EQ(t.ranks[0].gpu, 2);
  const EntityTable entities(t);
  EXPECT_EQ(entities.row(entities.device_of_rank(0)).name, "a/gpu4");
  EXPECT_EQ(entities.row(entities.gpu(0, 1)).name, "a/gpu2");
  for (const char* none : {"a/gpu1", "a/gpu3"}) EXPECT_EQ(entities.find("device", none), -1) << none;
  EXPECT_THAT(inventory_tables(t, entities).at("node").number.at("gpus"), ElementsAre(4))
      << "what the node has, and is not lost";
}

TEST(GpuTopology, GpusThatOnlyTheirRanksSeeTakeNumbersThatAreFree) {
  const Topology t = discovered({node_with_gaps()},
                                {facts("a", 0, 0, "GPU-a0"), facts("a", 0, 1, "MIG-1", {"GPU-x", "MIG-1"})});
  ASSERT_EQ(t.nodes[0].gpus.size(), 5U);
  EXPECT_EQ(t.nodes[0].gpu_name(3), "gpu3") << "the hidden one";
  EXPECT_EQ(t.nodes[0].gpu_name(4), "gpu5") << "behind all that the driver counts";
  EXPECT_TRUE(t.nodes[0].gpus_hidden.empty());
  const EntityTable entities(t);
  EXPECT_EQ(entities.row(entities.device_of_rank(1)).name, "a/gpu5");
  EXPECT_THAT(inventory_tables(t, entities).at("node").number.at("gpus"), ElementsAre(4));
}

std::vector<std::string> told(const Topology& t, const LaunchExpectations& expect = {}) {
  std::vector<std::string> out;
  for (const auto& f : check_launch(t, expect, {}))
    out.push_back(f.event_kind() + " " + f.kind + ": " + f.text);
  return out;
}

TEST(GpuLaunch, FewerGpusThanExpectedAreAFaultOfTheNode) {
  const Topology t = discovered({made_node("a", 2)}, {facts("a", 0, 0, "GPU-a1")});
  EXPECT_THAT(told(t, {0, 0, 3}), ::testing::Contains("launch-fail missing: a: 2 GPUs, expected 3"));
  EXPECT_THAT(told(t),
              ::testing::Contains(
                  "launch-warn uncovered: a: 1 of 2 GPUs (gpu0) belong to no rank and are not measured"));
}

TEST(GpuLaunch, GpusThatAJobIsNotGivenAreNoFaultOfTheNode) {
  Node part = made_node("a", 2);
  part.gpus_hidden = {2, 3};
  const Topology t =
      discovered({part, made_node("b", 4)}, {facts("a", 0, 0, "GPU-a0"), facts("b", 1, 0, "GPU-b0")});
  EXPECT_THAT(inventory_tables(t, EntityTable(t)).at("node").number.at("gpus"), ElementsAre(4, 4));
  EXPECT_THAT(told(t, {0, 0, 4}),
              ::testing::Contains("launch-inconclusive missing: a: 2 GPUs, expected 4: the driver keeps 2 "
                                  "more from this job (cgroup)"));
  EXPECT_THAT(told(t, {0, 0, 5}), ::testing::Contains("launch-fail missing: a: 2 GPUs, expected 5"));
  const Topology alone = discovered({part}, {facts("a", 0, 0, "GPU-a0")});
  EXPECT_THAT(told(alone, {0, 0, 2}), ::testing::Not(::testing::Contains(::testing::HasSubstr("expected"))));
}

TEST(GpuLaunch, GpusThatOnlyTheirOwnRanksSeeHaveNoCounters) {
  Node node = made_node("a", 1);
  node.gpus.edit()[0].name = "NVIDIA H100";
  const Topology t = discovered({node}, {facts("a", 0, 0, "GPU-a0"), facts("a", 0, 1, "GPU-x", {"GPU-x"}),
                                         facts("a", 0, 2, "GPU-y", {"GPU-y"})});
  EXPECT_THAT(told(t), ::testing::Contains(::testing::StartsWith(
                           "launch-warn uncovered: a: NVML does not show 2 of 3 GPUs (gpu1, gpu2) to ")));
  const Topology mig = discovered({node}, {facts("a", 0, 0, "MIG-1", {"MIG-1"})});
  EXPECT_THAT(told(mig), ::testing::Not(::testing::Contains(::testing::HasSubstr("NVML does not show"))))
      << "parts of a GPU that NVML shows";
  node.gpus.edit()[0].name = "";
  const Topology without = discovered({node}, {facts("a", 0, 0, "GPU-x", {"GPU-x"})});
  EXPECT_THAT(told(without), ::testing::Not(::testing::Contains(::testing::HasSubstr("NVML does not show"))));
}

TEST(GpuLaunch, SlicesAreNoGpusMoreAndTheirGpuIsCovered) {
  Node node = made_node("a", 2);
  for (int gpu = 0; gpu < 2; ++gpu) node.gpus.edit()[static_cast<std::size_t>(gpu)].name = "NVIDIA H100";
  node.gpus.edit()[0].mig = "on";
  const Topology t = discovered({node}, {facts("a", 0, 0, "MIG-1", {"MIG-1"}), facts("a", 0, 1, "GPU-a1")});
  ASSERT_EQ(t.nodes[0].gpus.size(), 3U);
  EXPECT_THAT(told(t, {0, 0, 2}), ::testing::Not(::testing::Contains(::testing::HasSubstr("GPU"))));
  EXPECT_THAT(told(t, {0, 0, 3}), ::testing::Contains("launch-fail missing: a: 2 GPUs, expected 3"));
  // Nobody has a slice of the GPU in MIG mode.
  const Topology none = discovered({node}, {facts("a", 0, 0, "GPU-a1")});
  EXPECT_THAT(told(none), ::testing::Contains(::testing::HasSubstr("1 of 2 GPUs (gpu0) belong to no rank")));
}

TEST(GpuLaunch, AGpuThatDoesNotAnswerIsAFaultOnAnyDevice) {
  Node node = made_node("a", 1);
  node.gpus_lost = {"GPU 1 of the driver does not answer"};
  node.gpu_trouble = "the driver hangs";
  const Topology t = discovered({node}, {facts("a", 0, 0, "")});
  EXPECT_THAT(told(t), ::testing::Contains("launch-fail missing: a: GPU 1 of the driver does not answer"));
  EXPECT_THAT(told(t), ::testing::Contains("launch-warn missing: a: NVML cannot be used: the driver hangs"));
}

}  // namespace
}  // namespace assay
