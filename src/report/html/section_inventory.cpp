// SPDX-License-Identifier: Apache-2.0
// What the machine is made of, and under what circumstances it was measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/units.hpp"
#include "report/html/markup.hpp"
#include "report/html/sections.hpp"
#include "report/summary_data.hpp"

namespace assay::report {
namespace {

std::string number_text(double value, const std::string& unit) {
  if (std::isnan(value)) return "unsupported";
  if (unit == "B") return format_bytes(static_cast<std::uint64_t>(value));
  return unit.empty() || unit == "count" || unit == "1" ? fmt::format("{:.6g}", value)
                                                        : format_quantity(value, unit);
}

/// One column boiled down: its values, the most frequent first, with the owners of the others.
std::vector<Cell> column_row(const Page& page, const results::InventoryTable& table, const std::string& name,
                             const std::vector<std::string>& values) {
  std::map<std::string, std::vector<std::int32_t>> by_value;
  for (std::size_t i = 0; i < std::min(values.size(), table.entity.size()); ++i)
    by_value[values[i]].push_back(table.entity[i]);
  std::vector<std::pair<std::string, const std::vector<std::int32_t>*>> order;
  for (const auto& [value, rows] : by_value) order.emplace_back(value, &rows);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second->size() > b.second->size(); });
  std::string common, others;
  for (std::size_t i = 0; i < order.size() && i < 4; ++i) {
    const auto& [value, rows] = order[i];
    const std::string text = escaped(value.empty() ? "unknown" : value);
    if (i == 0) {
      common = text + fmt::format(" <span class=\"dim\">{} of {}</span>", rows->size(), table.entity.size());
      continue;
    }
    others += (others.empty() ? "" : "; ") + text + ": ";
    for (std::size_t k = 0; k < std::min<std::size_t>(3, rows->size()); ++k)
      others += (k == 0 ? "" : ", ") + part_link(page.in.judgement.entities.name((*rows)[k]));
    if (rows->size() > 3) others += fmt::format(" and {} more", rows->size() - 3);
  }
  if (order.size() > 4) others += fmt::format("; {} more values", order.size() - 4);
  if (order.size() == table.entity.size() && order.size() > 3) {
    common = fmt::format("<span class=\"dim\">{} different values</span>", order.size());
    others = "";
  }
  return {cell(name), markup_cell(common, "wide"), markup_cell(others.empty() ? "-" : others, "wide")};
}

std::string inventory_tables(const Page& page) {
  std::string out;
  for (const auto& [kind, t] : page.in.results.inventory) {
    std::vector<std::vector<Cell>> rows;
    for (const auto& [name, values] : t.text) rows.push_back(column_row(page, t, name, values));
    for (const auto& [name, values] : t.number) {
      const auto unit = t.unit.find(name);
      std::vector<std::string> texts;
      for (const double v : values) texts.push_back(number_text(v, unit == t.unit.end() ? "" : unit->second));
      rows.push_back(column_row(page, t, name, texts));
    }
    if (!rows.empty())
      out += "<h3>" + escaped(kind) + "</h3>\n" +
             table(fmt::format("{}: {} in the inventory", kind, t.entity.size()),
                   {{"property"}, {"most have", "wide"}, {"others", "wide"}}, rows, 12);
  }
  return out.empty() ? none("The file holds no inventory.") : out;
}

std::string selftests(const Page& page) {
  const auto sums = selftest_sums(page.in.results);
  if (sums.empty()) return none("No self-test was run: detection of wrong values is not proven.");
  std::vector<std::vector<Cell>> rows;
  for (const auto& [checker, s] : sums)
    rows.push_back(
        {markup_cell(state_chip(s.injected > 0 && s.caught == s.injected ? "yes" : "no"), "nowrap"),
         cell(checker), number_cell(std::to_string(s.injected)), number_cell(std::to_string(s.caught)),
         number_cell(std::to_string(s.located))});
  return table("Injected corruptions and what the checkers detected",
               {{"caught all"}, {"checker"}, {"corrupted", "num"}, {"caught", "num"}, {"located", "num"}},
               rows);
}

std::string environment(const Page& page) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> by_key;
  for (const auto& e : page.in.results.environment) by_key[e.key][e.value].push_back(e.node);
  if (by_key.empty()) return none("The file holds no environment.");
  std::vector<std::vector<Cell>> rows;
  for (const auto& [key, values] : by_key) {
    constexpr std::size_t most = 4;
    std::vector<std::pair<std::string, const std::vector<std::string>*>> order;
    for (const auto& [value, nodes] : values) order.emplace_back(value, &nodes);
    std::ranges::stable_sort(order, std::greater{}, [](const auto& one) { return one.second->size(); });
    for (std::size_t i = 0; i < std::min(most, order.size()); ++i) {
      const auto& nodes = *order[i].second;
      rows.push_back(
          {cell(i == 0 ? key : ""), cell(order[i].first, "wide"),
           cell(values.size() == 1
                    ? (nodes.front().empty() ? "all" : fmt::format("{} nodes", nodes.size()))
                    : fmt::format("{}{}", nodes.front(),
                                  nodes.size() > 1 ? fmt::format(" and {} more", nodes.size() - 1) : ""))});
    }
    if (order.size() > most)
      rows.push_back({cell(""), cell(fmt::format("{} more values", order.size() - most), "wide"), cell("")});
  }
  return table("Versions and environment", {{"what"}, {"value", "wide"}, {"where"}}, rows, 20);
}

std::string cases_table(const Page& page) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& c : page.in.results.cases)
    rows.push_back({cell(c.path(), "wide"), cell(results::to_string(c.state)), cell(c.stage),
                    number_cell(std::to_string(c.entities())), number_cell(std::to_string(c.samples())),
                    number_cell(c.shares.wall_s > 0 ? format_seconds(c.shares.wall_s) : "-"),
                    cell(c.case_key, "dim")});
  if (rows.empty()) return none("No case ran.");
  return "<details class=\"more\"><summary>All cases</summary>" +
         table("Cases in the order of the file",
               {{"case", "wide"},
                {"state"},
                {"stage"},
                {"parts", "num"},
                {"samples", "num"},
                {"time", "num"},
                {"case key"}},
               rows, 400) +
         "</details>\n";
}

}  // namespace

std::string inventory_section(const Page& page) {
  const auto& i = page.in.results.info;
  std::string out = inventory_tables(page) + "<h3>Self-tests</h3>\n" + selftests(page) +
                    "<h3>Environment</h3>\n" + environment(page) + cases_table(page);
  out += "<h3>Command line</h3>\n<pre class=\"command\">" + escaped(i.command_line) + "</pre>\n";
  out += fmt::format("<p>Seed {}, assay {}.</p>\n<div class=\"js\" id=\"downloads\"></div>\n", i.seed,
                     escaped(i.assay_version));
  return out + "<p>Every sample: <code>assay export " + escaped(page.in.file) + " --csv</code></p>\n";
}

}  // namespace assay::report
