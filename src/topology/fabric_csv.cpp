// SPDX-License-Identifier: Apache-2.0
// Topology as CSV, and as Slurm's topology.conf.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/hostlist.hpp"
#include "topology/fabric_parts.hpp"

namespace assay::fabric {
namespace {

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const std::size_t comma = std::min(line.find(','), line.size());
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == line.size()) return cells;
    line.remove_prefix(comma + 1);
  }
}

constexpr std::array columns = {"node", "nic", "switch", "port", "rack", "rail"};
enum Column : std::size_t { node, nic, leaf, port, rack, rail };

/// Which cell holds which column; npos where the file lacks it.
std::array<std::size_t, columns.size()> header_of(const Line& line, const std::string& name) {
  std::array<std::size_t, columns.size()> at{};
  at.fill(std::string::npos);
  const auto cells = cells_of(line.text);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = lower(cells[i]);
    const auto column = std::find(columns.begin(), columns.end(), cell);
    if (column == columns.end())
      wrong(name, line.number,
            "unknown column '" + cell.substr(0, 40) +
                "' (a header is needed: node,nic,switch,port,rack[,rail])");
    auto& place = at[static_cast<std::size_t>(column - columns.begin())];
    if (place != std::string::npos) wrong(name, line.number, "column '" + cell + "' twice");
    place = i;
  }
  for (const Column needed : {node, nic, leaf})
    if (at[needed] == std::string::npos)
      wrong(name, line.number, std::string("no column '") + columns[needed] + "'");
  return at;
}

/// Lines without comments and with continued ones joined, as Slurm reads them.
struct Joined {
  std::size_t number = 0;
  std::string text;
};
std::vector<Joined> slurm_lines(const std::vector<Line>& lines) {
  std::vector<Joined> joined;
  bool more = false;
  for (const Line& line : lines) {
    std::string_view text = trimmed(line.text.substr(0, line.text.find('#')));
    const bool continued = text.ends_with('\\');
    if (continued) text.remove_suffix(1);
    if (more)
      joined.back().text.append(text);
    else
      joined.push_back({line.number, std::string(text)});
    more = continued;
  }
  std::erase_if(joined, [](const Joined& j) { return trimmed(j.text).empty(); });
  return joined;
}

struct Entry {
  std::string leaf, nodes, switches;
};

Entry slurm_entry(const Joined& line, const std::string& name) {
  Entry entry;
  std::string_view rest = line.text;
  while (!(rest = trimmed(rest)).empty()) {
    const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      wrong(name, line.number, std::string(word.substr(0, 40)) + " is no KEY=VALUE");
    const std::string key = lower(word.substr(0, equals));
    const std::string_view value = word.substr(equals + 1);
    if (key == "switchname") {
      entry.leaf = checked_name(value, "switch name", name, line.number);
    } else if (key == "nodes") {
      entry.nodes = std::string(value);
    } else if (key == "switches") {
      entry.switches = std::string(value);
    } else if (key == "blockname" || key == "blocksizes") {
      wrong(name, line.number, "block topologies name no switches; SwitchName= is needed");
    } else if (key != "linkspeed") {
      wrong(name, line.number, "unknown key '" + key.substr(0, 40) + "'");
    }
  }
  if (entry.leaf.empty()) wrong(name, line.number, "no SwitchName=");
  if (entry.nodes.empty() && entry.switches.empty()) wrong(name, line.number, "neither Nodes= nor Switches=");
  return entry;
}

std::vector<std::string> expanded(const std::string& list, const std::string& name, std::size_t line) {
  try {
    return expand_hostlist(list);
  } catch (const Error& error) {
    wrong(name, line, error.what());
  }
}

}  // namespace

Fabric read_csv(const std::vector<Line>& lines, const std::string& name) {
  Fabric fabric;
  fabric.format = "csv";
  std::array<std::size_t, columns.size()> at{};
  bool header = false;
  std::set<std::pair<std::string, std::string>> known;
  for (const Line& line : lines) {
    const auto content = trimmed(line.text);
    if (content.empty() || content.front() == '#') continue;
    if (!header) {
      at = header_of({line.number, content}, name);
      header = true;
      continue;
    }
    const auto cells = cells_of(content);
    const auto cell = [&](Column c) { return at[c] < cells.size() ? cells[at[c]] : std::string_view(); };
    const std::size_t most = *std::max_element(at.begin(), at.end(), [](auto a, auto b) {
      return (a == std::string::npos ? 0 : a) < (b == std::string::npos ? 0 : b);
    });
    if (cells.size() > most + 1) wrong(name, line.number, "more cells than the header has columns");
    FabricPort p;
    p.node = checked_name(cell(node), "node", name, line.number);
    if (!cell(nic).empty() && cell(nic) != "*") p.nic = checked_name(cell(nic), "NIC", name, line.number);
    p.leaf = checked_name(cell(leaf), "switch", name, line.number);
    if (!cell(port).empty()) p.port = checked_name(cell(port), "port", name, line.number);
    if (!cell(rack).empty()) p.rack = checked_name(cell(rack), "rack", name, line.number);
    if (!cell(rail).empty()) p.rail = checked_name(cell(rail), "rail", name, line.number);
    if (!known.insert({p.node, p.nic}).second)
      wrong(name, line.number, "duplicate " + p.node + "/" + (p.nic.empty() ? "*" : p.nic));
    fabric.ports.push_back(std::move(p));
  }
  if (fabric.ports.empty()) throw_usage(name + ": a header and no NIC");
  return fabric;
}

Fabric read_slurm(const std::vector<Line>& lines, const std::string& name) {
  Fabric fabric;
  fabric.format = "slurm";
  std::map<std::string, std::string> leaf_of;
  std::set<std::string> switches;
  std::size_t names = 0;
  for (const Joined& line : slurm_lines(lines)) {
    const Entry entry = slurm_entry(line, name);
    if (!switches.insert(entry.leaf).second) wrong(name, line.number, "duplicate switch " + entry.leaf);
    const auto nodes = expanded(entry.nodes, name, line.number),
               below = expanded(entry.switches, name, line.number);
    // Each line may stand for many names; all of them together have the same bound.
    names += nodes.size() + below.size();
    if (names > hostlist_limit)
      wrong(name, line.number, "more than " + std::to_string(hostlist_limit) + " names");
    for (const auto& host : nodes) {
      const std::string checked = checked_name(host, "node", name, line.number);
      const auto [it, fresh] = leaf_of.try_emplace(checked, entry.leaf);
      if (!fresh) wrong(name, line.number, checked + " is connected to switch " + it->second + " already");
      fabric.ports.push_back({checked, "", "", entry.leaf, "", "", ""});
    }
    for (const auto& child : below)
      fabric.uplinks.emplace_back(checked_name(child, "switch", name, line.number), entry.leaf);
  }
  if (fabric.ports.empty()) throw_usage(name + ": no switch has nodes");
  return fabric;
}

}  // namespace assay::fabric
