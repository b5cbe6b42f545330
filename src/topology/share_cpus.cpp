// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "topology/topology.hpp"

namespace assay {
namespace {

using Cores = std::vector<std::vector<int>>;

// The hardware threads of a mask by physical core, in the machine's order, so that neighbours share caches
// and memory.
Cores cores_of(const Node& node, const std::vector<int>& mask) {
  std::set<int> left(mask.begin(), mask.end());
  Cores cores;
  for (const auto& core : node.core_pus) {
    std::vector<int> pus;
    for (const int pu : core) {
      if (left.erase(pu) > 0) pus.push_back(pu);
    }
    if (!pus.empty()) cores.push_back(std::move(pus));
  }
  for (const int pu : left) cores.push_back({pu});  // CPUs the topology does not know count as cores
  return cores;
}

// The cores of member `i` of `n` equal ranks. With more ranks than cores each gets one, and hardware threads
// of its own as long as there are enough.
Cores slice(const Cores& cores, std::size_t i, std::size_t n) {
  if (cores.empty()) return {};
  if (n <= cores.size()) {
    const auto first = cores.begin() + static_cast<std::ptrdiff_t>(i * cores.size() / n);
    const auto last = cores.begin() + static_cast<std::ptrdiff_t>((i + 1) * cores.size() / n);
    return {first, last};
  }
  const std::size_t core = i * cores.size() / n;
  std::size_t first_on_core = i;
  while (first_on_core > 0 && (first_on_core - 1) * cores.size() / n == core) --first_on_core;
  const auto& pus = cores[core];
  return {{pus[(i - first_on_core) % pus.size()]}};
}

// One thread per core; beyond that the cores' further hardware threads, then what else the mask holds, then
// again.
std::vector<int> pick(const Cores& own, const Cores& mask, std::size_t threads) {
  std::vector<int> order;
  for (const Cores* from : {&own, &mask}) {
    std::size_t deepest = 0;
    for (const auto& core : *from) deepest = std::max(deepest, core.size());
    for (std::size_t depth = 0; depth < deepest; ++depth) {
      for (const auto& core : *from) {
        if (depth < core.size() && std::find(order.begin(), order.end(), core[depth]) == order.end())
          order.push_back(core[depth]);
      }
    }
  }
  std::vector<int> cpus;
  for (std::size_t i = 0; i < threads && !order.empty(); ++i) cpus.push_back(order[i % order.size()]);
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

// A share is shared when another thread, of this rank or another, uses one of its cores.
void mark_shared(const Node& node, std::vector<Share>& shares) {
  std::map<int, int> core_of;
  for (std::size_t core = 0; core < node.core_pus.size(); ++core) {
    for (const int pu : node.core_pus[core]) core_of[pu] = static_cast<int>(core);
  }
  const auto key = [&core_of](int cpu) {
    const auto found = core_of.find(cpu);
    return found == core_of.end() ? -1 - cpu : found->second;
  };
  std::map<int, std::set<std::size_t>> users;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    for (const int cpu : shares[rank].cpus) users[key(cpu)].insert(rank);
  }
  for (auto& share : shares) {
    const std::set<int> distinct(share.cpus.begin(), share.cpus.end());
    share.shared = distinct.size() < share.cpus.size() ||
                   std::any_of(share.cpus.begin(), share.cpus.end(),
                               [&](int cpu) { return users[key(cpu)].size() > 1; });
  }
}

}  // namespace

std::vector<Share> share_cpus(const Node& node, const std::vector<std::vector<int>>& masks, int threads) {
  std::map<std::vector<int>, std::vector<std::size_t>> groups;
  for (std::size_t rank = 0; rank < masks.size(); ++rank) groups[masks[rank]].push_back(rank);
  std::size_t cap = 0;  // threads of a rank under the quota; 0 = no quota
  if (node.cpu_quota_cores > 0) {
    cap = static_cast<std::size_t>(
        std::max(1.0, std::floor(node.cpu_quota_cores / static_cast<double>(masks.size()) + 1e-9)));
  }
  std::vector<Share> shares(masks.size());
  std::size_t total = 0;
  for (const auto& [mask, members] : groups) {
    const Cores cores = cores_of(node, mask);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Cores own = slice(cores, i, members.size());
      std::size_t wanted = own.size();
      if (cap > 0) wanted = std::min(wanted, cap);
      if (threads > 0) wanted = static_cast<std::size_t>(threads);
      shares[members[i]].cpus = pick(own, cores, wanted);
      total += shares[members[i]].cpus.size();
    }
  }
  mark_shared(node, shares);
  // Under a quota smaller than the threads all of them take turns, on whatever cores.
  if (static_cast<double>(total) > node.cpu_quota_cores + 1e-9) {
    for (auto& share : shares) share.shared = true;
  }
  return shares;
}

}  // namespace assay
