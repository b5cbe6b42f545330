// SPDX-License-Identifier: Apache-2.0
#include "report/link_ends.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {
namespace {

/// What FAILs name: links, and all else.
struct Named {
  std::set<std::string> links, ends, others, nodes_of_others;
  bool open = false;  ///< a FAIL that names no part
};

Named named_by(const results::VerdictData& verdict, const std::set<std::string>& known) {
  Named out;
  for (const auto& f : verdict.findings) {
    if (f.severity != "FAIL") continue;
    auto names = f.members;
    if (names.empty() || f.level != "cluster") names.push_back(f.name);
    for (const auto& name : names) {
      if (const auto ends = ends_of(name); ends.size() > 1) {
        out.links.insert(name);
        for (const auto& end : ends) {
          out.ends.insert(end);
          out.ends.insert(node_of(end));
        }
      } else if (known.contains(name)) {
        out.others.insert(name);
        out.nodes_of_others.insert(node_of(name));
      } else {
        out.open = true;
      }
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> ends_of(const std::string& name) {
  const auto arrow = name.find('>');
  if (arrow == std::string::npos) return {name};
  return {name.substr(0, arrow), name.substr(arrow + 1)};
}

std::string node_of(const std::string& part) { return part.substr(0, part.find('/')); }

LinkEnds link_ends(const results::Results& results, const results::VerdictData& verdict) {
  if (std::ranges::none_of(verdict.findings, [](const auto& f) { return f.severity == "FAIL"; })) return {};
  std::set<std::string> known;
  for (const auto& e : results.entities)
    if (e.kind == "node" || e.kind == "device" || e.kind == "nic" || e.kind == "numa") known.insert(e.name);
  const Named named = named_by(verdict, known);
  if (named.links.empty() || named.open) return {};
  LinkEnds out;
  out.links = named.links.size();
  for (const auto& s : verdict.entities) {
    if (s.state != "FAIL" || s.entity < 0 || static_cast<std::size_t>(s.entity) >= results.entities.size())
      continue;
    const auto& e = results.entities[static_cast<std::size_t>(s.entity)];
    const bool other = named.others.contains(e.name) || named.others.contains(node_of(e.name)) ||
                       (e.kind == "node" && named.nodes_of_others.contains(e.name));
    if (!named.ends.contains(e.name) || other) continue;
    out.only.insert(s.entity);
    out.nodes += e.kind == "node" ? 1 : 0;
  }
  return out;
}

std::string links_words(const LinkEnds& ends) {
  return fmt::format("{} link{} FAIL", ends.links, ends.links == 1 ? "" : "s");
}

}  // namespace assay::report
