// SPDX-License-Identifier: Apache-2.0
#include "verdict/compare_parts.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

constexpr std::size_t odd_units_min = 6;        // units for a deviation
constexpr double odd_far = 6, odd_loss = 0.05;  // deviations, loss of rate
constexpr double odd_link_loss = 0.8;           // of a single link, which traffic slows, too
constexpr std::size_t together_from = 3;        // nodes whose device of one number is a group

/// In how many metrics a part is slow, and where most.
struct Odd {
  std::string name;
  std::size_t parts = 1, metrics = 0;
  double most = 0;
  std::string worst;
};

using OddParts = std::map<std::string, Odd>;  ///< by identity

void add(OddParts& odd, const std::string& id, const ComparedUnit& unit, double lost,
         const std::string& metric) {
  Odd& of = odd[id];
  of.name = unit.name;
  ++of.metrics;
  if (lost <= of.most) return;
  of.most = lost;
  of.worst = metric;
}

/// Losses below the median by more than `least` that are outliers of `values`, by position; 0 of all others.
std::vector<double> outlying(const std::vector<double>& values, double least = odd_loss) {
  std::vector<double> losses(values.size(), 0);
  if (values.size() < odd_units_min) return losses;
  const double usual = median(values), spread = mad_sigma(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double lost = usual - values[i];
    if (lost > odd_far * spread && -std::expm1(-lost) > least) losses[i] = -std::expm1(-lost);
  }
  return losses;
}

/// Each unit of both sides against its own earlier value.
void find_changed(const ComparedUnits& a, const ComparedUnits& b, const std::string& metric, OddParts& odd,
                  double least = odd_loss) {
  std::vector<ComparedUnits::const_iterator> both;
  std::vector<double> changes;
  for (auto unit = b.begin(); unit != b.end(); ++unit) {
    const auto before = a.find(unit->first);
    if (before == a.end()) continue;
    both.push_back(unit);
    changes.push_back(unit->second.rate() - before->second.rate());
  }
  const auto losses = outlying(changes, least);
  for (std::size_t i = 0; i < both.size(); ++i)
    if (losses[i] > 0) add(odd, both[i]->first, both[i]->second, losses[i], metric);
}

/// Outliers of one side among its own units of the same stratum, the slowest first.
std::vector<std::pair<double, ComparedUnits::const_iterator>> outliers_of(const ComparedUnits& side) {
  std::map<std::string, std::vector<ComparedUnits::const_iterator>> strata;
  for (auto unit = side.begin(); unit != side.end(); ++unit) strata[unit->second.stratum].push_back(unit);
  std::vector<std::pair<double, ComparedUnits::const_iterator>> found;
  for (const auto& [name, units] : strata) {
    std::vector<double> rates;
    for (const auto unit : units) rates.push_back(unit->second.rate());
    const auto losses = outlying(rates);
    for (std::size_t i = 0; i < units.size(); ++i)
      if (losses[i] > 0) found.emplace_back(losses[i], units[i]);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  return found;
}

/// Units that only B has, against the others of B. Losses that A has as well are of the machine's nature.
void find_outlying(const ComparedUnits& a, const ComparedUnits& b, const std::string& metric, OddParts& odd) {
  const auto of_a = outliers_of(a), of_b = outliers_of(b);
  for (std::size_t i = 0; i < of_b.size(); ++i) {
    const auto& [lost, unit] = of_b[i];
    if (!a.contains(unit->first) && lost - (i < of_a.size() ? of_a[i].first : 0) > odd_loss)
      add(odd, unit->first, unit->second, lost, metric);
  }
}

ComparedUnits without(const ComparedUnits& parts, const std::set<std::string>& nodes) {
  ComparedUnits left;
  for (const auto& [id, part] : parts)
    if (!nodes.contains(part.node)) left.emplace(id, part);
  return left;
}

/// The number of a device in its node: `gpu3` of `sim02/gpu3`.
std::string local_name(const std::string& name) {
  const auto slash = name.find('/');
  return slash == std::string::npos ? "" : name.substr(slash + 1);
}

/// Names of many parts: those of one number in several nodes are one entry.
std::vector<Odd> together(const std::vector<Odd>& parts) {
  std::map<std::string, Odd> groups;
  for (const auto& part : parts) {
    const std::string local = local_name(part.name);
    const auto [at, fresh] = groups.try_emplace(local.empty() ? part.name : local, part);
    if (fresh) continue;
    Odd& of = at->second;
    ++of.parts;
    of.metrics = std::max(of.metrics, part.metrics);
    if (part.most <= of.most) continue;
    of.most = part.most;
    of.worst = part.worst;
  }
  std::vector<Odd> out;
  for (const auto& part : parts) {
    const auto group = groups.find(local_name(part.name));
    if (group == groups.end() || group->second.parts < together_from) out.push_back(part);
  }
  for (auto& [local, group] : groups) {
    if (group.parts < together_from) continue;
    group.name = local + " of " + std::to_string(group.parts) + " nodes";
    out.push_back(group);
  }
  std::stable_sort(out.begin(), out.end(), [](const Odd& x, const Odd& y) { return x.most > y.most; });
  return out;
}

std::string counted(std::size_t count, const std::vector<std::string>& which, const std::string& one,
                    const std::string& more) {
  return std::to_string(count) + " " + (count == 1 ? one : more) + ": " + first_of(which);
}

void note(const OddParts& odd, const std::string& one, const std::string& more,
          std::vector<std::string>& notes) {
  if (odd.empty()) return;
  std::vector<Odd> parts;
  for (const auto& [id, of] : odd) parts.push_back(of);
  std::vector<std::string> names;
  for (const auto& of : together(parts))
    names.push_back(of.name + " (" + of.worst + " " + percent(of.most) +
                    (of.metrics > 1 ? ", and " + std::to_string(of.metrics - 1) + " more)" : ")"));
  notes.push_back(counted(odd.size(), names, one, more));
}

/// The nodes of the units that are named.
std::set<std::string> nodes_of(const std::vector<ComparedMetric>& metrics,
                               std::initializer_list<const OddParts*> named) {
  std::set<std::string> nodes;
  for (const auto& m : metrics)
    for (const auto* odd : named)
      for (const auto& [id, of] : *odd)
        if (const auto unit = m.units_b->find(id); unit != m.units_b->end()) nodes.insert(unit->second.node);
  return nodes;
}

void note_missing(const ComparedUnits& there, const ComparedUnits& elsewhere, const std::string& side,
                  std::vector<std::string>& notes) {
  std::set<std::string> nodes;
  for (const auto& [id, part] : elsewhere) nodes.insert(part.node);
  std::vector<Odd> missing;
  for (const auto& [id, part] : there)
    if (!elsewhere.contains(id) && nodes.contains(part.node)) missing.push_back({part.name, 1, 0, 0, ""});
  if (missing.empty()) return;
  std::vector<std::string> names;
  for (const auto& part : together(missing)) names.push_back(part.name);
  notes.push_back(counted(missing.size(), names, "device has values only in " + side,
                          "devices have values only in " + side));
}

}  // namespace

std::string counted(const std::vector<std::string>& which, const std::string& one, const std::string& more) {
  return counted(which.size(), which, one, more);
}

bool note_odd_parts(const std::vector<ComparedMetric>& metrics, std::vector<std::string>& notes) {
  OddParts changed, outlying;
  for (const auto& m : metrics) {
    find_changed(*m.units_a, *m.units_b, m.name, changed);
    find_outlying(*m.units_a, *m.units_b, m.name, outlying);
  }
  const auto nodes = nodes_of(metrics, {&changed, &outlying});
  for (const auto& m : metrics) {
    const auto a = without(*m.parts_a, nodes), b = without(*m.parts_b, nodes);
    find_changed(a, b, m.name, changed);
    find_outlying(a, b, m.name, outlying);
  }
  OddParts links;
  for (const auto& m : metrics)
    find_changed(without(*m.links_a, nodes), without(*m.links_b, nodes), m.name, links, odd_link_loss);
  note(links, "link is slower in B than in A, unlike the others",
       "links are slower in B than in A, unlike the others", notes);
  note(changed, "part is slower in B than in A, unlike the others",
       "parts are slower in B than in A, unlike the others", notes);
  note(outlying, "part of B is slower than its others", "parts of B are slower than its others", notes);
  return !changed.empty() || !outlying.empty() || !links.empty();
}

void note_missing_parts(const std::vector<ComparedMetric>& metrics, std::vector<std::string>& notes) {
  ComparedUnits a, b;
  for (const auto& m : metrics) {
    // Where the parts are the units there are no others.
    for (const auto* side : {m.units_a, m.parts_a}) a.insert(side->begin(), side->end());
    for (const auto* side : {m.units_b, m.parts_b}) b.insert(side->begin(), side->end());
  }
  note_missing(a, b, "A", notes);
  note_missing(b, a, "B", notes);
}

void note_run(const Snapshot& run, std::vector<std::string>& notes) {
  if (run.injected) notes.push_back(run.source.file + ": faults were injected");
  if (!run.left_out.empty())
    notes.push_back(run.source.file + ": " +
                    counted(run.left_out, "impossible value of a part is left out",
                            "impossible values of parts are left out"));
}

std::map<std::string, std::string> nodes_of(const std::vector<Snapshot>& runs) {
  std::map<std::string, std::string> nodes;
  for (const auto& run : runs) {
    for (const auto& s : run.series)
      for (const auto part : s.rows->part) {
        const Part& node = run.part(run.part(part).node);
        nodes.emplace(node.id, node.name);
      }
  }
  return nodes;
}

void note_nodes(const std::map<std::string, std::string>& there,
                const std::map<std::string, std::string>& elsewhere, const std::string& side,
                std::vector<std::string>& notes) {
  std::vector<std::string> missing;
  for (const auto& [id, name] : there)
    if (!elsewhere.contains(id)) missing.push_back(name);
  // Two clusters have no node in common.
  if (!missing.empty() && missing.size() < there.size())
    notes.push_back(counted(missing, "node has values only in " + side, "nodes have values only in " + side));
}

}  // namespace assay::verdict
