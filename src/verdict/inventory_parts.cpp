// SPDX-License-Identifier: Apache-2.0
#include "verdict/inventory_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

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

bool near(double a, double b) {
  return a == b || std::abs(a - b) <= constants::inventory_tolerance * std::max(std::abs(a), std::abs(b));
}

/// Parts with one value of a column.
struct Camp {
  std::string text;
  double number = results::not_taken;
  std::vector<std::int32_t> rows;
};

std::vector<Camp> camps_of(const std::vector<std::int32_t>& rows, const std::vector<double>& values) {
  std::vector<std::pair<double, std::int32_t>> sorted;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i])) sorted.emplace_back(values[i], rows[i]);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<Camp> camps;
  for (const auto& [value, row] : sorted) {
    if (camps.empty() || !near(camps.back().number, value)) camps.push_back({number_text(value), value, {}});
    camps.back().rows.push_back(row);
  }
  return camps;
}

std::vector<Camp> camps_of(const std::vector<std::int32_t>& rows, const std::vector<std::string>& values) {
  std::map<std::string, std::vector<std::int32_t>> by_text;
  for (std::size_t i = 0; i < values.size(); ++i) by_text[values[i]].push_back(rows[i]);
  std::vector<Camp> camps;
  for (auto& [text, of] : by_text)
    camps.push_back({text.empty() ? "nothing" : text, results::not_taken, std::move(of)});
  return camps;
}

std::string clip(const std::string& text) { return text.size() <= 60 ? text : text.substr(0, 57) + "..."; }

void add_mismatch(Judgement& j, const Majority& of, const std::string& column, const Camp& camp, const Camp& majority,
                  bool split) {
  const bool missing = of.is_amount(column) && camp.number < majority.number;
  auto add = [&](std::int32_t row, const std::vector<std::int32_t>& rows) {
    // A second population is how the machine was built or managed; single deviants with less of something
    // lost a part.
    auto f =
        j.about(row, missing && !split ? "FAIL" : "WARN", "fact", missing && !split ? "missing" : "mismatch");
    f.suite = "inventory";
    f.metric = column;
    if (!std::isnan(camp.number)) {
      f.value = camp.number;
      f.reference = majority.number;
    }
    f.controls = static_cast<std::int64_t>(majority.rows.size());
    f.action = missing && !split ? "TRIAGE" : "CONFIG";
    f.evidence = "/inventory/" + of.table + "/" + column;
    if (rows.size() > 1) {
      for (const auto r : rows) f.members.push_back(j.entities.name(r));
      f.text =
          std::to_string(rows.size()) + " " + of.many + " (" + f.members.front() + " to " + f.members.back() + "): ";
    } else {
      f.text = f.name + ": ";
    }
    f.text += column + " is " + clip(camp.text) + ", " + std::to_string(majority.rows.size()) +
              " " + of.many + " have " + clip(majority.text);
    j.add(std::move(f), rows);
  };
  if (split) {
    add(-1, camp.rows);
  } else {
    for (const auto row : camp.rows) add(row, {row});
  }
}

void judge_camps(Judgement& j, const Majority& of, const std::string& column, const std::vector<Camp>& camps) {
  if (camps.size() < 2) return;
  std::size_t total = 0;
  const Camp* largest = &camps.front();
  for (const auto& camp : camps) {
    total += camp.rows.size();
    if (camp.rows.size() > largest->rows.size()) largest = &camp;
  }
  if (total >= constants::majority_min && 2 * largest->rows.size() > total) {
    const auto split =
        std::max(constants::split_min,
                 static_cast<std::size_t>(std::ceil(constants::split_fraction * static_cast<double>(total))));
    for (const auto& camp : camps) {
      if (&camp != largest) add_mismatch(j, of, column, camp, *largest, camp.rows.size() >= split);
    }
    return;
  }
  auto f = j.about(-1, "WARN", "fact", "mismatch");
  f.suite = "inventory";
  f.metric = column;
  f.action = "CONFIG";
  f.evidence = "/inventory/" + of.table + "/" + column;
  std::vector<std::int32_t> rows;
  f.text = column + " differs without a majority:";
  for (const auto& camp : camps) {
    rows.insert(rows.end(), camp.rows.begin(), camp.rows.end());
    f.text += (&camp == &camps.front() ? " " : ", ") + j.entities.name(camp.rows.front()) +
              (camp.rows.size() > 1 ? " and " + std::to_string(camp.rows.size() - 1) + " more" : "") + " " +
              clip(camp.text);
    for (const auto row : camp.rows) f.members.push_back(j.entities.name(row));
  }
  j.add(std::move(f), rows);
}

}  // namespace

void judge_column(Judgement& j, const Majority& of, const std::string& column, const std::vector<std::int32_t>& rows,
                  const std::vector<double>& values) {
  judge_camps(j, of, column, camps_of(rows, values));
}

void judge_column(Judgement& j, const Majority& of, const std::string& column, const std::vector<std::int32_t>& rows,
                  const std::vector<std::string>& values) {
  judge_camps(j, of, column, camps_of(rows, values));
}

}  // namespace assay::verdict
