// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.hpp"
#include "topology/fabric_parts.hpp"

namespace assay {
namespace fabric {
namespace {

std::string hex_digits(const std::string& text) {
  std::string digits;
  for (const char c : text)
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0)
      digits += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return digits;
}

std::string without_domain(const std::string& host) { return host.substr(0, host.find('.')); }

bool matches(const FabricPort& port, const Nic& nic, const std::string& id) {
  if (nic.kind == "loopback") return false;
  if (!port.guid.empty() && hex_digits(id) == port.guid) return true;
  // Of two adapters that have other names by now, only the GUID says which is meant.
  if (!port.guid.empty() && nic.id_source == "guid") return false;
  return port.nic.empty() ? port.guid.empty() : port.nic == nic.name;
}

}  // namespace

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({number, line});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

void wrong(const std::string& name, std::size_t line, const std::string& what) {
  throw_usage(name + ":" + std::to_string(line) + ": " + what);
}

std::string checked_name(std::string_view text, const char* what, const std::string& file, std::size_t line) {
  if (text.empty()) wrong(file, line, std::string("no ") + what);
  if (text.size() > fabric_name_limit)
    wrong(file, line,
          std::string(what) + " is longer than " + std::to_string(fabric_name_limit) + " characters");
  for (const char c : text)
    if (c <= ' ' || c > '~' || c == '"' || c == ',')
      wrong(file, line, std::string(what) + " holds a blank, quote or character that is not printable ASCII");
  return std::string(text);
}

}  // namespace fabric

Fabric parse_fabric(const std::string& text, const std::string& name) {
  if (text.size() > fabric_file_limit) throw_usage(name + ": larger than 64 MiB: no topology file");
  const auto lines = fabric::lines_of(text);
  for (const auto& line : lines) {
    const auto content = fabric::trimmed(line.text);
    if (content.empty()) continue;
    if (content.front() == '#') {
      if (content.find("Topology file: generated") != std::string_view::npos)
        return fabric::read_ibnetdiscover(lines, name);
      continue;
    }
    const std::string start = fabric::lower(content.substr(0, 64));
    if (start.starts_with("switchname=") || start.starts_with("blockname="))
      return fabric::read_slurm(lines, name);
    if (start.starts_with("vendid=") || start.starts_with("switch\t") || start.starts_with("ca\t"))
      return fabric::read_ibnetdiscover(lines, name);
    return fabric::read_csv(lines, name);
  }
  throw_usage(
      name +
      ": empty: neither CSV (node,nic,switch,port,rack), Slurm topology.conf nor ibnetdiscover output");
}

FabricCoverage apply_fabric(const Fabric& fabric, Topology& topology) {
  std::unordered_map<std::string, std::vector<const FabricPort*>> by_node, by_short;
  for (const auto& port : fabric.ports) {
    by_node[port.node].push_back(&port);
    by_short[fabric::without_domain(port.node)].push_back(&port);
  }
  FabricCoverage coverage;
  for (auto& node : topology.nodes) {
    auto at = by_node.find(node.hostname);
    if (at == by_node.end()) {
      at = by_short.find(fabric::without_domain(node.hostname));
      if (at == by_short.end()) {
        coverage.unknown_nodes.push_back(node.hostname);
        continue;
      }
    }
    std::size_t placed = 0;
    const bool hardware = std::any_of(node.nics.begin(), node.nics.end(), [](const Nic& nic) {
      return !nic.virtual_device && nic.kind != "loopback";
    });
    for (const FabricPort* port : at->second) {
      bool found = false;
      for (std::size_t i = 0; i < node.nics.size(); ++i) {
        if (!fabric::matches(*port, node.nics[i], node.id_of(node.nics[i]))) continue;
        // A row that names no NIC is about those with a wire, not about bridges of containers.
        if (port->nic.empty() && port->guid.empty() && hardware && node.nics[i].virtual_device) continue;
        Nic& nic = node.nics.edit()[i];
        found = true;
        placed += nic.leaf.empty() && !port->leaf.empty() ? 1 : 0;
        nic.leaf = port->leaf;
        nic.leaf_port = port->port;
        nic.rack = port->rack;
        nic.rail = port->rail;
      }
      if (!found)
        coverage.absent_nics.push_back(node.hostname + "/" + (port->nic.empty() ? port->guid : port->nic));
    }
    coverage.nics += placed;
    coverage.nodes += placed > 0 ? 1 : 0;
  }
  return coverage;
}

std::vector<int> leaf_of_nodes(const Topology& topology) {
  std::map<std::string, int> numbers;
  for (const auto& node : topology.nodes)
    for (const auto& nic : node.nics)
      if (!nic.leaf.empty()) numbers[nic.leaf] = 0;
  int next = 0;
  for (auto& [leaf, number] : numbers) number = next++;
  std::vector<int> leaves;
  for (const auto& node : topology.nodes) {
    std::set<std::string> own;
    for (const auto& nic : node.nics)
      if (!nic.leaf.empty()) own.insert(nic.leaf);
    leaves.push_back(own.size() == 1 ? numbers[*own.begin()] : -1);
  }
  return leaves;
}

std::string describe_fabric(const Fabric& fabric, const FabricCoverage& coverage, const Topology& topology) {
  std::set<std::string> leaves, racks, rails;
  for (const auto& node : topology.nodes)
    for (const auto& nic : node.nics) {
      if (!nic.leaf.empty()) leaves.insert(nic.leaf);
      if (!nic.rack.empty()) racks.insert(nic.rack);
      if (!nic.rail.empty()) rails.insert(nic.rail);
    }
  const auto count = [](std::size_t n, const std::string& what, const char* plural) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : plural);
  };
  std::string text = "topology (" + fabric.format + "): " + std::to_string(coverage.nodes) + " of " +
                     count(topology.nodes.size(), "node", "s") + ", " + count(coverage.nics, "NIC", "s") +
                     ", " + count(leaves.size(), "switch", "es") + ", " + count(racks.size(), "rack", "s");
  if (!rails.empty()) text += ", " + count(rails.size(), "rail", "s");
  const auto list = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    text += std::string("\n  ") + what + ": ";
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 8); ++i)
      text += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > 8) text += " and " + std::to_string(names.size() - 8) + " more";
  };
  list("nodes that the file does not have", coverage.unknown_nodes);
  list("NICs of the file that are not there", coverage.absent_nics);
  return text + "\n";
}

}  // namespace assay
