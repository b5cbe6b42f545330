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

constexpr std::size_t kind_width = 7, state_width = 12, cell_width = 16, most_name = 30;

bool is_row(const results::Entity& e) {
  return e.kind == "node" || e.kind == "device" || e.kind == "numa" || e.kind == "nic";
}

class Table {
 public:
  Table(const results::Results& results, const results::VerdictData& verdict, const Style& style)
      : results_(results),
        verdict_(verdict),
        style_(style),
        width_(static_cast<std::size_t>(std::max(style.width, 80))) {
    for (const auto& e : results.entities)
      if (is_row(e)) name_width_ = std::max(name_width_, columns_of(e.name));
    name_width_ = std::min(name_width_, most_name);
  }

  /// Every part with its state and the reason.
  std::string states() const {
    std::unordered_map<std::int32_t, const results::EntityState*> states;
    for (const auto& s : verdict_.entities) states[s.entity] = &s;
    std::string out = head("kind", "name") + left("state", state_width) + "  reason\n";
    for (std::size_t i = 0; i < results_.entities.size(); ++i) {
      const auto& e = results_.entities[i];
      if (!is_row(e)) continue;
      const auto it = states.find(static_cast<std::int32_t>(i));
      const std::string state = it == states.end() ? "NOT_TESTED" : it->second->state;
      const std::string start = head(e.kind, e.name),
                        reason = it == states.end() ? std::string() : it->second->reason;
      std::string line = wrap(start + left(state, state_width) + (reason.empty() ? "" : "  " + reason),
                              width_, kind_width + 2);
      line.replace(start.size(), state.size(), paint(state, state, style_));
      out += line;
    }
    return out;
  }

  /// As many metrics beside each other as fit, with the parts that have values of them.
  std::string values(const std::vector<Column>& columns) const {
    const std::size_t beside = std::max<std::size_t>(1, (width_ - head("", "").size()) / cell_width);
    std::string out;
    for (std::size_t from = 0; from < columns.size(); from += beside) {
      const std::size_t to = std::min(columns.size(), from + beside);
      out += "\n";
      for (std::size_t i = from; i < to; ++i)
        out += wrap(fmt::format("[{}] {}", i + 1, columns[i].title), width_, 4);
      out += head("kind", "name");
      for (std::size_t i = from; i < to; ++i) out += right(fmt::format("[{}]", i + 1), cell_width);
      out += "\n";
      for (std::size_t row = 0; row < results_.entities.size(); ++row) {
        if (!is_row(results_.entities[row])) continue;
        std::string cells;
        bool any = false;
        for (std::size_t i = from; i < to; ++i) {
          const auto cell = columns[i].cells.find(static_cast<std::int32_t>(row));
          any = any || cell != columns[i].cells.end();
          cells += right(cell == columns[i].cells.end() ? "-" : cell->second, cell_width);
        }
        if (any) out += head(results_.entities[row].kind, results_.entities[row].name) + cells + "\n";
      }
    }
    return out;
  }

 private:
  std::string head(const std::string& kind, const std::string& name) const {
    return left(kind, kind_width) + left(name, name_width_) + "  ";
  }

  const results::Results& results_;
  const results::VerdictData& verdict_;
  const Style& style_;
  std::size_t width_, name_width_ = 8;
};

}  // namespace

std::string table_text(const results::Results& results, const results::VerdictData& verdict,
                       const Style& style) {
  const Table table(results, verdict, style);
  return fmt::format("run {}  {}  level {}  verdict {}\n", results.info.run_id, results.info.started,
                     results.info.level, verdict.state) +
         table.states() + table.values(columns_for(results));
}

}  // namespace assay::report
