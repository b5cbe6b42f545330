// SPDX-License-Identifier: Apache-2.0
// Two sets of runs side by side: `assay compare`.
#include "report/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "report/layout.hpp"
#include "results/json_io.hpp"

namespace assay::report {
namespace {

using verdict::CompareResult;
using verdict::MetricComparison;
using verdict::Ratio;
using verdict::Relation;

/// What was typed, and of a directory or list what it holds.
std::string files_of(const std::vector<verdict::RunSource>& runs, const std::string& given) {
  std::string text = runs.empty() ? "nothing" : runs.front().file;
  if (runs.size() > 1) text += fmt::format(" and {} more", runs.size() - 1);
  return given.empty() || given == text ? text : given + " (" + text + ")";
}

std::string ratio_text(const Ratio& r) {
  std::string text = fmt::format("{:.4f}", r.estimate);
  if (std::isfinite(r.low) && std::isfinite(r.high))
    text += fmt::format(" ({:.4f} to {:.4f})", r.low, r.high);
  return text;
}

std::string p_text(double p) { return p < 0.0001 ? "p <0.0001" : fmt::format("p {:.4f}", p); }

std::string units_text(const MetricComparison& m) {
  const std::string unit = m.unit_of + (m.a.units == 1 && m.b.units == 1 ? "" : "s");
  const std::string n = m.a.units == m.b.units ? fmt::format("{} {}", m.a.units, unit)
                                               : fmt::format("{} and {} {}", m.a.units, m.b.units, unit);
  return n + (m.paired ? " in pairs" : "");
}

void numbers_line(const MetricComparison& m, std::size_t width, std::string& out) {
  if (std::isnan(m.a.median) || std::isnan(m.b.median)) return;
  std::string text = fmt::format("{} -> {}, {}", format_quantity(m.a.median, m.unit),
                                 format_quantity(m.b.median, m.unit), units_text(m));
  if (!std::isnan(m.ratio.estimate)) text += ", rate B/A " + ratio_text(m.ratio);
  if (!std::isnan(m.p)) text += ", " + p_text(m.p_adjusted);
  out += "    " + wrap(text, width - 4, 4);
}

/// What a mean does not tell: spread, the slow end, and how much of it is the clock.
void tail_line(const MetricComparison& m, std::size_t width, std::string& out) {
  if (std::isnan(m.p)) return;
  std::string text = fmt::format("spread {} -> {}; worst {} {} -> {} {}", percent_text(m.a.spread),
                                 percent_text(m.b.spread), m.a.worst_name, format_quantity(m.a.worst, m.unit),
                                 m.b.worst_name, format_quantity(m.b.worst, m.unit));
  if (!std::isnan(m.a.p5) && !std::isnan(m.b.p5))
    text += fmt::format("; p5 {} -> {}", format_quantity(m.a.p5, m.unit), format_quantity(m.b.p5, m.unit));
  if (!std::isnan(m.clock_ratio))
    text += fmt::format("; clock B/A {:.4f}, at equal clock {}", m.clock_ratio, ratio_text(m.at_clock));
  out += "    " + wrap(text, width - 4, 4);
}

std::string metric_text(const MetricComparison& m, std::size_t width, const Style& style) {
  constexpr std::size_t word = 14;
  const std::string relation = verdict::to_string(m.relation);
  std::string out = paint(m.relation == Relation::slower      ? "FAIL"
                          : m.relation == Relation::ambiguous ? "WARN"
                                                              : "",
                          relation, style) +
                    std::string(word - std::min(word - 1, relation.size()), ' ') +
                    fit(m.full(), width - word) + "\n";
  numbers_line(m, width, out);
  tail_line(m, width, out);
  if (!m.note.empty()) out += "    " + wrap(m.note, width - 4, 4);
  return out;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const Ratio& r) {
  return {{"estimate", number(r.estimate)}, {"low", number(r.low)}, {"high", number(r.high)}};
}

Json json_of(const verdict::SideSummary& s) {
  return {{"units", s.units},           {"nodes", s.nodes},   {"median", number(s.median)},
          {"spread", number(s.spread)}, {"p5", number(s.p5)}, {"worst", number(s.worst)},
          {"worst_name", s.worst_name}};
}

Json json_of(const std::vector<verdict::RunSource>& runs) {
  Json list = Json::array();
  for (const auto& r : runs)
    list.push_back(Json{{"file", r.file}, {"run_id", r.run_id}, {"started", r.started}, {"hash", r.hash}});
  return list;
}

}  // namespace

std::string compare_text(const CompareResult& result, const verdict::CompareOptions& options,
                         const Style& style) {
  const auto width = static_cast<std::size_t>(std::max(style.width, 60));
  const std::string rule(width, '-');
  std::string out = wrap(fmt::format("A  {} node{}: {}", result.nodes_a, result.nodes_a == 1 ? "" : "s",
                                     files_of(result.a, result.given_a)),
                         width, 3) +
                    wrap(fmt::format("B  {} node{}, {} of them also in A: {}", result.nodes_b,
                                     result.nodes_b == 1 ? "" : "s", result.nodes_common,
                                     files_of(result.b, result.given_b)),
                         width, 3) +
                    rule + "\n";
  std::vector<const MetricComparison*> order;
  for (const auto& m : result.metrics) order.push_back(&m);
  // What must be looked at stands first.
  const auto rank = [](const MetricComparison* m) {
    constexpr Relation first[] = {Relation::slower, Relation::ambiguous, Relation::incomparable,
                                  Relation::faster, Relation::same};
    return std::find(std::begin(first), std::end(first), m->relation) - std::begin(first);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* x, const auto* y) { return rank(x) < rank(y); });
  for (const auto* m : order) out += metric_text(*m, width, style);
  out += rule + "\n";
  for (const auto& note : result.notes) out += wrap("note  " + note, width, 6);
  const auto judged =
      std::count_if(order.begin(), order.end(), [](const auto* m) { return !std::isnan(m->p); });
  out += wrap(fmt::format("judged: {} of {} metrics, margin {}, error {} over all (Holm), the unit is the {}",
                          judged, order.size(), percent_text(options.margin), percent_text(options.alpha),
                          options.device_unit ? "device" : "node"),
              width, 2);
  if (!std::isnan(result.ratio))
    out += fmt::format("geometric mean of the rates B/A: {:.4f}\n", result.ratio);
  if (result.relation == Relation::insufficient)
    out += result.metrics.empty() ? "no common metric\n" : "insufficient nodes\n";
  return out + fmt::format("{} (exit {})\n", verdict::to_string(result.relation), result.exit_code);
}

std::string compare_json(const CompareResult& result, const verdict::CompareOptions& options) {
  Json metrics = Json::array();
  for (const auto& m : result.metrics) {
    metrics.push_back(Json{{"suite", m.suite},
                           {"case", m.name},
                           {"metric", m.metric},
                           {"unit", m.unit},
                           {"better", m.higher_is_better ? "higher" : "lower"},
                           {"relation", verdict::to_string(m.relation)},
                           {"unit_of", m.unit_of},
                           {"paired", m.paired},
                           {"method", m.method},
                           {"a", json_of(m.a)},
                           {"b", json_of(m.b)},
                           {"ratio", json_of(m.ratio)},
                           {"equivalence", json_of(m.equivalence)},
                           {"at_clock", json_of(m.at_clock)},
                           {"clock_ratio", number(m.clock_ratio)},
                           {"p", number(m.p)},
                           {"p_adjusted", number(m.p_adjusted)},
                           {"note", m.note}});
  }
  const Json json{{"relation", verdict::to_string(result.relation)},
                  {"exit_code", result.exit_code},
                  {"margin", options.margin},
                  {"alpha", options.alpha},
                  {"ratio", number(result.ratio)},
                  {"nodes_a", result.nodes_a},
                  {"nodes_b", result.nodes_b},
                  {"nodes_common", result.nodes_common},
                  {"given_a", result.given_a},
                  {"given_b", result.given_b},
                  {"a", json_of(result.a)},
                  {"b", json_of(result.b)},
                  {"metrics", std::move(metrics)},
                  {"notes", result.notes}};
  return results::dump(json) + "\n";
}

}  // namespace assay::report
