// SPDX-License-Identifier: Apache-2.0
#include "topology/discover.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "assay/version.hpp"
#include "base/error.hpp"
#include "base/system.hpp"

namespace assay {
namespace {

void check_versions(const std::vector<RankFacts>& facts) {
  std::vector<int> others;
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    if (facts[rank].version != facts.front().version) others.push_back(static_cast<int>(rank));
  }
  if (others.empty()) return;
  const RankFacts& other = facts[static_cast<std::size_t>(others.front())];
  throw_usage("rank 0 runs assay " + facts.front().version + ", but rank " + format_cpu_list(others) + " (" +
              other.hostname + ") runs " + other.version);
}

// Cloned images and containers may share a name or a DMI UUID; two rows of one name could not be told apart
// later.
void make_nodes_distinct(std::vector<Node>& nodes) {
  std::map<std::string, int> names, ids;
  for (const Node& node : nodes) ++ids[node.id];
  for (Node& node : nodes) {
    const int n = ++names[node.hostname];
    if (n > 1) node.hostname += "~" + std::to_string(n);
    if (ids[node.id] > 1) {
      node.id = node.hostname;
      node.id_source = "hostname";
    }
  }
}

/// `others`: reads what differs from the node of the lowest rank; made by that one.
Node parse_node(const std::string& text, int leader, std::optional<NodeReader>& others) {
  const std::string who = "rank " + std::to_string(leader) + ", leader of its node, ";
  if (text.empty()) throw Error(ErrorKind::internal, who + "did not describe it");
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Error(ErrorKind::internal, who + "sent a description that is no JSON");
  if (others) return others->read(json);
  return others.emplace(node_from_json(json)).like();
}

/// Lists of CPUs, of which the ranks of equal nodes have the same.
using KnownCpus = std::map<std::vector<int>, Shared<std::vector<int>>>;

Shared<std::vector<int>> kept_once(const std::vector<int>& cpus, KnownCpus& known) {
  return known.try_emplace(cpus, cpus).first->second;
}

void place_ranks(Topology& topology, const std::vector<RankFacts>& facts, int node, int threads,
                 KnownCpus& known) {
  std::vector<int> members = topology.ranks_of(node);
  const auto local = [&facts](int rank) { return facts[static_cast<std::size_t>(rank)].local_rank; };
  std::sort(members.begin(), members.end(), [&](int a, int b) { return local(a) < local(b); });
  std::vector<std::vector<int>> masks;
  for (const int rank : members) masks.push_back(facts[static_cast<std::size_t>(rank)].mask);
  const Node& description = topology.nodes[static_cast<std::size_t>(node)];
  const std::vector<Share> shares = share_cpus(description, masks, threads);
  for (std::size_t i = 0; i < members.size(); ++i) {
    RankPlace& place = topology.ranks[static_cast<std::size_t>(members[i])];
    place.local_rank = static_cast<int>(i);
    place.local_size = static_cast<int>(members.size());
    place.mask = kept_once(masks[i], known);
    place.cpus = kept_once(shares[i].cpus, known);
    place.threads = std::max(1, static_cast<int>(shares[i].cpus.size()));
    place.shares_cpus = shares[i].shared;
    place.numa = description.numa_of(place.cpus);
  }
}

/// Capabilities that NVML does not tell, by node and GPU.
using Computes = std::map<int, std::map<int, std::string>>;

/// Numbers of the GPUs of which only the UUIDs are known so far: of those that the driver keeps from the
/// node's first rank, which are hidden no more, else behind all that it counts.
std::vector<int> number_unlisted(Node& node) {
  std::vector<int> numbers;
  const std::size_t seen = node.gpus.size() + node.gpus_hidden.size();
  int next = seen == 0 ? 0 : static_cast<int>(seen + node.gpus_lost.size());
  for (std::size_t gpu = node.gpus.size(); gpu < node.gpu_uuids.size(); ++gpu) {
    if (node.gpus_hidden.empty() || node.is_slice(gpu)) {
      numbers.push_back(next++);
      continue;
    }
    numbers.push_back(node.gpus_hidden.front());
    node.gpus_hidden.erase(node.gpus_hidden.begin());
  }
  return numbers;
}

/// Describes the GPUs of which only the UUIDs are known so far. Nodes with equal lists go on sharing them.
void describe_unlisted(Topology& topology, const Computes& computes) {
  std::map<std::pair<const Gpu*, std::string>, Shared<std::vector<Gpu>>> known;
  for (std::size_t n = 0; n < topology.nodes.size(); ++n) {
    Node& node = topology.nodes[n];
    const auto told = computes.find(static_cast<int>(n));
    if (node.gpu_uuids.size() <= node.gpus.size() && told == computes.end()) continue;
    const std::size_t listed = node.gpus.size();
    const std::vector<int> numbers = number_unlisted(node);
    std::string added;
    for (const int number : numbers) added += std::to_string(number) + ",";
    if (told != computes.end())
      for (const auto& [gpu, compute] : told->second) added += " " + std::to_string(gpu) + "=" + compute;
    const auto [list, fresh] = known.try_emplace({node.gpus.data(), added}, node.gpus);
    if (fresh) {
      std::vector<Gpu>& gpus = list->second.edit();
      gpus.resize(listed + numbers.size());
      for (std::size_t i = 0; i < numbers.size(); ++i) gpus[listed + i].number = numbers[i];
      if (told != computes.end())
        for (const auto& [gpu, compute] : told->second) gpus[static_cast<std::size_t>(gpu)].compute = compute;
    }
    node.gpus = list->second;
  }
}

void assign_gpus(Topology& topology, const std::vector<RankFacts>& facts) {
  topology.device_kind = facts.front().device;
  std::map<std::pair<int, int>, int> ranks;
  Computes computes;
  for (RankPlace& place : topology.ranks) {
    const RankFacts& own = facts[static_cast<std::size_t>(place.rank)];
    Node& node = topology.nodes[static_cast<std::size_t>(place.node)];
    for (const std::string& uuid : own.unlisted_gpus)
      if (node.gpu_of(uuid) < 0) node.gpu_uuids.push_back(uuid);
    if (own.gpu.empty()) continue;
    place.gpu = node.gpu_of(own.gpu);
    if (place.gpu < 0)
      throw Error(ErrorKind::internal,
                  "rank " + std::to_string(place.rank) + " was given a GPU that it does not see");
    const auto at = static_cast<std::size_t>(place.gpu);
    if (!own.compute.empty() && (at >= node.gpus.size() || node.gpus[at].compute.empty()))
      computes[place.node].try_emplace(place.gpu, own.compute);
    place.gpu_free_bytes = own.gpu_free_bytes;
    place.gpu_sweep_rate = own.gpu_sweep_rate;
    if (!own.no_products.empty()) topology.no_products = own.no_products;
    ++ranks[{place.node, place.gpu}];
  }
  describe_unlisted(topology, computes);
  for (RankPlace& place : topology.ranks)
    place.shares_gpu = place.gpu >= 0 && ranks[{place.node, place.gpu}] > 1;
}

void gather_lacks(Topology& topology, const std::vector<RankFacts>& facts) {
  std::map<std::string, std::size_t> ranks;
  for (const RankFacts& own : facts)
    for (const auto& [library, why] : own.lacks) {
      ++ranks[library];
      topology.lacks.try_emplace(library, own.hostname + ": " + why);
    }
  for (const auto& [library, why] : facts.front().lacks)
    if (ranks[library] == facts.size()) topology.lacks[library] = why;
}

}  // namespace

RankFacts own_facts(int leader_rank, int local_rank, std::vector<std::string> unlisted_gpus) {
  return {host_name(),
          leader_rank,
          local_rank,
          allowed_cpus(),
          static_cast<int>(getpid()),
          ASSAY_VERSION,
          std::move(unlisted_gpus)};
}

std::string to_text(const RankFacts& facts) {
  Json json = Json::object();
  json["hostname"] = facts.hostname;
  json["leader_rank"] = facts.leader_rank;
  json["local_rank"] = facts.local_rank;
  json["mask"] = format_cpu_list(facts.mask);
  json["pid"] = facts.pid;
  json["version"] = facts.version;
  json["unlisted_gpus"] = facts.unlisted_gpus;
  json["device"] = facts.device;
  json["gpu"] = facts.gpu;
  json["gpu_free_bytes"] = facts.gpu_free_bytes;
  json["gpu_sweep_rate"] = facts.gpu_sweep_rate;
  json["no_products"] = facts.no_products;
  json["compute"] = facts.compute;
  json["lacks"] = facts.lacks;
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

RankFacts rank_facts_from(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    return {json.at("hostname").get<std::string>(),
            json.at("leader_rank").get<int>(),
            json.at("local_rank").get<int>(),
            parse_cpu_list(json.at("mask").get<std::string>()),
            json.at("pid").get<int>(),
            json.at("version").get<std::string>(),
            json.at("unlisted_gpus").get<std::vector<std::string>>(),
            json.at("device").get<std::string>(),
            json.at("gpu").get<std::string>(),
            json.at("gpu_free_bytes").get<double>(),
            json.at("gpu_sweep_rate").get<double>(),
            json.at("no_products").get<std::string>(),
            json.at("compute").get<std::string>(),
            json.at("lacks").get<std::map<std::string, std::string>>()};
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::internal, std::string("facts of a rank: ") + error.what());
  }
}

Topology discover(const std::vector<std::string>& node_json_by_rank,
                  const std::vector<std::string>& facts_by_rank, int self, int threads) {
  if (facts_by_rank.empty() || node_json_by_rank.size() != facts_by_rank.size()) {
    throw Error(ErrorKind::internal, "the ranks' descriptions are incomplete");
  }
  KnownCpus known;
  std::vector<RankFacts> facts;
  facts.reserve(facts_by_rank.size());
  for (const std::string& text : facts_by_rank) {
    facts.push_back(rank_facts_from(text));
    facts.back().mask = kept_once(facts.back().mask, known);
  }
  check_versions(facts);
  Topology topology;
  topology.self = self;
  std::map<int, int> node_of_leader;
  std::optional<NodeReader> others;
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const int leader = facts[rank].leader_rank;
    if (leader < 0 || leader >= static_cast<int>(facts.size())) {
      throw Error(ErrorKind::internal, "rank " + std::to_string(rank) + " names no leader of its node");
    }
    const auto [found, added] = node_of_leader.emplace(leader, static_cast<int>(topology.nodes.size()));
    if (added)
      topology.nodes.push_back(
          parse_node(node_json_by_rank[static_cast<std::size_t>(leader)], leader, others));
    RankPlace place;
    place.rank = static_cast<int>(rank);
    place.node = found->second;
    topology.ranks.push_back(std::move(place));
  }
  make_nodes_distinct(topology.nodes);
  topology.index_ranks();
  for (std::size_t node = 0; node < topology.nodes.size(); ++node)
    place_ranks(topology, facts, static_cast<int>(node), threads, known);
  topology.index_kinds();
  assign_gpus(topology, facts);
  gather_lacks(topology, facts);
  return topology;
}

Topology topology_of_hosts(const std::vector<std::string>& host_by_rank) {
  Topology topology;
  std::map<std::string, int> node_of;
  for (const std::string& host : host_by_rank) {
    if (host.empty()) continue;
    const auto [found, added] = node_of.emplace(host, static_cast<int>(topology.nodes.size()));
    if (added) {
      topology.nodes.emplace_back();
      topology.nodes.back().hostname = topology.nodes.back().id = host;
      topology.nodes.back().id_source = "hostname";
    }
    topology.ranks.emplace_back();
    topology.ranks.back().rank = static_cast<int>(topology.ranks.size()) - 1;
    topology.ranks.back().node = found->second;
  }
  topology.index_ranks();
  topology.index_kinds();
  return topology;
}

}  // namespace assay
