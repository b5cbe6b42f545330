// SPDX-License-Identifier: Apache-2.0
// Plans of suites that communicate, over made topologies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "suite/suite.hpp"

namespace assay::comm_plan {

inline constexpr std::uint64_t gib = 1ULL << 30;

inline Topology topology_of(int nodes, int ranks_per_node, int cpus_per_node) {
  Topology topology;
  for (int node = 0; node < nodes; ++node) {
    topology.nodes.emplace_back();
    for (int local = 0; local < ranks_per_node; ++local) {
      RankPlace place;
      place.rank = topology.size();
      place.node = node;
      place.local_rank = local;
      place.local_size = ranks_per_node;
      place.cpus = {local % cpus_per_node};
      topology.ranks.push_back(place);
    }
  }
  return topology;
}

struct Planner {
  explicit Planner(const Suite& s, Level level) : suite(s) {
    config.level = level;
    for (const OptionSpec& spec : suite.options()) config.options.set(spec, {});
  }
  Planner& option(const std::string& name, const std::string& text) {
    for (const OptionSpec& spec : suite.options())
      if (spec.name == name) config.options.set(spec, {text});
    return *this;
  }
  std::vector<Case> plan(const Topology& topology, std::uint64_t memory = gib) const {
    return suite.plan({config, topology, memory, 7});
  }
  const Suite& suite;
  Config config;
};

inline const Case& find(const std::vector<Case>& cases, const std::string& name) {
  const auto it = std::find_if(cases.begin(), cases.end(), [&](const Case& c) { return c.name == name; });
  if (it == cases.end()) throw Error(ErrorKind::internal, "no case " + name);
  return *it;
}

}  // namespace assay::comm_plan
