// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstddef>
#ifdef __SANITIZE_ADDRESS__
// GCC installs no header that declares it.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#else
#include <malloc.h>
#endif

#include "base/error.hpp"
#include "tests/unit/topology_tree.hpp"
#include "topology/discover.hpp"
#include "topology/entities.hpp"

namespace assay {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::made_node;

std::string facts(const std::string& host, int leader, int local, std::vector<int> mask,
                  const std::string& version = "1") {
  return to_text(RankFacts{host, leader, local, std::move(mask), 100 + local, version});
}

std::string node_text(const Node& node) { return to_json(node).dump(); }

TEST(Discover, AssemblesNodesInOrderOfTheirLowestRank) {
  // Ranks 0 and 2 on b, 1 and 3 on a: placed round robin.
  const Topology t = discover({node_text(made_node("b", 2)), node_text(made_node("a", 2)), "", ""},
                              {facts("b", 0, 0, {0, 1}), facts("a", 1, 0, {0, 1}), facts("b", 0, 1, {0, 1}),
                               facts("a", 1, 1, {0, 1})},
                              3, 0);
  ASSERT_EQ(t.nodes.size(), 2U);
  EXPECT_EQ(t.nodes[0].hostname, "b");
  EXPECT_EQ(t.ranks[2].node, 0);
  EXPECT_EQ(t.ranks[2].local_rank, 1);
  EXPECT_EQ(t.ranks[2].local_size, 2);
  EXPECT_THAT(t.ranks[2].cpus, ElementsAre(1));
  EXPECT_EQ(t.ranks[2].threads, 1);
  EXPECT_EQ(t.ranks[2].numa, 0);
  EXPECT_EQ(t.self, 3);
  EXPECT_EQ(t.my_node().hostname, "a");
  EXPECT_THAT(t.ranks_of(1), ElementsAre(1, 3));
  EXPECT_EQ(t.max_local_size(), 2);
}

TEST(Discover, MultipliedNodesKeepTheirRanksAndWhatTheyMeasure) {
  Topology one = discover({to_json(made_node("a", 2)).dump(), ""},
                          {facts("a", 0, 0, {0, 1}), facts("a", 0, 1, {0, 1})}, 0, 0);
  one.device_kind = "cuda";
  one.no_products = "no cuBLASLt";
  one.lacks["libx"] = "no libx";
  Topology many = multiplied(one, 3);
  EXPECT_EQ(many.device_kind, "cuda");
  EXPECT_EQ(many.no_products, "no cuBLASLt");
  EXPECT_EQ(many.lacks, one.lacks);
  ASSERT_EQ(many.node_ranks.size(), 3U);
  for (int node = 0; node < 3; ++node) EXPECT_THAT(many.ranks_of(node), ElementsAre(2 * node, 2 * node + 1));
  many.node_ranks.clear();  // as in a topology that nobody indexed
  EXPECT_THAT(many.ranks_of(2), ElementsAre(4, 5));
}

TEST(Discover, NodesMayTellOnlyWhatDiffersFromTheFirst) {
  Node first = made_node("a", 2);
  first.software.edit()["glibc"] = "2.36";
  first.caches = {{2, 1 << 20, {0}}, {3, 1 << 22, {0, 1}}};
  for (int i = 0; i < 40; ++i)
    first.dimms.push_back({"slot" + std::to_string(i), "part", "maker", 1e9, unsupported, 4800});
  first.dimm_serials.assign(40, "s");
  Node like = first, other = made_node("c", 2);
  like.hostname = like.id = "b";
  like.dimm_serials[3] = "x";
  like.dimms.edit()[4].speed_mt_s = 5600;
  like.dimms.edit()[5].bytes = unsupported;
  like.dimms.push_back({"slot40", "", "", 2e9, 1, 2});
  other.dimms = {first.dimms[7]};
  other.caches = {};
  const Json whole = to_json(first);
  const std::string told = differences(to_json(like), whole).dump();
  EXPECT_LT(10 * told.size(), to_json(like).dump().size()) << told;
  const Topology t =
      discover({node_text(first), told, differences(to_json(other), whole).dump()},
               {facts("a", 0, 0, {0, 1}), facts("b", 1, 0, {0, 1}), facts("c", 2, 0, {0, 1})}, 0, 0);
  EXPECT_EQ(to_json(t.nodes[1]).dump(), to_json(like).dump());
  EXPECT_EQ(to_json(t.nodes[2]).dump(), to_json(other).dump());
}

TEST(Discover, NodesWithEqualCpusAreOfOneKind) {
  Node other = made_node("c", 2);
  other.caches.push_back({3, 1 << 20, {0, 1}});
  Topology t = discover(
      {node_text(made_node("a", 2)), node_text(made_node("b", 2)), node_text(other),
       node_text(made_node("d", 2))},
      {facts("a", 0, 0, {0, 1}), facts("b", 1, 0, {0, 1}), facts("c", 2, 0, {0, 1}), facts("d", 3, 0, {0})},
      0, 0);
  const auto counts = [&t] {
    std::vector<std::pair<int, std::int64_t>> found;
    for (const NodeKind& kind : t.kinds()) found.emplace_back(kind.node, kind.count);
    return found;
  };
  EXPECT_THAT(counts(), ElementsAre(std::pair(0, 2), std::pair(2, 1), std::pair(3, 1)));
  EXPECT_EQ(t.ranks_up_to(8), 4);
  t.node_kinds.clear();  // as in a topology that nobody indexed
  EXPECT_EQ(counts().size(), 4U);
  EXPECT_EQ(
      multiplied(discover({node_text(other)}, {facts("c", 0, 0, {0, 1})}, 0, 0), 50).kinds().front().count,
      50);
}

TEST(Discover, NodesOfOneNameOrIdentityAreToldApart) {
  Node node = made_node("localhost", 1);
  node.id = "4c4c4544-0042-3510-8054-b7c04f4d5331";
  node.id_source = "dmi";
  const Topology t = discover({node_text(node), node_text(node)},
                              {facts("localhost", 0, 0, {0}), facts("localhost", 1, 0, {0})}, 0, 0);
  EXPECT_EQ(t.nodes[0].hostname, "localhost");
  EXPECT_EQ(t.nodes[1].hostname, "localhost~2");
  EXPECT_NE(t.nodes[0].id, t.nodes[1].id);
  EXPECT_EQ(t.nodes[0].id_source, "hostname");
}

TEST(Discover, HostsThatClaimOneUuidAreNamedByTheirHostName) {
  Node first = made_node("vnode01", 1);
  first.id = "4c4c4544-0042-3510-8054-b7c04f4d5331";
  first.id_source = "dmi";
  Node second = first, third = first;
  second.hostname = "vnode02";
  third.hostname = "node07";
  third.id = "4c4c4544-0042-3510-8054-b7c04f4d5332";
  const Topology t =
      discover({node_text(first), node_text(second), node_text(third)},
               {facts("vnode01", 0, 0, {0}), facts("vnode02", 1, 0, {0}), facts("node07", 2, 0, {0})}, 0, 0);
  ASSERT_EQ(t.nodes.size(), 3U);
  EXPECT_EQ(t.nodes[0].id, "vnode01");
  EXPECT_EQ(t.nodes[1].id, "vnode02");
  EXPECT_EQ(t.nodes[1].id_source, "hostname");
  EXPECT_EQ(t.nodes[2].id, third.id);
  EXPECT_EQ(t.nodes[2].id_source, "dmi");
}

TEST(Discover, NamesWhatIsWrong) {
  const std::string node = node_text(made_node("a", 1));
  try {
    discover({node, ""}, {facts("a", 0, 0, {0}, "1.0"), facts("a", 0, 1, {0}, "1.1")}, 0, 0);
    FAIL() << "different versions must be refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("rank 1 (a) runs 1.1"));
  }
  EXPECT_THROW(discover({""}, {facts("a", 0, 0, {0})}, 0, 0), Error);
  EXPECT_THROW(discover({"{"}, {facts("a", 0, 0, {0})}, 0, 0), Error);
  EXPECT_THROW(discover({node}, {"nonsense"}, 0, 0), Error);
  EXPECT_THROW(discover({node}, {facts("a", 7, 0, {0})}, 0, 0), Error);
}

/// Bytes that the process has allocated.
std::size_t allocated() {
#ifdef __SANITIZE_ADDRESS__
  return __sanitizer_get_current_allocated_bytes();
#else
  return mallinfo2().uordblks;
#endif
}

std::string facts_of(int rank, const std::string& host) {
  return facts(host, rank / 8 * 8, rank % 8,
               rank % 8 < 4 ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{4});
}

// Each rank has the description of each node: 12,500 of them in 300 MB.
TEST(Discover, EqualPartsOfNodesAreKeptOnce) {
  constexpr int nodes = 300, dimms = 32, nics = 10;
  constexpr std::size_t most_bytes = 16000;
  const auto node = [](int number, int kind) {
    Node made = made_node("node" + std::to_string(number), 96 + 16 * kind);
    made.id_source = "machine-id";
    for (int i = 0; i < dimms; ++i) {
      made.dimms.push_back({"slot" + std::to_string(i), "part", "maker", 5e10, 4800, 4800});
      made.dimm_serials.push_back("serial" + std::to_string(dimms * number + i));
    }
    for (int i = 0; i < nics; ++i) {
      made.nics.push_back(testing::made_nic("mlx5_" + std::to_string(i), "infiniband", "0000:3b", 5e10));
      made.nic_ids.push_back("guid" + std::to_string(nics * number + i));
    }
    for (int i = 0; i < 12; ++i) made.software.edit()["library" + std::to_string(i)] = "1.2.3 (Debian)";
    return made;
  };
  std::vector<std::string> told, places;
  const Json first = to_json(node(0, 0));
  for (int n = 0; n < nodes; ++n)
    for (int local = 0; local < 8; ++local) {
      const Json own = local == 0 ? to_json(node(n, n % 2)) : Json();
      told.push_back(local > 0 ? "" : n == 0 ? own.dump() : differences(own, first).dump());
      places.push_back(facts_of(8 * n + local, "node" + std::to_string(n)));
    }
  const std::size_t before = allocated();
  const Topology t = discover(told, places, 0, 0);
  const EntityTable entities(t);
  EXPECT_LT((allocated() - before) / nodes, most_bytes) << "of memory for each node";
  EXPECT_LT(entities.bytes() / nodes, 4000U);
  for (const int n : {2, 5}) {
    const Node &known = t.nodes[static_cast<std::size_t>(n % 2)],
               &other = t.nodes[static_cast<std::size_t>(n)];
    EXPECT_EQ(&other.core_pus.get(), &known.core_pus.get());
    EXPECT_EQ(&other.nics.get(), &known.nics.get());
    EXPECT_EQ(&other.dimms.get(), &known.dimms.get());
    EXPECT_EQ(&other.software.get(), &known.software.get());
  }
  EXPECT_EQ(t.nodes[5].cores, 112);
  EXPECT_EQ(entities.row(entities.dimm(5, "slot3")).id, "maker/part/serial163");
  EXPECT_EQ(entities.name(entities.nic(299, "mlx5_9")), "node299/mlx5_9");
  EXPECT_EQ(entities.find("dimm", "node299/slot31"), entities.dimm(299, "slot31"));
}

/// Eight GPUs behind switches.
Node with_gpus(int number) {
  Node made = made_node("node" + std::to_string(number), 16);
  for (int i = 0; i < 8; ++i) {
    Gpu gpu;
    gpu.name = "NVIDIA H100 80GB HBM3", gpu.part = "692-2G520-0200-000", gpu.compute = "9.0";
    gpu.pci = "0000:" + std::to_string(10 + i) + ":00.0", gpu.nvlinks = gpu.nvlinks_up = 18;
    gpu.nvlink_ends.assign(18, "switch");
    gpu.fabric = "completed", gpu.fabric_clique = "00000000000000000000000000000000/0";
    made.gpus.push_back(gpu);
    made.gpu_uuids.push_back("GPU-00000000-0000-4000-8000-" + std::to_string(100000000000 + 8 * number + i));
    made.gpu_serials.push_back(std::to_string(1650000000000 + 8 * number + i));
  }
  return made;
}

/// `more`: a GPU for each rank that NVML does not list, instead of one that it does.
Topology with_gpus_on(int nodes, bool more) {
  const Json first = to_json(with_gpus(0));
  std::vector<std::string> told, places;
  for (int n = 0; n < nodes; ++n) {
    const Node node = with_gpus(n);
    for (int local = 0; local < 8; ++local) {
      told.push_back(local > 0 ? "" : n == 0 ? first.dump() : differences(to_json(node), first).dump());
      RankFacts own{node.hostname, 8 * n, local, std::vector<int>{2 * local, 2 * local + 1},
                    100 + local,   "1"};
      own.device = "cuda";
      own.gpu =
          more ? "GPU-more-" + std::to_string(8 * n + local) : node.gpu_uuid(static_cast<std::size_t>(local));
      if (more) own.unlisted_gpus = {own.gpu}, own.compute = "9.0";
      places.push_back(to_text(own));
    }
  }
  return discover(told, places, 0, 0);
}

// 12,500 nodes in 300 MB, with GPUs, too.
TEST(Discover, EqualGpusOfNodesAreKeptOnce) {
  constexpr std::size_t nodes = 300, most_bytes = 7000;
  const std::size_t before = allocated();
  const Topology t = with_gpus_on(nodes, false);
  const EntityTable entities(t);
  EXPECT_LT((allocated() - before) / nodes, most_bytes) << "of memory for each node";
  EXPECT_EQ(&t.nodes[299].gpus.get(), &t.nodes[1].gpus.get());
  EXPECT_EQ(t.ranks[8 * 7 + 3].gpu, 3);
  EXPECT_EQ(entities.row(entities.gpu(7, 3)).id, with_gpus(7).gpu_uuid(3));
  EXPECT_EQ(t.nodes[7].gpu_serial(3), with_gpus(7).gpu_serial(3));
}

TEST(Discover, GpusThatNvmlDoesNotListAreKeptOnce) {
  const Topology t = with_gpus_on(3, true);
  EXPECT_EQ(&t.nodes[2].gpus.get(), &t.nodes[1].gpus.get());
  ASSERT_EQ(t.nodes[2].gpus.size(), 16U);
  EXPECT_EQ(t.nodes[2].gpus[9].compute, "9.0");
  EXPECT_EQ(t.nodes[2].gpus[9].name, "");
  EXPECT_EQ(t.nodes[2].gpu_uuid(9), "GPU-more-17");
  EXPECT_EQ(t.ranks[17].gpu, 9);
}

TEST(Discover, WhatARankLacksAllRanksKnow) {
  std::vector<std::string> texts;
  const std::map<std::string, std::string> of_all{{"libc", "no libc"}},
      of_one{{"libb", "no libb"}, {"libc", "no libc"}};
  for (int rank = 0; rank < 3; ++rank) {
    RankFacts facts{"h" + std::to_string(rank), rank, 0, {0}, 100, "1"};
    facts.lacks = rank == 1 ? of_one : of_all;
    texts.push_back(to_text(facts));
  }
  const std::string node = to_json(probe_node()).dump();
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(discover({node, node, node}, texts, rank, 0).lacks,
              (std::map<std::string, std::string>{{"libb", "h1: no libb"}, {"libc", "no libc"}}));
}

TEST(Discover, OwnFactsSurviveTheWire) {
  const RankFacts mine = own_facts(4, 2);
  const RankFacts back = rank_facts_from(to_text(mine));
  EXPECT_EQ(back.hostname, mine.hostname);
  EXPECT_EQ(back.mask, mine.mask);
  EXPECT_EQ(back.leader_rank, 4);
  EXPECT_EQ(back.local_rank, 2);
  EXPECT_FALSE(back.version.empty());
  EXPECT_FALSE(back.mask.empty());
}

Topology two_ranks_and_parts() {
  Node node = made_node("node07", 4);
  node.dimms = {{"DIMM A1", "P", "M", 1e9, 4800, 4800}, {"DIMM B1", "P", "M", 1e9, 4800, 4800}};
  node.dimm_serials = {"S7", ""};
  node.nic_ids = {"id"};
  node.nics.push_back(testing::made_nic("mlx5_0:1", "infiniband", "", 5e10));
  return discover({node_text(node), ""},
                  {facts("node07", 0, 0, {0, 1, 2, 3}), facts("node07", 0, 1, {0, 1, 2, 3})}, 0, 0);
}

TEST(Entities, NamesAndParents) {
  EntityTable table(two_ranks_and_parts());
  const auto rows = table.rows();
  EXPECT_EQ(rows[static_cast<std::size_t>(table.cluster())].kind, "cluster");
  EXPECT_EQ(rows[static_cast<std::size_t>(table.node(0))].name, "node07");
  EXPECT_EQ(rows[static_cast<std::size_t>(table.device_of_rank(0))].name, "node07/cores0-1");
  EXPECT_EQ(rows[static_cast<std::size_t>(table.device_of_rank(1))].name, "node07/cores2-3");
  EXPECT_EQ(rows[static_cast<std::size_t>(table.device_of_rank(1))].rank, 1);
  EXPECT_EQ(rows[static_cast<std::size_t>(table.device_of_rank(1))].parent, table.node(0));
  EXPECT_EQ(rows[static_cast<std::size_t>(table.numa(0, 0))].name, "node07/numa0");
  EXPECT_EQ(table.numa(0, 3), -1);
  EXPECT_EQ(rows[static_cast<std::size_t>(table.nic(0, "mlx5_0:1"))].id_source, "guid");
  EXPECT_EQ(table.nic(0, "eth9"), -1);
  const auto& known = rows[static_cast<std::size_t>(table.dimm(0, "DIMM A1"))];
  EXPECT_EQ(known.name, "node07/DIMM_A1");
  EXPECT_EQ(known.id, "M/P/S7");
  EXPECT_EQ(known.id_source, "serial");
  EXPECT_EQ(rows[static_cast<std::size_t>(table.dimm(0, "DIMM B1"))].id_source, "path") << "no serial number";
  EXPECT_EQ(table.find("cpu", "node07/cpu0") >= 0, true);
}

TEST(Entities, PartsThatTwoNodesClaimAreNamedByTheirPlace) {
  Node first = made_node("vnode01", 1);
  first.dimms.push_back({"DIMM A1", "P", "M", 1e9, 4800, 4800});
  first.dimm_serials = {"S7"}, first.nic_ids = {"id"};
  first.nics.push_back(testing::made_nic("mlx5_0:1", "infiniband", "", 5e10));
  Node second = first;
  second.hostname = second.id = "vnode02";
  second.dimms.push_back({"DIMM B1", "P", "M", 1e9, 4800, 4800});
  second.dimm_serials.emplace_back("S8");
  EntityTable table(discover({node_text(first), node_text(second)},
                             {facts("vnode01", 0, 0, {0}), facts("vnode02", 1, 0, {0})}, 0, 0));
  const auto row = [&table](int index) { return table.row(index); };
  for (int node = 0; node < 2; ++node) {
    EXPECT_EQ(row(table.dimm(node, "DIMM A1")).id_source, "path");
    EXPECT_EQ(row(table.nic(node, "mlx5_0:1")).id_source, "path");
  }
  EXPECT_NE(row(table.dimm(0, "DIMM A1")).id, row(table.dimm(1, "DIMM A1")).id);
  EXPECT_NE(row(table.nic(0, "mlx5_0:1")).id, row(table.nic(1, "mlx5_0:1")).id);
  EXPECT_EQ(row(table.dimm(1, "DIMM B1")).id, "M/P/S8") << "claimed once";
}

TEST(Entities, LinksAppearOnceAndKeepTheirDirection) {
  EntityTable table(two_ranks_and_parts());
  const int a = table.device_of_rank(0), b = table.device_of_rank(1);
  const std::size_t before = table.size();
  const int there = table.link(a, b), back = table.link(b, a);
  EXPECT_NE(there, back);
  EXPECT_EQ(table.link(a, b), there);
  EXPECT_EQ(table.size(), before + 2);
  EXPECT_EQ(table.row(there).name, "node07/cores0-1>node07/cores2-3");
}

TEST(Entities, RanksOnOneCoreSetGetNumbers) {
  const std::string node = node_text(made_node("n", 1));
  EntityTable table(
      discover({node, "", ""}, {facts("n", 0, 0, {0}), facts("n", 0, 1, {0}), facts("n", 0, 2, {0})}, 0, 0));
  std::vector<std::string> names;
  for (int rank = 0; rank < 3; ++rank) names.push_back(table.row(table.device_of_rank(rank)).name);
  EXPECT_THAT(names, ElementsAre("n/cores0.0", "n/cores0.1", "n/cores0.2"));
}

}  // namespace
}  // namespace assay
