// SPDX-License-Identifier: Apache-2.0
// Collectives on a synthetic cluster: all ranks are as fast as the slowest of the group.
#include <algorithm>
#include <cmath>
#include <set>

#include "simulate/cases.hpp"

namespace assay::simulate {
namespace {

using results::CaseData;
using results::Metric;

/// What each node can give to a collective of each rail (local ranks of one number; all are one rail without
/// rails), as the log of a rate.
std::vector<std::vector<double>> node_rates(const Machine& machine, const MetricModel& metric,
                                            std::int64_t rails, std::int32_t sample) {
  const std::int64_t devices = machine.spec().devices_per_node;
  std::vector<std::vector<double>> rates(static_cast<std::size_t>(machine.nodes()));
  for (std::int64_t n = 0; n < machine.nodes(); ++n)
    for (std::int64_t rail = 0; rail < rails; ++rail) {
      double least = 0;
      const auto take_nic = [&](std::int64_t nic) {
        for (const bool sends : {false, true})
          least = std::min(least, machine.nic_capacity(metric, nic, sends, sample));
      };
      const std::int64_t nics = machine.spec().nics_per_node;
      for (std::int64_t k = 0; rails == 1 && k < nics; ++k) take_nic(n * nics + k);
      for (std::int64_t d = rail; d < devices; d += rails) {
        if (rails > 1) take_nic(machine.nic_of_device(n * devices + d));
        least = std::min(least, machine.log_in_collective(metric, n * devices + d, sample));
      }
      rates[static_cast<std::size_t>(n)].push_back(least);
    }
  return rates;
}

/// What leaves take from a group that spans several of them.
double leaf_rate(const Machine& machine, const MetricModel& metric, const std::vector<std::int64_t>& members,
                 std::int32_t sample) {
  if (machine.spec().leaves == 0) return 0;
  const std::int64_t nics = machine.spec().nics_per_node;
  std::set<std::int64_t> leaves;
  for (const auto node : members)
    for (std::int64_t k = 0; k < nics; ++k) leaves.insert(machine.leaf_of_nic(node * nics + k));
  double least = 0;
  for (const std::int64_t leaf : leaves)
    for (const bool sends : {false, true})
      if (leaves.size() > 1) least = std::min(least, machine.leaf_capacity(metric, leaf, sends, sample));
  return least;
}

struct Drawn {
  std::vector<int> group;                        ///< of every node
  std::vector<std::vector<std::int64_t>> nodes;  ///< of every group
};

/// All nodes, their halves, quarters, ...: neighbours together.
std::vector<int> equal_parts(const Machine& machine, std::size_t draw) {
  std::vector<int> part;
  for (std::int64_t n = 0; n < machine.nodes(); ++n)
    part.push_back(static_cast<int>((n << draw) / machine.nodes()));
  return part;
}

Drawn draw(const Machine& machine, bool groups, bool halves, const RandomStream& stream, std::size_t number) {
  Drawn d;
  d.group = groups ? random_groups(static_cast<std::size_t>(machine.nodes()), group_nodes, stream,
                                   static_cast<int>(number))
                   : equal_parts(machine, halves ? number : 0);
  d.nodes.resize(static_cast<std::size_t>(1 + *std::max_element(d.group.begin(), d.group.end())));
  for (std::size_t n = 0; n < d.group.size(); ++n)
    if (d.group[n] >= 0)
      d.nodes[static_cast<std::size_t>(d.group[n])].push_back(static_cast<std::int64_t>(n));
  return d;
}

}  // namespace

CaseData measure_collective(const Machine& machine, const MetricModel& metric, const CaseSchedule& schedule) {
  CaseData c = case_of(metric, schedule);
  const bool groups = metric.stage == "groups";
  if (groups && machine.nodes() < static_cast<std::int64_t>(2 * group_nodes)) return c;
  const bool halves = schedule.variant == "halves";
  const auto rails = groups ? metric.parameters.value("rails", std::int64_t{1}) : std::int64_t{1};
  std::size_t draws = groups ? machine.spec().group_draws : 1;
  if (halves) {
    c.parameters["variant"] = schedule.variant;
    c.case_key += "-" + schedule.variant;
    while (machine.nodes() >> draws >= 2) ++draws;
  }
  const RandomStream stream = machine.run_stream(metric.suite + "/" + schedule.name + ":" + metric.metric);
  const Draw noise(stream.child("noise"));
  const auto devices = static_cast<std::size_t>(machine.devices()),
             per_draw = static_cast<std::size_t>(schedule.samples);
  const std::size_t width = draws * per_draw;
  for (std::size_t d = 0; d < devices; ++d)
    c.entity.push_back(machine.device_row(static_cast<std::int64_t>(d)));
  for (std::size_t s = 0; s < width; ++s) {
    c.sample.push_back(static_cast<std::int32_t>(s));
    c.block.push_back(static_cast<std::int32_t>(s / per_draw));
  }
  Metric m{metric.metric, metric.unit, metric.better,  true,        results::Role::metric,
           true,          {},          metric.judging, metric.title};
  Metric group{"group", "count", results::Better::none, false, results::Role::covariate, true, {}};
  m.values.assign(devices * width, results::not_taken);
  group.values = m.values;
  c.t = m.values;
  c.count.assign(devices, 0);
  for (std::size_t number = 0; number < draws; ++number) {
    const Drawn drawn = draw(machine, groups, halves, stream, number);
    for (std::size_t i = 0; i < per_draw; ++i) {
      const std::size_t s = number * per_draw + i;
      const auto rates = node_rates(machine, metric, rails, static_cast<std::int32_t>(s));
      for (std::size_t g = 0; g < drawn.nodes.size() * static_cast<std::size_t>(rails); ++g) {
        const std::size_t rail = g % static_cast<std::size_t>(rails);
        const auto& nodes = drawn.nodes[g / static_cast<std::size_t>(rails)];
        double y = leaf_rate(machine, metric, nodes, static_cast<std::int32_t>(s));
        for (const auto n : nodes) y = std::min(y, rates[static_cast<std::size_t>(n)][rail]);
        // Traffic of others lasts longer than a sample: a group that meets it has it in the whole draw.
        const std::uint64_t at = std::uint64_t{1} << 40 | number << 24 | g;
        const bool congested = noise.uniform(at, 2) < machine.spec().spike_share;
        const double spike = congested ? spike_mean * noise.exponential(at, 3) : 0;
        y += machine.spec().link_cv * noise.normal(at) - spike +
             machine.spec().within_cv * noise.normal(s << 24 | g);
        for (const auto n : nodes)
          for (auto d = static_cast<std::int64_t>(rail); d < machine.spec().devices_per_node; d += rails) {
            const auto e = static_cast<std::size_t>(n * machine.spec().devices_per_node + d);
            const std::size_t to = e * width + static_cast<std::size_t>(c.count[e]++);
            m.values[to] = metric.typical * std::exp(y);
            group.values[to] = 1e6 * static_cast<double>(number) + static_cast<double>(g);
            c.t[to] = schedule.start_s + sample_s * static_cast<double>(s);
          }
      }
    }
  }
  c.shares.wall_s = c.shares.timed_s = sample_s * static_cast<double>(width);
  c.metrics.push_back(std::move(m));
  if (groups || halves) c.metrics.push_back(std::move(group));
  return c;
}

}  // namespace assay::simulate
