// SPDX-License-Identifier: Apache-2.0
// This run beside earlier ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "report/html/markup.hpp"
#include "report/html/sections.hpp"
#include "report/html/svg.hpp"
#include "verdict/trend.hpp"

namespace assay::report {
namespace {

using verdict::TrendMetric;

std::string date_of(const verdict::Snapshot& run) { return run.source.started.substr(0, 10); }

std::string trend_picture(const std::vector<verdict::Snapshot>& runs, const TrendMetric& m) {
  constexpr double left = 76, right = 420, top = 12, bottom = 150;
  std::vector<double> ys;
  for (const auto& p : m.points) ys.insert(ys.end(), {p.low, p.median, p.high});
  const Scale x{-0.5, static_cast<double>(runs.size()) - 0.5, left, right, false},
      y = scale_of(ys, bottom, top);
  std::vector<double> xs, lows, highs;
  std::vector<std::pair<double, double>> line;
  for (const auto& p : m.points) {
    xs.push_back(x.at(static_cast<double>(p.run)));
    lows.push_back(y.at(p.low));
    highs.push_back(y.at(p.high));
    line.emplace_back(xs.back(), y.at(p.median));
  }
  std::string body = svg_axis_left(y, left, right, m.unit) + svg_line(left, bottom, right, bottom, "axis") +
                     svg_band(xs, lows, highs, "band") + svg_path(line, "line");
  for (const auto& [px, py] : line) body += svg_dot(px, py, 2.2, "dot own");
  for (const auto& c : m.changes)
    if (c.name == "fleet" || &c == &m.changes.front())
      body += svg_line(x.at(static_cast<double>(c.run) - 0.5), top, x.at(static_cast<double>(c.run) - 0.5),
                       bottom, "bound");
  body += svg_text(left, bottom + 15, date_of(runs.front()), "tick") +
          svg_text(right, bottom + 15, date_of(runs.back()), "tick end");
  return svg(right + 20, bottom + 24, body,
             m.metric + " over the runs: median and the band of 5 to 95 % of the parts");
}

/// The picture in numbers, for those who cannot see it.
std::string points_table(const std::vector<verdict::Snapshot>& runs, const TrendMetric& m) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& p : m.points)
    rows.push_back({cell(runs[p.run].source.started, "nowrap"), number_cell(quantity(p.low, m.unit)),
                    number_cell(quantity(p.median, m.unit)), number_cell(quantity(p.high, m.unit))});
  return "<details class=\"more\"><summary>As a table</summary>" +
         table(m.metric + " by run", {{"started"}, {"5 %", "num"}, {"median", "num"}, {"95 %", "num"}},
               rows) +
         "</details>";
}

bool has_enough_runs(const TrendMetric& m) { return m.points.size() >= verdict::least_runs_of_change; }

/// What it means that no change is told: none in metrics of enough runs, or nothing in those of few.
std::string no_change_words(std::size_t runs, const std::vector<TrendMetric>& trend) {
  const auto least = verdict::least_runs_of_change;
  const auto enough = static_cast<std::size_t>(std::ranges::count_if(trend, has_enough_runs));
  if (enough == 0)
    return fmt::format("{} runs{}: lasting changes are sought in metrics with {} or more runs.", runs,
                       runs < least ? "" : ", and no metric in as many of them", least);
  const std::string none = "No lasting change of 2 % or more beyond run-to-run variation.";
  const std::size_t few = trend.size() - enough;
  return few == 0
             ? none
             : none + fmt::format(" {} of {} metrics have fewer than {} runs: none is looked for in them.",
                                  few, trend.size(), least);
}

std::string changes_table(const std::vector<verdict::Snapshot>& runs, const std::vector<TrendMetric>& trend) {
  std::vector<std::pair<const TrendMetric*, const verdict::TrendChange*>> all;
  for (const auto& m : trend)
    for (const auto& c : m.changes) all.emplace_back(&m, &c);
  if (all.empty()) return "<p>" + no_change_words(runs.size(), trend) + "</p>\n";
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second->change) > std::abs(b.second->change);
  });
  std::vector<std::vector<Cell>> rows;
  for (const auto& [m, c] : all) {
    const auto& run = runs[c->run];
    rows.push_back(
        {cell(run.source.started, "nowrap"), markup_cell(c->name == "fleet" ? "fleet" : part_link(c->name)),
         cell(m->metric, "wide"), number_cell(signed_percent(c->change)),
         number_cell(fmt::format("{} before, {} since", c->before, c->after)), cell(run.source.file, "dim")});
  }
  return table("Changes and since when",
               {{"since"}, {"part"}, {"metric", "wide"}, {"rate", "num"}, {"runs", "num"}, {"first file"}},
               rows, 20);
}

}  // namespace

std::string few_runs_words(const std::vector<verdict::Snapshot>& runs) {
  const auto trend = verdict::trend_of(runs);
  return std::ranges::any_of(trend, has_enough_runs) ? "" : no_change_words(runs.size(), trend);
}

std::string history_section(const Page& page) { return history_of(page.in.runs); }

std::string history_of(const std::vector<verdict::Snapshot>& runs) {
  if (runs.size() < 2)
    return none("Only one run is given: use --history DIR or several files for metrics over runs.");
  const auto trend = verdict::trend_of(runs);
  std::string out = fmt::format(
      "<p>{} runs from {} to {}. Median over the parts with the band of 5 to 95 % of them; an upright line "
      "is a change that lasted.</p>\n",
      runs.size(), escaped(date_of(runs.front())), escaped(date_of(runs.back())));
  if (trend.empty()) return out + none("No metric was measured in two of these runs in the same way.");
  out += "<h3>Changes</h3>\n" + changes_table(runs, trend) + "<div class=\"pair\">";
  // What changed is drawn first.
  std::vector<std::size_t> order;
  for (const bool changed : {true, false})
    for (std::size_t i = 0; i < trend.size(); ++i)
      if (trend[i].changes.empty() != changed) order.push_back(i);
  constexpr std::size_t most = 60;
  for (std::size_t k = 0; k < std::min(most, order.size()); ++k) {
    const auto& m = trend[order[k]];
    out += "<div><h3>" + escaped(m.metric) + "</h3>" +
           figure(trend_picture(runs, m),
                  fmt::format("{} runs", m.points.size()) +
                      (has_enough_runs(m) ? fmt::format(", {} changes", m.changes.size()) : ""),
                  fmt::format("trend/{}", order[k])) +
           points_table(runs, m) + "</div>\n";
  }
  out += "</div>\n";
  return order.size() > most
             ? out + none(fmt::format("{} more metrics without a change are not drawn.", order.size() - most))
             : out;
}

}  // namespace assay::report
