// SPDX-License-Identifier: Apache-2.0
// The network: who is named, at which level, out of sampled pairs.
#include <fmt/format.h>

#include <algorithm>

#include "base/random.hpp"
#include "curve.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"

namespace assay::operating {
namespace {

constexpr std::int64_t network_nodes = 1024, network_leaves = 32;

simulate::Spec network(std::uint64_t seed) {
  simulate::Spec spec;
  spec.nodes = network_nodes;
  spec.leaves = network_leaves;
  spec.metrics = simulate::pick_metrics({"p2p/bandwidth-uni*"});
  spec.seed = seed;
  return spec;
}

bool is_about_links(const results::Finding& f) { return f.severity != "INFO" && f.suite == "p2p"; }

/// Exact: whoever was made slow is named at its level, and nothing else is.
Count exact(const results::VerdictData& verdict, const std::function<bool(const results::Finding&)>& right) {
  bool found = false, wrong = false;
  for (const auto& f : verdict.findings) {
    if (!is_about_links(f)) continue;
    (right(f) ? found : wrong) = true;
  }
  return {found && !wrong ? std::size_t{1} : 0, 1};
}

Count nic_trial(double percent, std::uint64_t seed) {
  auto spec = network(seed);
  const auto victim = static_cast<std::int64_t>(RandomStream(seed, "operating/nic").below(0, network_nodes));
  spec.faults = {simulate::parse_fault(fmt::format("slow:node={},nic=0,percent={}", victim, percent))};
  const auto r = simulate::run(spec);
  // The only NIC and the only device of a node cannot be told from the node.
  const std::string name = simulate::Machine(spec).node_name(victim);
  return exact(*r.verdict, [&](const results::Finding& f) {
    return f.level != "link" && (f.name == name || f.name == name + "/nic0" || f.name == name + "/gpu0");
  });
}

Count leaf_trial(simulate::Spec spec, double percent) {
  const auto victim = static_cast<std::int64_t>(
      RandomStream(spec.seed, "operating/leaf").below(0, static_cast<std::uint64_t>(spec.leaves)));
  spec.faults = {simulate::parse_fault(fmt::format("slow:leaf={},percent={}", victim, percent))};
  const auto r = simulate::run(spec);
  const std::string name = fmt::format("L{}", victim);
  return exact(*r.verdict, [&](const results::Finding& f) {
    return f.level == "switch" && (f.name == name || f.name == "switch:" + name);
  });
}

/// Three to five switches.
simulate::Spec few_leaves(std::uint64_t seed) {
  auto spec = network(seed);
  const RandomStream draw(seed, "operating/few leaves");
  spec.leaves = 3 + static_cast<std::int64_t>(draw.below(0, 3));
  spec.nodes = spec.leaves * (5 + static_cast<std::int64_t>(draw.below(1, 20)));
  return spec;
}

/// Two to eight NICs a node, each on a rail of its own of one to three switches.
simulate::Spec rails(std::uint64_t seed, std::int64_t least_switches) {
  auto spec = network(seed);
  const RandomStream draw(seed, "operating/rails");
  spec.devices_per_node = spec.nics_per_node = std::int64_t{2} << draw.below(0, 3);
  const std::int64_t switches = least_switches + static_cast<std::int64_t>(draw.below(
                                                     1, static_cast<std::uint64_t>(4 - least_switches)));
  spec.leaves = switches * spec.nics_per_node;
  spec.nodes = 4 * switches + static_cast<std::int64_t>(draw.below(2, 29));
  return spec;
}

Count rail_nic_trial(std::uint64_t seed, double percent) {
  auto spec = rails(seed, 1);
  const RandomStream draw(seed, "operating/rail nic");
  const auto node = static_cast<std::int64_t>(draw.below(0, static_cast<std::uint64_t>(spec.nodes)));
  const auto nic = static_cast<std::int64_t>(draw.below(1, static_cast<std::uint64_t>(spec.nics_per_node)));
  spec.faults = {simulate::parse_fault(fmt::format("slow:node={},nic={},percent={}", node, nic, percent))};
  const auto r = simulate::run(spec);
  const std::string name = simulate::Machine(spec).node_name(node);
  return exact(*r.verdict, [&](const results::Finding& f) {
    return f.name == fmt::format("{}/nic{}", name, nic) || f.name == fmt::format("{}/gpu{}", name, nic);
  });
}

/// Of the two switches of a rail either may be at fault.
Count rail_leaf_trial(std::uint64_t seed, double percent) {
  auto spec = rails(seed, 2);
  const auto victim = static_cast<std::int64_t>(
      RandomStream(seed, "operating/leaf").below(0, static_cast<std::uint64_t>(spec.leaves)));
  spec.faults = {simulate::parse_fault(fmt::format("slow:leaf={},percent={}", victim, percent))};
  const auto r = simulate::run(spec);
  const std::int64_t other = (victim + spec.nics_per_node) % spec.leaves;
  const bool two = spec.leaves == 2 * spec.nics_per_node;
  const auto switch_name = [](std::int64_t leaf) { return fmt::format("switch:L{}", leaf); };
  const auto [first, second] = std::minmax({switch_name(victim), switch_name(other)});
  const std::string name = two ? first + " and " + second : switch_name(victim);
  return exact(*r.verdict, [&](const results::Finding& f) { return f.level == "switch" && f.name == name; });
}

/// Too few nodes for a spread, in all metrics of pairs.
simulate::Spec few_nodes(std::uint64_t seed) {
  auto spec = network(seed);
  spec.metrics = simulate::pick_metrics({"p2p"});
  spec.leaves = 0;
  spec.nodes = 4 + static_cast<std::int64_t>(RandomStream(seed, "operating/few nodes").below(0, 20));
  return spec;
}

Count warned_network_trial(const simulate::Spec& spec) {
  const auto r = simulate::run(spec);
  const auto& found = r.verdict->findings;
  return {std::any_of(found.begin(), found.end(), is_about_links) ? std::size_t{1} : 0, 1};
}

Count healthy_network_trial(const simulate::Spec& spec) {
  const auto r = simulate::run(spec);
  return {r.verdict->state == "FAIL" ? std::size_t{1} : 0, 1};
}

}  // namespace

std::vector<Cell> network_cells() {
  const std::string fleet = fmt::format("N={}, {} leaves", network_nodes, network_leaves);
  const auto nic = [](double percent) {
    return [percent](std::uint64_t seed) { return nic_trial(percent, seed); };
  };
  const std::string railed = "2 to 8 rails of 1 to 3 leaves", crossed = "2 to 8 rails of 2 or 3 leaves";
  const std::string few = "3 to 5 leaves of 5 to 24 nodes";
  const auto few_leaf = [](double percent) {
    return [percent](std::uint64_t seed) { return leaf_trial(few_leaves(seed), percent); };
  };
  return {{"false FAIL, healthy network", fleet, Aim::at_most, 0.01, 1, 100,
           [](std::uint64_t seed) { return healthy_network_trial(network(seed)); }},
          {"false FAIL, healthy network", few, Aim::at_most, 0.01, 1, 400,
           [](std::uint64_t seed) { return healthy_network_trial(few_leaves(seed)); }},
          {"false FAIL, healthy network", railed, Aim::at_most, 0.01, 1, 400,
           [](std::uint64_t seed) { return healthy_network_trial(rails(seed, 1)); }},
          {"WARN, healthy network", railed, Aim::at_most, 0.05, 1, 400,
           [](std::uint64_t seed) { return warned_network_trial(rails(seed, 1)); }},
          {"NIC slow by 30 %, exact", railed, Aim::at_least, 0.95, 1, 200,
           [](std::uint64_t seed) { return rail_nic_trial(seed, 30); }},
          {"NIC slow by 99.9 %, exact", railed, Aim::at_least, 0.95, 1, 200,
           [](std::uint64_t seed) { return rail_nic_trial(seed, 99.9); }},
          {"leaf slow by 10 %, exact", crossed, Aim::at_least, 0.95, 1, 200,
           [](std::uint64_t seed) { return rail_leaf_trial(seed, 10); }},
          {"leaf slow by 50 %, exact", crossed, Aim::at_least, 0.95, 1, 200,
           [](std::uint64_t seed) { return rail_leaf_trial(seed, 50); }},
          {"leaf slow by 99.9 %, exact", crossed, Aim::at_least, 0.95, 1, 200,
           [](std::uint64_t seed) { return rail_leaf_trial(seed, 99.9); }},
          {"NIC slow by 5 %, exact", fleet, Aim::at_least, 0.99, 1, 100, nic(5)},
          {"NIC slow by 3 %, exact", fleet, Aim::at_least, 0.85, 1, 100, nic(3)},
          {"leaf slow by 2 %, exact", fleet, Aim::at_least, 0.99, 1, 100,
           [](std::uint64_t seed) { return leaf_trial(network(seed), 2); }},
          {"WARN, healthy network", "4 to 23 nodes", Aim::at_most, 0.05, 1, 400,
           [](std::uint64_t seed) { return warned_network_trial(few_nodes(seed)); }},
          {"leaf slow by 10 %, exact", few, Aim::at_least, 0.95, 1, 200, few_leaf(10)},
          {"leaf slow by 50 %, exact", few, Aim::at_least, 0.95, 1, 200, few_leaf(50)},
          {"leaf slow by 90 %, exact", few, Aim::at_least, 0.95, 1, 200, few_leaf(90)},
          {"leaf slow by 99.9 %, exact", few, Aim::at_least, 0.95, 1, 200, few_leaf(99.9)}};
}

}  // namespace assay::operating
