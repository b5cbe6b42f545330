// SPDX-License-Identifier: Apache-2.0
// The text that ibnetdiscover prints: blocks of a switch or channel adapter, each with a line per connected
// port.
//
//   Switch  36 "S-0002c9020040b4a8"         # "MF0;leaf01:MSB7700/U1" enhanced port 0 lid 1 lmc 0
//   [17]    "H-e41d2d0300a12340"[1](e41d2d0300a12341)       # "node01 mlx5_0" lid 4 4xEDR
//   Ca      1 "H-e41d2d0300a12340"          # "node01 mlx5_0"
//   [1](e41d2d0300a12341)   "S-0002c9020040b4a8"[17]        # lid 4 lmc 0 "MF0;leaf01:MSB7700/U1" lid 1 4xEDR
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/error.hpp"
#include "topology/fabric_parts.hpp"

namespace assay::fabric {
namespace {

/// The text between the next two quotes, taken off `rest`; empty when there are none.
std::string_view quoted(std::string_view& rest) {
  const std::size_t open = rest.find('"');
  if (open == std::string_view::npos) return {};
  const std::size_t close = rest.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  const auto text = rest.substr(open + 1, close - open - 1);
  rest.remove_prefix(close + 1);
  return text;
}

/// The text between `open` and `close` at the start of `rest`, taken off it.
bool bracketed(std::string_view& rest, char open, char close, std::string_view& out) {
  if (rest.empty() || rest.front() != open) return false;
  const std::size_t end = rest.find(close);
  if (end == std::string_view::npos) return false;
  out = rest.substr(1, end - 1);
  rest.remove_prefix(end + 1);
  return true;
}

std::string without_blanks(std::string_view text) {
  std::string out(trimmed(text));
  for (char& c : out)
    if (c <= ' ' || c > '~' || c == ',') c = '_';
  return out.substr(0, fabric_name_limit);
}

/// "MF0;leaf01:MSB7700/U1" is leaf01; a description without a name gives the GUID.
std::string switch_name(std::string_view description, std::string_view id) {
  const std::size_t semicolon = description.find(';');
  if (semicolon != std::string_view::npos) {
    description.remove_prefix(semicolon + 1);
    description = description.substr(0, description.find(':'));
  }
  return description.empty() ? without_blanks(id) : without_blanks(description);
}

/// The 16 digits of "H-e41d2d0300a12340".
std::string node_guid(std::string_view id, const std::string& name, std::size_t line) {
  std::string digits = lower(id.starts_with("H-") ? id.substr(2) : id);
  if (digits.starts_with("0x")) digits.erase(0, 2);
  const bool hex =
      std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (digits.empty() || digits.size() > 16 || !hex)
    wrong(name, line, "the adapter's id is no GUID: " + std::string(id));
  return std::string(16 - digits.size(), '0') + digits;
}

struct Block {
  enum Kind { none, leaf, adapter, other } kind = none;
  std::string id, node, nic;
};

/// The first word names the node, the second the adapter, as the usual node descriptions have it.
void describe_adapter(std::string_view description, Block& block, const std::string& name, std::size_t line) {
  description = trimmed(description);
  const std::size_t blank = std::min(description.find_first_of(" \t"), description.size());
  block.node = without_blanks(description.substr(0, blank));
  block.nic = without_blanks(description.substr(blank));
  if (block.node.empty()) wrong(name, line, "the adapter has no description that names its node");
}

}  // namespace

Fabric read_ibnetdiscover(const std::vector<Line>& lines, const std::string& name) {
  Fabric fabric;
  fabric.format = "ibnetdiscover";
  std::map<std::string, std::string> leaf_names;          // by id
  std::map<std::string, int> uses;                        // of a name
  std::vector<std::pair<std::size_t, std::string>> ends;  // index of the port, id of its switch
  std::set<std::string> guids;
  Block block;
  for (const Line& line : lines) {
    std::string_view text = trimmed(line.text);
    if (text.empty() || text.front() == '#') continue;
    if (text.front() == '[') {
      if (block.kind == Block::none) wrong(name, line.number, "a port before the first Switch or Ca");
      if (block.kind != Block::adapter) continue;
      std::string_view port, leaf_port;
      std::string_view rest = text;
      if (!bracketed(rest, '[', ']', port)) wrong(name, line.number, "'[PORT]' is not closed");
      const std::string_view id = quoted(rest);
      if (id.empty() || !bracketed(rest, '[', ']', leaf_port))
        wrong(name, line.number, "\"PEER\"[PORT] is expected");
      if (!id.starts_with("S-")) continue;  // two adapters back to back
      FabricPort p;
      p.node = block.node;
      p.guid = node_guid(block.id, name, line.number) + checked_name(port, "port", name, line.number);
      if (!guids.insert(p.guid).second)
        wrong(name, line.number, "duplicate port " + std::string(port) + " of " + block.id);
      if (!block.nic.empty()) p.nic = block.nic + ":" + checked_name(port, "port", name, line.number);
      p.port = checked_name(leaf_port, "port", name, line.number);
      ends.emplace_back(fabric.ports.size(), std::string(id));
      fabric.ports.push_back(std::move(p));
      continue;
    }
    const std::size_t word_end = std::min(text.find_first_of(" \t"), text.size());
    const std::string_view word = text.substr(0, word_end);
    if (word != "Switch" && word != "Ca" && word != "Rt") continue;  // vendid=, switchguid= and the like
    std::string_view rest = text.substr(word_end);
    block = {};
    block.id = checked_name(quoted(rest), "\"ID\" of the block", name, line.number);
    const std::string_view description = quoted(rest);
    block.kind = word == "Switch" ? Block::leaf : word == "Ca" ? Block::adapter : Block::other;
    if (block.kind == Block::leaf) {
      const auto [it, fresh] = leaf_names.try_emplace(block.id, switch_name(description, block.id));
      if (!fresh) wrong(name, line.number, "duplicate switch " + block.id);
      ++uses[it->second];
    }
    if (block.kind == Block::adapter) describe_adapter(description, block, name, line.number);
  }
  for (const auto& [port, id] : ends) {
    const auto known = leaf_names.find(id);
    if (known == leaf_names.end()) {
      fabric.ports[port].leaf = without_blanks(id);
    } else {
      // Switches that call themselves alike are told apart by their ids.
      fabric.ports[port].leaf =
          uses[known->second] > 1 ? without_blanks(known->second + "~" + id) : known->second;
    }
  }
  if (fabric.ports.empty()) throw_usage(name + ": no adapter is connected to a switch");
  return fabric;
}

}  // namespace assay::fabric
