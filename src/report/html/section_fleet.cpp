// SPDX-License-Identifier: Apache-2.0
// The machine as a map of its nodes, by rack or switch where these are known.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/html/grouping.hpp"
#include "report/html/markup.hpp"
#include "report/html/sections.hpp"

namespace assay::report {
namespace {

struct Node {
  std::int32_t row = -1;
  std::string group;
  std::vector<std::int32_t> below;  ///< devices and NICs
};

/// Rack of a node, else the switch that its first NIC hangs on.
std::map<std::int32_t, std::string> groups_of(const Page& page) {
  std::map<std::int32_t, std::string> groups;
  const auto nic = page.in.results.inventory.find("nic");
  if (nic == page.in.results.inventory.end()) return groups;
  for (const char* column : {"rack", "switch"}) {
    const auto text = nic->second.text.find(column);
    if (text == nic->second.text.end()) continue;
    for (std::size_t i = 0; i < nic->second.entity.size(); ++i) {
      const auto node = page.in.judgement.entities.node(nic->second.entity[i]);
      if (node >= 0 && !text->second[i].empty()) groups.try_emplace(node, text->second[i]);
    }
    if (!groups.empty()) return groups;
  }
  return groups;
}

std::map<std::string, std::vector<Node>, ByNumber> nodes_by_group(const Page& page) {
  const auto& entities = page.in.results.entities;
  const auto groups = groups_of(page);
  std::map<std::int32_t, Node> nodes;
  for (std::size_t i = 0; i < entities.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    const auto node = page.in.judgement.entities.node(row);
    if (node < 0) continue;
    Node& n = nodes[node];
    n.row = node;
    if (entities[i].kind == "device" || entities[i].kind == "nic") n.below.push_back(row);
  }
  std::map<std::string, std::vector<Node>, ByNumber> out;
  for (auto& [row, node] : nodes) {
    const auto it = groups.find(row);
    out[it == groups.end() ? "" : it->second].push_back(std::move(node));
  }
  return out;
}

using States = std::vector<std::string>;

States states_of(const Page& page) {
  States states(page.in.results.entities.size(), "NOT_TESTED");
  for (const auto& s : page.in.verdict.entities)
    if (s.entity >= 0 && static_cast<std::size_t>(s.entity) < states.size())
      states[static_cast<std::size_t>(s.entity)] = s.state;
  return states;
}

/// A node as a link: its state, and below it a square for each device and a bar for each NIC.
/// Of a large fleet only the parts that did not pass: thousands of squares that say PASS keep a browser busy
/// and are not read.
std::string node_cell(const Page& page, const Node& node, const States& states, bool large) {
  const auto& name = page.in.results.entities[static_cast<std::size_t>(node.row)].name;
  const auto& state = states[static_cast<std::size_t>(node.row)];
  std::string parts;
  for (const auto row : node.below) {
    const auto& kind = page.in.results.entities[static_cast<std::size_t>(row)].kind;
    const auto& own = states[static_cast<std::size_t>(row)];
    if (large && (own == "PASS" || own == "NOT_TESTED")) continue;
    parts += fmt::format("<i class=\"{}{}\" data-row=\"{}\"></i>", kind == "nic" ? "n " : "",
                         state_class(own), row);
  }
  return fmt::format(
      "<a class=\"node {}\" href=\"#node/{}\" data-row=\"{}\" title=\"{} {}\"><b>{}</b><span>{}</span></a>",
      state_class(state), fragment(name), node.row, escaped(name), escaped(state), escaped(name), parts);
}

/// Why a part did not pass: the number of the finding, where its text is the reason, with its first words.
Cell because(const std::vector<results::Finding>& findings, const std::string& reason) {
  const auto it = std::ranges::find(findings, reason, &results::Finding::text);
  if (it == findings.end()) return cell(reason, "wide");
  const auto number = it - findings.begin() + 1;
  return markup_cell(fmt::format("<a href=\"#finding/{0}\">finding {0}</a>: {1}{2}{3}", number,
                                 escaped(it->name), it->kind.empty() ? "" : " ", escaped(it->kind)),
                     "wide");
}

}  // namespace

std::string fleet_section(const Page& page) {
  const auto groups = nodes_by_group(page);
  if (groups.empty()) return none("The file has no nodes.");
  const States states = states_of(page);
  std::size_t parts = 0;
  for (const auto& [name, nodes] : groups)
    for (const Node& node : nodes) parts += node.below.size();
  const bool large = parts > 4096;
  std::string out =
      std::string("<p>Each tile is a node; squares are its devices, bars its NICs") +
      (large ? ", of those that are neither PASS nor untested" : "") +
      ". Colour is the state.<span class=\"js\"> Choose a metric to colour by its deficit "
      "against the fleet's median.</span></p>\n<div class=\"tools js\" id=\"fleet-tools\"></div>\n";
  for (const auto& [name, nodes] : groups) {
    if (!name.empty() || groups.size() > 1)
      out += "<h3>" + escaped(name.empty() ? "no rack or switch known" : name) + "</h3>";
    out += "<div class=\"fleet\">";
    for (const Node& node : nodes) out += node_cell(page, node, states, large) + "\n";
    out += "</div>\n";
  }
  out += "<p class=\"legend\">";
  for (const char* state : {"PASS", "WARN", "FAIL", "INCONCLUSIVE", "NOT_TESTED"})
    out += state_chip(state) + " ";
  out += "</p>\n<div id=\"node-detail\" aria-live=\"polite\"></div>\n";
  std::vector<std::vector<Cell>> rows;
  for (const char* state : {"FAIL", "INCONCLUSIVE", "WARN"}) {
    for (const auto& s : page.in.verdict.entities) {
      if (s.state != state) continue;
      const auto& e = page.in.results.entities[static_cast<std::size_t>(s.entity)];
      rows.push_back({markup_cell(part_link(e.name)), cell(e.kind),
                      markup_cell(state_chip(s.state), "nowrap"), because(page.in.verdict.findings, s.reason),
                      cell(e.id, "dim")});
    }
  }
  if (rows.empty()) return out + "<p>No part is in any other state than PASS or not tested.</p>\n";
  return out + table("Parts that did not pass", {{"part"}, {"kind"}, {"state"}, {"because", "wide"}, {"id"}},
                     rows, 12);
}

}  // namespace assay::report
