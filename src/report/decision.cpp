// SPDX-License-Identifier: Apache-2.0
#include "report/decision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "report/layout.hpp"
#include "report/link_ends.hpp"

namespace assay::report {
namespace {

constexpr std::size_t parts_named = 12, faults_named = 4;

/// "slow" of kind slow_at_clock.
std::string adjective(const results::Finding& f) {
  static const std::map<std::string_view, const char*> words{
      {"slow_at_clock", "slow"}, {"drift", "slower than before"}, {"corrupt", "corrupting"},
      {"counter", "erroneous"},  {"mismatch", "different"},       {"hang", "hung"},
      {"split", "unequal"}};
  const auto it = words.find(f.kind);
  return it == words.end() ? f.kind : it->second;
}

/// What a part is called, and its number or name within its node: "sim30/nic3" is NIC and 3.
struct Within {
  std::string noun, number;
};
Within within_node(const std::string& name) {
  std::string part = name.substr(name.find('/') + 1);
  for (const auto& [prefix, noun] : {std::pair{"gpu", "GPU"}, {"nic", "NIC"}, {"numa", "NUMA domain"}})
    if (part.starts_with(prefix)) return {noun, part.substr(std::string_view(prefix).size())};
  return {"", part};
}

/// "8 slow GPUs" of a node that is a finding with its parts, "slow NIC 3" of one part, "slow" of a node
/// alone.
std::string fault_words(const results::Finding& f) {
  const std::string how = adjective(f);
  if (f.name.find('/') != std::string::npos) {
    const Within w = within_node(f.name);
    return how + " " + (w.noun.empty() ? "" : w.noun + " ") + w.number;
  }
  if (f.kind == "missing") return "missing parts";
  if (f.members.size() < 2) return how;
  const std::string noun = within_node(f.members.front()).noun;
  return fmt::format("{} {} {}s", f.members.size(), how, noun.empty() ? "part" : noun);
}

/// The first so many of `items`, separated by commas.
std::string listed(const std::vector<std::string>& items, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), most); ++i) text += (i == 0 ? "" : ", ") + items[i];
  return text + (items.size() > most ? fmt::format(" and {} more", items.size() - most) : "");
}

struct Rejected {
  std::vector<std::string> nodes;   ///< with their faults
  std::vector<std::string> others;  ///< parts outside nodes
  std::size_t of = 0;               ///< nodes of the run
};

Rejected rejected_by(const results::Results& results, const results::VerdictData& verdict) {
  Rejected out;
  const LinkEnds ends = link_ends(results, verdict);
  std::map<std::string, std::vector<std::string>> faults;  // of every node that FAILs
  std::vector<std::string> order;
  out.of = static_cast<std::size_t>(std::ranges::count(results.entities, "node", &results::Entity::kind));
  for (const auto& s : verdict.entities) {
    if (s.state != "FAIL" || s.entity < 0 || static_cast<std::size_t>(s.entity) >= results.entities.size())
      continue;
    const auto& e = results.entities[static_cast<std::size_t>(s.entity)];
    if (e.kind == "node" && !ends.only.contains(s.entity) && faults.try_emplace(e.name).second)
      order.push_back(e.name);
  }
  for (const auto& f : verdict.findings) {
    if (f.severity != "FAIL") continue;
    const auto node = faults.find(node_of(f.name));
    auto& list = node == faults.end() || f.level == "link" ? out.others : node->second;
    const std::string prefix = f.level + ":";
    const std::string own = f.name.substr(f.name.starts_with(prefix) ? prefix.size() : 0);
    const std::string text = &list != &out.others ? fault_words(f)
                                                  : (own == f.level ? "the " + own : f.level + " " + own) +
                                                        " (" + adjective(f) + ")";
    if (std::ranges::find(list, text) == list.end()) list.push_back(text);
  }
  for (const std::string& name : order)
    out.nodes.push_back(name + (faults[name].empty() ? "" : " (" + listed(faults[name], faults_named) + ")"));
  return out;
}

}  // namespace

std::string decision_words(const results::Results& results, const results::VerdictData& verdict) {
  if (verdict.state == "PASS") return "No fault was found.";
  if (verdict.state == "WARN") return "No confirmed fault; see the warnings.";
  if (verdict.state != "FAIL")
    return "Do not accept yet: required evidence is missing. This is not a pass, and no fault was confirmed.";
  const Rejected r = rejected_by(results, verdict);
  std::string text = "Do not accept";
  if (!r.nodes.empty())
    text += fmt::format(": {} of {}: {}", r.nodes.size(), plural(r.of, "node"), listed(r.nodes, parts_named));
  if (!r.others.empty()) text += (r.nodes.empty() ? ": " : "; ") + listed(r.others, parts_named);
  return text + ".";
}

std::string unpromised_words(const std::string& limits_name, const std::string& baseline_name) {
  if (!limits_name.empty() || !baseline_name.empty()) return "";
  return "No promised values were checked (no limits, no baseline): PASS only means that equal parts are "
         "alike.";
}

}  // namespace assay::report
