// SPDX-License-Identifier: Apache-2.0
// One row per node, device, NUMA domain and NIC: the sheet that gets signed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/units.hpp"
#include "report/layout.hpp"
#include "report/report.hpp"
#include "report/summary_data.hpp"

namespace assay::report {
namespace {

struct Column {
  std::string title;
  std::unordered_map<std::int32_t, std::string> cells;
};

std::vector<Column> columns_for(const results::Results& results) {
  std::vector<Column> columns;
  for (const auto& c : results.cases) {
    if (c.kind == "link") continue;  // a link is no row of this table
    for (const auto& m : c.metrics) {
      if (m.role != results::Role::metric || m.better == results::Better::none) continue;
      Column column{c.path() + ":" + m.name, {}};
      const auto medians = row_medians(c, m);
      for (std::size_t r = 0; r < medians.size(); ++r) {
        if (!std::isnan(medians[r])) column.cells[c.entity[r]] = format_quantity(medians[r], m.unit);
      }
      if (!column.cells.empty()) columns.push_back(std::move(column));
    }
  }
  return columns;
}

}  // namespace

std::string table_text(const results::Results& results, const results::VerdictData& verdict,
                       const Style& style) {
  const auto columns = columns_for(results);
  std::string out = fmt::format("run {}  {}  level {}  verdict {}\n", results.info.run_id,
                                results.info.started, results.info.level, verdict.state);
  for (std::size_t i = 0; i < columns.size(); ++i) out += fmt::format("[{}] {}\n", i + 1, columns[i].title);
  std::unordered_map<std::int32_t, const results::EntityState*> states;
  for (const auto& s : verdict.entities) states[s.entity] = &s;
  std::size_t name_width = 8;
  for (const auto& e : results.entities) {
    if (e.kind == "node" || e.kind == "device" || e.kind == "numa" || e.kind == "nic")
      name_width = std::max(name_width, columns_of(e.name));
  }
  name_width = std::min<std::size_t>(name_width, 48);
  out += left("kind", 7) + left("name", name_width) + "  " + left("state", 12);
  for (std::size_t i = 0; i < columns.size(); ++i) out += right(fmt::format("[{}]", i + 1), 16);
  out += "  reason\n";
  for (std::size_t i = 0; i < results.entities.size(); ++i) {
    const auto& e = results.entities[i];
    if (e.kind != "node" && e.kind != "device" && e.kind != "numa" && e.kind != "nic") continue;
    const auto row = static_cast<std::int32_t>(i);
    const auto it = states.find(row);
    const std::string state = it == states.end() ? "NOT_TESTED" : it->second->state;
    out += left(e.kind, 7) + left(e.name, name_width) + "  " + paint(state, left(state, 12), style);
    for (const auto& column : columns) {
      const auto cell = column.cells.find(row);
      out += right(cell == column.cells.end() ? "-" : cell->second, 16);
    }
    out += "  " + (it == states.end() ? std::string() : it->second->reason) + "\n";
  }
  return out;
}

}  // namespace assay::report
