// SPDX-License-Identifier: Apache-2.0
#include "verdict/network_links.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "measure/statistics.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_levels.hpp"
#include "verdict/network_rows.hpp"

namespace assay::verdict::network {
namespace {

using results::not_taken;

std::unordered_map<std::int32_t, int> numa_of_devices(const Judgement& j) {
  std::unordered_map<std::int32_t, int> numa;
  const auto it = j.results.inventory.find("device");
  if (it == j.results.inventory.end()) return numa;
  const auto* number = number_column(it->second, {"numa_info", "numa"});
  for (std::size_t i = 0; number != nullptr && i < number->size(); ++i)
    if ((*number)[i] >= 0 && (*number)[i] < 1e6) numa[it->second.entity[i]] = static_cast<int>((*number)[i]);
  return numa;
}

/// Takes off what this link loses because of its rail.
void without_rail(const Judgement& j, const Series& series, Measured& m) {
  for (const auto& rail : j.slow_rails) {
    const auto loss = rail.loss.find(series.full());
    if (loss != rail.loss.end() && rail.contains(m.source, m.destination))
      m.y += loss->second, m.best += loss->second;
  }
}

/// Turns the rows of one scope into ends and pairs.
class Builder {
 public:
  Builder(const Judgement& j, const Places& places, LinkSet& set) : j_(j), places_(places), set_(set) {}

  void adopt(const LinkSet& known) {
    for (const auto& e : known.ends) end(e.row);
  }

  int end(std::int32_t row) {
    const auto [it, fresh] = ends_.try_emplace(row, static_cast<int>(set_.ends.size()));
    if (!fresh) return it->second;
    const bool server = j_.entities.kind(row) == "server";
    const auto node = server ? row : j_.entities.node(row);
    const auto [at_node, new_node] = nodes_.try_emplace(node, static_cast<int>(set_.node_rows.size()));
    if (new_node) set_.node_rows.push_back(node);
    End e{row, at_node->second, -1, 0, j_.entities.shares_cores(row), server};
    if (!set_.inside) {
      if (const std::string& leaf = places_.leaf_of(row); !leaf.empty()) {
        const auto [at_leaf, new_leaf] = leaves_.try_emplace(leaf, static_cast<int>(set_.leaves.size()));
        if (new_leaf) set_.leaves.push_back(leaf);
        e.leaf = at_leaf->second;
      }
    }
    set_.ends.push_back(e);
    return it->second;
  }

  /// `numbers`, if given, gets a number of each pair's pass and round.
  void pairs(std::vector<Raw>& raw, std::vector<int>* numbers = nullptr) {
    const auto key = [](const Raw& r) {
      return std::tuple(r.pass, r.m.round, std::min(r.m.source, r.m.destination),
                        std::max(r.m.source, r.m.destination));
    };
    std::sort(raw.begin(), raw.end(), [&](const Raw& a, const Raw& b) {
      return std::tuple(key(a), a.m.source) < std::tuple(key(b), b.m.source);
    });
    for (std::size_t i = 0; i < raw.size(); ++i) {
      Pair p;
      p.ab = p.ba = p.best_ab = p.best_ba = not_taken;
      p.a = end(std::min(raw[i].m.source, raw[i].m.destination));
      p.b = end(std::max(raw[i].m.source, raw[i].m.destination));
      p.cls = raw[i].cls;
      const auto mine = key(raw[i]);
      for (; i < raw.size() && key(raw[i]) == mine; ++i) {
        const auto& m = raw[i].m;
        const bool forth = m.source < m.destination;
        (forth ? p.ab : p.ba) = m.y;
        (forth ? p.row_ab : p.row_ba) = m.entity;
        (forth ? p.best_ab : p.best_ba) = m.best;
        p.samples += m.n;
      }
      --i;
      ++set_.ends[static_cast<std::size_t>(p.a)].degree;
      ++set_.ends[static_cast<std::size_t>(p.b)].degree;
      set_.pairs.push_back(p);
      if (numbers != nullptr) {
        const std::pair round{std::get<0>(mine), std::get<1>(mine)};
        numbers->push_back(rounds_.try_emplace(round, static_cast<int>(rounds_.size())).first->second);
      }
    }
  }

 private:
  const Judgement& j_;
  const Places& places_;
  LinkSet& set_;
  std::unordered_map<std::int32_t, int> ends_, nodes_;
  std::map<std::string, int> leaves_;
  std::map<std::pair<int, int>, int> rounds_;
};

}  // namespace

double Pair::mean() const {
  if (std::isnan(ab)) return ba;
  return std::isnan(ba) ? ab : 0.5 * (ab + ba);
}

bool LinkSet::crosses(const Pair& p) const {
  const int a = ends[static_cast<std::size_t>(p.a)].leaf, b = ends[static_cast<std::size_t>(p.b)].leaf;
  return a >= 0 && b >= 0 && a != b;
}

bool LinkSet::to_servers() const {
  return std::any_of(ends.begin(), ends.end(), [](const End& e) { return e.server; });
}

std::size_t LinkSet::ends_like(const End& e) const {
  return static_cast<std::size_t>(
      std::count_if(ends.begin(), ends.end(), [&](const End& x) { return x.server == e.server; }));
}

Least LinkSet::least() const {
  using namespace constants;
  if (!to_servers()) return {network_node, network_pair, network_node_confirmed, network_warn, network_fail};
  return {storage_part, storage_pair, storage_confirmed, storage_confirmed, series->judging.fault_threshold};
}

std::int32_t switch_row(const Judgement& j, const std::string& name) {
  for (std::size_t i = 0; i < j.results.entities.size(); ++i) {
    const auto& e = j.results.entities[i];
    if (e.kind == "switch" && (e.name == name || e.name == "switch:" + name))
      return static_cast<std::int32_t>(i);
  }
  return -1;
}

Places::Places(const Judgement& j) : j_(j), leaf_(j.entities.size()), only_nic_(j.entities.size(), -1) {
  const auto it = j.results.inventory.find("nic");
  if (it == j.results.inventory.end()) return;
  const auto* leaf = text_column(it->second, {"switch"});
  std::vector<char> mixed(j.entities.size(), 0);
  for (std::size_t i = 0; i < it->second.entity.size(); ++i) {
    const auto row = it->second.entity[i];
    if (!j.entities.valid(row)) continue;
    const auto node = j.entities.node(row);
    if (j.entities.valid(node)) {
      auto& only = only_nic_[static_cast<std::size_t>(node)];
      only = only == -1 ? row : -2;
    }
    if (leaf == nullptr || (*leaf)[i].empty()) continue;
    leaf_[static_cast<std::size_t>(row)] = (*leaf)[i];
    if (!j.entities.valid(node) || node == row) continue;
    auto& own = leaf_[static_cast<std::size_t>(node)];
    if (mixed[static_cast<std::size_t>(node)] != 0) continue;
    if (own.empty()) {
      own = (*leaf)[i];
    } else if (own != (*leaf)[i]) {
      own.clear();
      mixed[static_cast<std::size_t>(node)] = 1;
    }
  }
}

const std::string& Places::leaf_of(std::int32_t row) const {
  static const std::string unknown;
  if (!j_.entities.valid(row)) return unknown;
  const auto& own = leaf_[static_cast<std::size_t>(row)];
  if (!own.empty() || j_.entities.kind(row) == "nic") return own;
  const auto node = j_.entities.node(row);
  return j_.entities.valid(node) ? leaf_[static_cast<std::size_t>(node)] : unknown;
}

std::int32_t Places::switch_of(std::int32_t row) const {
  const auto& name = leaf_of(row);
  if (name.empty()) return -1;
  const auto [at, fresh] = switches_.try_emplace(name, -1);
  if (fresh) at->second = switch_row(j_, name);
  return at->second;
}

std::int32_t Places::only_nic(std::int32_t node) const {
  return j_.entities.valid(node) ? std::max(only_nic_[static_cast<std::size_t>(node)], -1) : -1;
}

std::vector<LinkSet> link_sets(const Judgement& j, const Places& places, const Series& series) {
  // By the row of the link: its stratum, as the series found it.
  std::unordered_map<std::int32_t, std::int32_t> stratum;
  for (const auto& row : series.rows) stratum[row.entity] = row.stratum;
  std::map<bool, std::vector<Raw>> scopes;
  std::map<std::string, int> leaf_number;
  const auto numa = numa_of_devices(j);
  const auto place_of = [&](std::int32_t row, bool inside) {
    if (inside) return numa.contains(row) ? numa.at(row) : -1;
    const std::string& leaf = places.leaf_of(row);
    return leaf.empty() ? -1
                        : leaf_number.try_emplace(leaf, static_cast<int>(leaf_number.size())).first->second;
  };
  int pass = 0;
  for (const auto& c : j.results.cases) {
    if (c.suite != series.suite || c.case_key != series.first->case_key || retest_number(c.name) > 0 ||
        base_name(c.name) != series.name)
      continue;
    if (c.state != results::CaseState::pass && c.state != results::CaseState::fail) continue;
    for (auto& m : measured(c, series.metric, series.better)) {
      const auto known = stratum.find(m.entity);
      if (known == stratum.end() || !j.entities.valid(m.source) || !j.entities.valid(m.destination) ||
          m.source == m.destination)
        continue;
      const bool inside = j.entities.node(m.source) == j.entities.node(m.destination);
      const std::pair places_of{place_of(m.source, inside), place_of(m.destination, inside)};
      const int cls = class_of(known->second, places_of.first, places_of.second);
      scopes[inside].push_back({std::move(m), pass, cls, places_of});
    }
    ++pass;
  }
  std::vector<LinkSet> sets;
  for (auto& [inside, raw] : scopes) {
    LinkSet set;
    set.series = &series;
    set.inside = inside;
    set.across = inside ? 0 : loss_across(raw);
    set.centre = centre(raw, !inside && leaf_number.size() < constants::network_deletion_population);
    Builder(j, places, set).pairs(raw);
    if (set.pairs.size() >= 2) sets.push_back(std::move(set));
  }
  return sets;
}

int retest_pairs(const Judgement& j, const Places& places, const LinkSet& set, LinkSet& retest,
                 std::vector<int>& rounds) {
  const Series& series = *set.series;
  retest.series = set.series;
  retest.inside = set.inside;
  Builder builder(j, places, retest);
  builder.adopt(set);
  std::vector<Raw> raw;
  int cases = 0;
  for (const auto& c : j.results.cases) {
    const int number = retest_number(c.name);
    if (number == 0 || c.suite != series.suite || c.case_key != series.first->case_key) continue;
    if (base_name(c.name) != series.name) continue;
    if (c.state != results::CaseState::pass && c.state != results::CaseState::fail) continue;
    ++cases;
    for (auto& m : measured(c, series.metric, series.better)) {
      without_rail(j, series, m);
      if (!j.entities.valid(m.source) || !j.entities.valid(m.destination) || m.source == m.destination)
        continue;
      if (const auto& from = places.leaf_of(m.source), &to = places.leaf_of(m.destination);
          !set.inside && !from.empty() && !to.empty() && from != to)
        m.y += set.across, m.best += set.across;
      if ((j.entities.node(m.source) == j.entities.node(m.destination)) == set.inside)
        raw.push_back({m, number, 0, {}});
    }
  }
  builder.pairs(raw, &rounds);
  return cases;
}

}  // namespace assay::verdict::network
