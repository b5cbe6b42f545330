// SPDX-License-Identifier: Apache-2.0
#include "verdict/inventory_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

#include "base/units.hpp"
#include "results/described.hpp"
#include "results/inventory_names.hpp"
#include "verdict/constants.hpp"

namespace assay::verdict {

bool is_identity(const std::string& column) {
  static const std::set<std::string> identities = {"hostname", "name", "id",  "id_source",
                                                   "serial",   "uuid", "mac", "guid"};
  return ends_with(column, "_info") || identities.contains(column);
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

bool is_virtual_node(const Judgement& j, std::int32_t node) {
  const auto it = j.results.inventory.find("node");
  if (it == j.results.inventory.end()) return false;
  const auto* hypervisor = text_column(it->second, {"hypervisor"});
  if (hypervisor == nullptr) return false;
  for (std::size_t i = 0; i < it->second.entity.size(); ++i) {
    if (it->second.entity[i] == node) return !(*hypervisor)[i].empty() && (*hypervisor)[i] != "none";
  }
  return false;
}

namespace {

/// Amounts with a unit, by what their column's name ends in. Other numbers are counts and settings.
constexpr std::pair<const char*, const char*> amount_units[] = {
    {"_bytes_per_s", "B/s"}, {"_bytes", "B"}, {"_hz", "Hz"}, {"_w", "W"}};

/// How far equal values of a column differ: a core less than 192 is a core that is gone.
double tolerance_of(const std::string& column) {
  const bool amount =
      std::ranges::any_of(amount_units, [&](const auto& unit) { return ends_with(column, unit.first); });
  return amount ? constants::inventory_tolerance : 0;
}

bool near(double a, double b, double tolerance) {
  return a == b || std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

/// Parts with one value of a column.
struct ValueGroup {
  std::string text;
  double number = results::not_taken;
  std::vector<std::int32_t> rows;
};

/// A number of a column, with the unit that the column's name ends in.
std::string amount_text(const std::string& column, double value) {
  if (ends_with(column, "_bytes") && value >= 0) return format_bytes(static_cast<std::uint64_t>(value));
  for (const auto& [ending, unit] : amount_units)
    if (ends_with(column, ending)) return format_quantity(value, unit);
  return number_text(value);
}

using Sorted = std::vector<std::pair<double, std::int32_t>>;

/// From and to of those near the one at `of`.
std::pair<std::size_t, std::size_t> near_ones(const Sorted& sorted, std::size_t of, double tolerance) {
  const auto is_below = [&](const auto& one) {
    return one.first < sorted[of].first && !near(one.first, sorted[of].first, tolerance);
  };
  const auto is_near = [&](const auto& one) {
    return one.first <= sorted[of].first || near(one.first, sorted[of].first, tolerance);
  };
  return {
      static_cast<std::size_t>(std::partition_point(sorted.begin(), sorted.end(), is_below) - sorted.begin()),
      static_cast<std::size_t>(std::partition_point(sorted.begin(), sorted.end(), is_near) - sorted.begin())};
}

/// The middle of the largest stretch of values near one of them: what most have.
std::size_t usual_of(const Sorted& sorted, double tolerance) {
  std::pair<std::size_t, std::size_t> most{0, 0};
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (const auto own = near_ones(sorted, i, tolerance); own.second - own.first > most.second - most.first)
      most = own;
  return most.first + (most.second - most.first) / 2;
}

std::vector<ValueGroup> value_groups(const std::string& column, const std::vector<std::int32_t>& rows,
                                     const std::vector<double>& values) {
  std::vector<std::pair<double, std::int32_t>> sorted;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i])) sorted.emplace_back(values[i], rows[i]);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<ValueGroup> groups;
  if (sorted.empty()) return groups;
  const double tolerance = tolerance_of(column);
  const std::size_t middle = usual_of(sorted, tolerance);
  const auto [first, last] = near_ones(sorted, middle, tolerance);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto& [value, row] = sorted[i];
    const bool usual = i >= first && i < last;
    const double number = usual ? sorted[middle].first : value;
    if (groups.empty() || i == first || i == last ||
        (!usual && !near(groups.back().number, value, tolerance)))
      groups.push_back({amount_text(column, number), number, {}});
    groups.back().rows.push_back(row);
  }
  return groups;
}

/// An empty text is what a machine does not tell, but for options, of which a kernel may have none.
std::vector<ValueGroup> value_groups(const std::string& column, const std::vector<std::int32_t>& rows,
                                     const std::vector<std::string>& values) {
  std::map<std::string, std::vector<std::int32_t>> by_text;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!values[i].empty() || column == results::inventory::kernel_options)
      by_text[values[i]].push_back(rows[i]);
  std::vector<ValueGroup> groups;
  for (auto& [text, of] : by_text)
    groups.push_back({text.empty() ? "nothing" : text, results::not_taken, std::move(of)});
  return groups;
}

std::string clip(const std::string& text) { return text.size() <= 60 ? text : text.substr(0, 57) + "..."; }

/// "gpus" and 3 -> "3 GPUs"; "kernel" and 6.0 -> "kernel is 6.0"
std::string having(const std::string& column, const std::string& text) {
  const char* unit = column == "gpus" ? " GPUs" : column == "nics" ? " NICs" : nullptr;
  return unit == nullptr ? column + " is " + text : text + (text == "1" ? std::string(unit, 4) : unit);
}

results::Finding about_column(const Judgement& j, const Majority& of, const std::string& column,
                              std::int32_t row, bool missing) {
  auto f = j.about(row, missing ? "FAIL" : "WARN", "fact", missing ? "missing" : "mismatch");
  f.suite = results::inventory_stage;
  f.metric = column;
  f.action = missing ? "TRIAGE" : "CONFIG";
  f.evidence = "/inventory/" + of.table + "/" + column;
  return f;
}

void add_mismatch(Judgement& j, const Majority& of, const std::string& column, const ValueGroup& group,
                  const ValueGroup& majority, bool split) {
  const bool missing = of.is_amount(column) && group.number < majority.number;
  auto add = [&](std::int32_t row, const std::vector<std::int32_t>& rows) {
    // A second population is how the machine was built or managed; single deviants with less of something
    // lost a part.
    auto f = about_column(j, of, column, row, missing && !split);
    if (!std::isnan(group.number)) {
      f.value = group.number;
      f.reference = majority.number;
    }
    f.controls = static_cast<std::int64_t>(majority.rows.size());
    if (rows.size() > 1) {
      for (const auto r : rows) f.members.push_back(j.entities.name(r));
      f.text = std::to_string(rows.size()) + " " + of.many + " (" + f.members.front() + " to " +
               f.members.back() + "): ";
    } else {
      f.text = f.name + ": ";
    }
    f.text += having(column, clip(group.text)) + ", " + std::to_string(majority.rows.size()) + " other " +
              of.many + " have " + clip(majority.text);
    j.add(std::move(f), rows);
  };
  if (split) {
    add(-1, group.rows);
  } else {
    for (const auto row : group.rows) add(row, {row});
  }
}

/// Nodes that lack GPUs do not decide for those that have them: where most have fewer than some, it is not
/// known who is incomplete, unless the launch said how many devices a node must have.
bool tell_gpus(Judgement& j, const Majority& of, const std::string& column,
               const std::vector<ValueGroup>& groups, const ValueGroup& majority) {
  const Json* devices = configured(j.results.config, "expect-devices");
  const bool expected = devices != nullptr && devices->is_number() && *devices > 0;
  if (column != results::inventory::gpus || expected || groups.back().number <= majority.number) return false;
  auto f = about_column(j, of, column, -1, false);
  std::vector<std::int32_t> rows;
  for (const auto& group : groups) {
    f.text += (f.text.empty() ? "" : ", ") + std::to_string(group.rows.size()) + " " + of.many + " have " +
              group.text + " " + column + " (";
    std::vector<std::string> names;
    for (const auto row : group.rows) names.push_back(j.entities.name(row));
    f.text += first_of(names) + ")";
    if (&group == &groups.back()) break;
    f.members.insert(f.members.end(), names.begin(), names.end());
    rows.insert(rows.end(), group.rows.begin(), group.rows.end());
  }
  f.text += ": which of them are incomplete is not known; --expect-devices says how many each must have";
  j.add(std::move(f), rows, true);
  return true;
}

void judge_value_groups(Judgement& j, const Majority& of, const std::string& column,
                        const std::vector<ValueGroup>& groups) {
  if (groups.size() < 2) return;
  std::size_t total = 0;
  const ValueGroup* largest = &groups.front();
  for (const auto& group : groups) {
    total += group.rows.size();
    if (group.rows.size() > largest->rows.size()) largest = &group;
  }
  if (total >= constants::majority_min && 2 * largest->rows.size() > total) {
    if (tell_gpus(j, of, column, groups, *largest)) return;
    const auto split =
        std::max(constants::split_min,
                 static_cast<std::size_t>(std::ceil(constants::split_fraction * static_cast<double>(total))));
    for (const auto& group : groups) {
      if (&group != largest) add_mismatch(j, of, column, group, *largest, group.rows.size() >= split);
    }
    return;
  }
  auto f = about_column(j, of, column, -1, false);
  std::vector<std::int32_t> rows;
  f.text = column + " differs without a majority:";
  for (const auto& group : groups) {
    rows.insert(rows.end(), group.rows.begin(), group.rows.end());
    f.text += (&group == &groups.front() ? " " : ", ") + j.entities.name(group.rows.front()) +
              (group.rows.size() > 1 ? " and " + std::to_string(group.rows.size() - 1) + " more" : "") + " " +
              clip(group.text);
    for (const auto row : group.rows) f.members.push_back(j.entities.name(row));
  }
  j.add(std::move(f), rows);
}

}  // namespace

void judge_column(Judgement& j, const Majority& of, const std::string& column,
                  const std::vector<std::int32_t>& rows, const std::vector<double>& values) {
  judge_value_groups(j, of, column, value_groups(column, rows, values));
}

void judge_column(Judgement& j, const Majority& of, const std::string& column,
                  const std::vector<std::int32_t>& rows, const std::vector<std::string>& values) {
  judge_value_groups(j, of, column, value_groups(column, rows, values));
}

}  // namespace assay::verdict
