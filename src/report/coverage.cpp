// SPDX-License-Identifier: Apache-2.0
// Which links between nodes a run has exercised: a line for people, a table for programs.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "report/layout.hpp"
#include "report/report.hpp"
#include "report/summary_data.hpp"
#include "results/export.hpp"
#include "verdict/link_coverage.hpp"

namespace assay::report {
namespace {

using verdict::LinkUse;

void add_row(std::string& out, const char* level, const std::string& a, const std::string& b,
             const LinkUse& use) {
  out += fmt::format("{},{},{},", level, results::csv_field(a), results::csv_field(b));
  out += use.known ? fmt::format("{:.0f},{}\n", use.bytes, use.cases.size()) : ",\n";
}

std::string idle_text(const std::vector<std::string>& idle) {
  constexpr std::size_t shown = 6;
  if (idle.empty()) return "";
  std::string text = "; no traffic on " + idle.front();
  for (std::size_t i = 1; i < std::min(idle.size(), shown); ++i) text += ", " + idle[i];
  return text + (idle.size() > shown ? fmt::format(" and {} more", idle.size() - shown) : "");
}

}  // namespace

std::string coverage_csv(const results::Results& results, const results::VerdictData&) {
  const auto coverage = verdict::link_coverage(results);
  const auto name = [&](std::int32_t row) { return entity_name(results, row); };
  const auto& nic = results.inventory.find("nic");
  std::map<std::int32_t, std::string> leaf;
  if (nic != results.inventory.end() && nic->second.text.contains("switch"))
    for (std::size_t i = 0; i < nic->second.entity.size(); ++i)
      leaf[nic->second.entity[i]] = nic->second.text.at("switch")[i];
  std::string out = "level,from,to,bytes,cases\n";
  for (const auto& [pair, use] : coverage.nodes)
    add_row(out, "node", name(pair.first), name(pair.second), use);
  for (const auto& [pair, use] : coverage.nics) add_row(out, "nic", name(pair.first), name(pair.second), use);
  for (const auto& [row, use] : coverage.cables) add_row(out, "cable", name(row), leaf[row], use);
  for (const auto& [pair, use] : coverage.switches) add_row(out, "switch", pair.first, pair.second, use);
  return out;
}

std::string coverage_line(const results::Results& results) {
  const auto coverage = verdict::link_coverage(results);
  if (!coverage.any()) return "";
  double bytes = 0;
  for (const auto& [pair, use] : coverage.nodes) bytes += use.bytes;
  std::string text =
      fmt::format("links: {} of {:.0f} pairs of nodes", coverage.nodes.size(), coverage.node_pairs);
  const std::size_t along = coverage.along_rails;
  if (coverage.nic_pairs > 0) text += fmt::format(", {} of {:.0f} pairs of NICs", along, coverage.nic_pairs);
  if (coverage.nics.size() > along) text += fmt::format(" and {} across rails", coverage.nics.size() - along);
  std::vector<std::string> idle;
  for (const auto& [row, use] : coverage.cables)
    if (coverage.idle(use)) idle.push_back(entity_name(results, row));
  std::size_t crossed = 0;
  for (const auto& [pair, use] : coverage.switches) {
    crossed += use.bytes > 0 ? 1 : 0;
    if (coverage.idle(use)) idle.push_back(pair.first + "-" + pair.second);
  }
  if (!coverage.switches.empty())
    text += fmt::format(", {} of {} pairs of switches", crossed, coverage.switches.size());
  return text + ", " + format_quantity(bytes, "B") + idle_text(idle);
}

}  // namespace assay::report
