// SPDX-License-Identifier: Apache-2.0
#include "cli/list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/system.hpp"
#include "cli/build_info.hpp"
#include "config/suggest.hpp"
#include "topology/topology.hpp"

namespace assay::cli {
namespace {

constexpr int shown_ranks = 2;  ///< enough for a pair

std::string list_suites(const Suites& suites) {
  std::string out = "Suites\n";
  for (const auto& suite : suites) {
    if (!suite->hidden())
      out += wrapped(fmt::format("  {:<12}", suite->name()), std::string(suite->summary()), 15);
  }
  return out;
}

/// Named as in a file of limits: SUITE/CASE:METRIC.
std::string list_metrics(const Suites& suites) {
  std::string out = fmt::format("Metrics\n  {:<58} {:<8} {}\n", "metric", "unit", "better");
  for (const auto& suite : suites) {
    if (suite->hidden()) continue;
    for (const results::MetricSpec& m : suite->metrics()) {
      const std::string name = fmt::format("{}/{}:{}", suite->name(), m.cases, m.name);
      out += fmt::format("  {:<58} {:<8} {}\n", name, m.unit, to_string(m.better));
      out += wrapped("", m.title, 6);
    }
  }
  return out;
}

std::string list_options(const std::vector<CommandSpec>& commands) {
  return "Options of run and plan\n" + options_help(commands.front());
}

std::string list_components(const char* title, const std::vector<Component>& components) {
  std::string out = std::string(title) + "\n";
  for (const Component& c : components) out += wrapped(fmt::format("  {:<12}", c.name), c.detail, 15);
  return out;
}

/// This node with a few ranks on it, as `run` would see it under a launcher.
Topology local_topology() {
  Topology topology;
  topology.nodes.push_back(probe_node());
  const std::vector<std::vector<int>> masks(shown_ranks, allowed_cpus());
  const std::vector<Share> shares = share_cpus(topology.nodes.front(), masks, 0);
  for (int rank = 0; rank < shown_ranks; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    RankPlace place;
    place.rank = place.local_rank = rank;
    place.local_size = shown_ranks;
    place.mask = masks[i];
    place.cpus = shares[i].cpus;
    place.threads = std::max(1, static_cast<int>(shares[i].cpus.size()));
    place.shares_cpus = shares[i].shared;
    place.numa = topology.nodes.front().numa_of(place.cpus);
    topology.ranks.push_back(std::move(place));
  }
  return topology;
}

/// Every case with the levels that hold it; a star where the level requires it, a plus where it is spare.
std::string list_cases(const std::vector<CommandSpec>& commands, const Suites& suites) {
  const Topology topology = local_topology();
  const std::uint64_t memory = topology.nodes.front().memory_available_bytes / 2 / shown_ranks;
  std::string out =
      "Cases, with the levels that hold them (* = required there; + = self-test, only if\n"
      "--cases or an option leaves out all other cases that contain it)\n";
  for (const auto& suite : suites) {
    if (suite->hidden()) continue;
    std::vector<std::string> order;
    std::map<std::string, std::string> levels;
    for (const char* level : {"smoke", "quick", "standard", "extended"}) {
      Parsed parsed;
      parsed.command = &commands.front();
      parsed.texts["level"] = {level};
      const Config config = make_config(option_values(parsed), {std::string(suite->name())}, {});
      for (const Case& c : suite->plan({config, topology, memory, 1})) {
        if (!levels.contains(c.name)) order.push_back(c.name);
        levels[c.name] += fmt::format(" {}{}", level, c.spare ? "+" : c.required ? "*" : "");
      }
    }
    for (const std::string& name : order) {
      out += fmt::format("  {:<52}{}\n", fmt::format("{}/{}", suite->name(), name), levels[name]);
    }
  }
  return out;
}

}  // namespace

std::string list_text(const std::vector<CommandSpec>& commands, const Suites& suites,
                      const std::string& what) {
  const std::vector<std::string> parts{"suites", "metrics", "options", "devices", "transports", "cases"};
  if (!what.empty() && std::ranges::find(parts, what) == parts.end()) {
    throw_usage(fmt::format("list: '{}' is not one of {}", what, join(parts)));
  }
  std::vector<std::string> texts;
  for (const std::string& part : parts) {
    if (!what.empty() && what != part) continue;
    if (part == "suites") texts.push_back(list_suites(suites));
    if (part == "cases") texts.push_back(list_cases(commands, suites));
    if (part == "metrics") texts.push_back(list_metrics(suites));
    if (part == "options") texts.push_back(list_options(commands));
    if (part == "devices") texts.push_back(list_components("Devices", device_components()));
    if (part == "transports") texts.push_back(list_components("Transports", transport_components()));
    if (part == "transports" && what.empty())
      texts.push_back(list_components("Reading", reading_components()));
  }
  return join(texts, "\n");
}

}  // namespace assay::cli
