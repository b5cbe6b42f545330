// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/pair_counts.hpp"

#include <algorithm>

#include "topology/fabric.hpp"

namespace assay::p2p {

PairCounts::PairCounts(const Topology& topology)
    : topology_(topology), rails_(rails(topology)), leaves_(leaf_of_nodes(topology)) {
  const auto placed = [](const Nic& nic) { return !nic.leaf.empty(); };
  for (std::size_t n = 0; n < topology.nodes.size() && alike_; ++n)
    alike_ = topology.rank_count(static_cast<int>(n)) == topology.rank_count(0) &&
             std::none_of(topology.nodes[n].nics.begin(), topology.nodes[n].nics.end(), placed);
}

std::size_t PairCounts::of(const Spec& spec, const RandomStream& stream, const Timing& timing) {
  if (!alike_ || spec.scope != Scope::cross || !spec.far.empty()) return drawn(spec, stream, timing);
  const auto [count, added] =
      known_.try_emplace({spec.nic.empty(), spec.meetings, timing.lanes, timing.rounds});
  if (added) count->second = drawn(spec, stream, timing);
  return count->second;
}

std::size_t PairCounts::drawn(const Spec& spec, const RandomStream& stream, const Timing& timing) const {
  return spec.nic.empty()
             ? pair_count(spec.scope, topology_, stream, timing.rounds, leaves_, timing.lanes, spec.meetings)
             : pair_count(schedule_of(spec, topology_, rails_, stream, timing));
}

}  // namespace assay::p2p
