// SPDX-License-Identifier: Apache-2.0
#include "verdict/judgement.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "base/system.hpp"
#include "results/entity_tree.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"

namespace assay::verdict {
namespace {

/// How many CPUs "node07/cores0-3,8" names; 0 when the name says nothing of the kind.
int cores_in_name(const std::string& name) {
  const auto slash = name.rfind("/cores");
  if (slash == std::string::npos) return 0;
  std::string list = name.substr(slash + 6);
  list = list.substr(0, list.find('.'));
  try {
    return static_cast<int>(parse_cpu_list(list).size());
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace

EntityIndex::EntityIndex(const std::vector<results::Entity>& entities)
    : entities_(entities),
      node_of_(entities.size(), -1),
      shares_(entities.size(), false),
      cores_(entities.size(), 0) {
  for (std::size_t i = 0; i < entities.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    if (entities[i].kind == "node") nodes_.push_back(row);
    node_of_[i] = results::node_above(entities, row);
    if (entities[i].kind == "device") cores_[i] = cores_in_name(entities[i].name);
    ranks_known_ = ranks_known_ || (entities[i].kind == "device" && entities[i].rank >= 0);
    shares_[i] =
        entities[i].kind == "device" && results::numbered_suffix(entities[i].name, 0) != std::string::npos;
  }
}

std::string EntityIndex::name(std::int32_t row) const {
  return valid(row) ? entities_[static_cast<std::size_t>(row)].name : "cluster";
}
std::string EntityIndex::kind(std::int32_t row) const {
  return valid(row) ? entities_[static_cast<std::size_t>(row)].kind : "cluster";
}
std::string EntityIndex::id(std::int32_t row) const {
  return valid(row) ? entities_[static_cast<std::size_t>(row)].id : "";
}
std::int32_t EntityIndex::node(std::int32_t row) const noexcept {
  return valid(row) ? node_of_[static_cast<std::size_t>(row)] : -1;
}
std::int32_t EntityIndex::parent(std::int32_t row) const noexcept {
  return valid(row) ? entities_[static_cast<std::size_t>(row)].parent : -1;
}
int EntityIndex::cores(std::int32_t row) const noexcept {
  return valid(row) ? cores_[static_cast<std::size_t>(row)] : 0;
}
bool EntityIndex::takes_part(std::int32_t row) const noexcept {
  if (!valid(row)) return false;
  const auto& entity = entities_[static_cast<std::size_t>(row)];
  return entity.kind != "device" || entity.rank >= 0 || !ranks_known_;
}

bool EntityIndex::shares_cores(std::int32_t row) const noexcept {
  return valid(row) && shares_[static_cast<std::size_t>(row)];
}
bool Judgement::at_least_standard() const {
  const auto& level = results.info.level;
  return level == "standard" || level == "extended" || level == "soak";
}

results::Finding Judgement::about(std::int32_t row, const std::string& severity, const std::string& claim,
                                  const std::string& kind) const {
  results::Finding f;
  f.severity = severity;
  f.claim = claim;
  f.kind = kind;
  f.level = entities.kind(row);
  f.name = entities.name(row);
  f.id = entities.id(row);
  if (claim == "fact") f.confirm("fact");
  return f;
}

results::Finding Judgement::about(const Series& s, std::int32_t row, const std::string& severity,
                                  const std::string& claim, const std::string& kind) const {
  auto f = about(row, severity, claim, kind);
  f.suite = s.suite;
  f.metric = s.full();
  f.unit = s.unit;
  f.better = results::to_string(s.better);
  f.evidence = s.path;
  return f;
}

void Judgement::add(results::Finding finding, std::vector<std::int32_t> rows, bool inconclusive) {
  found.push_back({std::move(finding), inconclusive, std::move(rows)});
}

const Series* series_of(const Judgement& j, const results::Finding& finding) {
  const auto at = std::find_if(j.series.begin(), j.series.end(), [&](const Series& s) {
    return s.suite == finding.suite && s.full() == finding.metric;
  });
  return at == j.series.end() ? nullptr : &*at;
}

bool glob(const std::string& pattern, const std::string& text) { return glob_match(pattern, text); }

bool ends_with(const std::string& text, const std::string& tail) {
  return text.size() >= tail.size() && text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
}

const std::vector<double>* number_column(const results::InventoryTable& table,
                                         std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto it = table.number.find(name);
    if (it != table.number.end() && it->second.size() == table.entity.size()) return &it->second;
  }
  return nullptr;
}

const std::vector<std::string>* text_column(const results::InventoryTable& table,
                                            std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto it = table.text.find(name);
    if (it != table.text.end() && it->second.size() == table.entity.size()) return &it->second;
  }
  return nullptr;
}

std::set<std::string> riding_interfaces(const Judgement& j) {
  std::set<std::string> names;
  const auto it = j.results.inventory.find("nic");
  if (it == j.results.inventory.end()) return names;
  const auto* netdev = text_column(it->second, {"netdev_info"});
  for (std::size_t i = 0; netdev != nullptr && i < netdev->size(); ++i)
    if (!(*netdev)[i].empty())
      names.insert(j.entities.name(j.entities.node(it->second.entity[i])) + "/" + (*netdev)[i]);
  return names;
}

double deficit_of(double value, double reference, bool higher_is_better) noexcept {
  return higher_is_better ? 1.0 - value / reference : 1.0 - reference / value;
}

double bounded(double value) noexcept {
  const double size = std::abs(value);
  return size > constants::possible_most    ? std::copysign(std::numeric_limits<double>::infinity(), value)
         : size < constants::possible_least ? 0
                                            : value;
}

bool is_rate_or_time(const std::string& unit) { return unit == "s" || unit == "Hz" || ends_with(unit, "/s"); }

double dead_link_value(double usual, results::Better better) noexcept {
  return better == results::Better::lower ? usual / constants::dead_link_share
                                          : usual * constants::dead_link_share;
}

bool died_in_retest(const Judgement& j, const std::string& suite, std::int32_t entity) {
  return std::any_of(j.found.begin(), j.found.end(), [&](const Found& f) {
    const auto& metric = f.finding.metric;
    return f.finding.kind == "dead" && f.finding.suite == suite &&
           std::find(f.rows.begin(), f.rows.end(), entity) != f.rows.end() &&
           retest_number(metric.substr(0, metric.rfind(':'))) > 0;
  });
}

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100.0 * fraction);
  return text + (std::strncmp(text, "-0.0 ", 5) == 0 ? 1 : 0);
}

std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 8;
  std::string text = names.empty() ? std::string() : names.front();
  for (std::size_t i = 1; i < std::min(names.size(), shown); ++i) text += ", " + names[i];
  return names.size() > shown ? text + " and " + std::to_string(names.size() - shown) + " more" : text;
}

}  // namespace assay::verdict
