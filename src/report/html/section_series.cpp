// SPDX-License-Identifier: Apache-2.0
// Metrics by size, and metrics over the fleet.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "report/html/grouping.hpp"
#include "report/html/markup.hpp"
#include "report/html/sections.hpp"
#include "report/html/svg.hpp"
#include "report/words.hpp"
#include "verdict/baseline.hpp"

namespace assay::report {
namespace {

std::vector<double> medians_of(const verdict::Series& s) {
  std::vector<double> out;
  for (const auto& row : s.rows) out.push_back(row.median);
  return out;
}

constexpr double sweep_left = 76, sweep_right = 420, sweep_top = 10, sweep_bottom = 200;

/// A line through the sizes; a value that is not known breaks it.
std::string sweep_line(const Sweep& s, const std::vector<double>& values, const Scale& x, const Scale& y,
                       const char* style) {
  std::string out;
  std::vector<std::pair<double, double>> piece;
  const auto flush = [&] {
    if (piece.size() == 1) out += svg_dot(piece.front().first, piece.front().second, 2.5, "dot peer");
    if (piece.size() > 1) out += svg_path(piece, style);
    piece.clear();
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && values[i] > 0)
      piece.emplace_back(x.at(s.sizes[i]), y.at(values[i]));
    else
      flush();
  }
  flush();
  return out;
}

std::string sweep_picture(const Sweep& s, const SweepLines& l) {
  std::vector<double> all;
  for (const auto* line : {&l.low, &l.middle, &l.high, &l.bound, &l.previous})
    all.insert(all.end(), line->begin(), line->end());
  for (const auto& [name, values] : l.blamed) all.insert(all.end(), values.begin(), values.end());
  const Scale x = scale_of(s.sizes, sweep_left, sweep_right, true),
              y = scale_of(all, sweep_bottom, sweep_top, true);
  std::string body = svg_axis_left(y, sweep_left, sweep_right, s.unit) +
                     svg_line(sweep_left, sweep_bottom, sweep_right, sweep_bottom, "axis");
  double last = 0;
  for (const double size : s.sizes) {
    if (x.at(size) - last < 44 && last > 0) continue;
    last = x.at(size);
    body += svg_text(last, sweep_bottom + 15, format_bytes(static_cast<std::uint64_t>(size)), "tick middle");
  }
  std::vector<double> xs, lows, highs;
  for (std::size_t i = 0; i < s.sizes.size(); ++i) {
    xs.push_back(x.at(s.sizes[i]));
    lows.push_back(y.at(l.low[i]));
    highs.push_back(y.at(l.high[i]));
  }
  body += svg_band(xs, lows, highs, "band") + sweep_line(s, l.previous, x, y, "line before") +
          sweep_line(s, l.bound, x, y, "bound path");
  for (const auto& [name, values] : l.blamed) body += sweep_line(s, values, x, y, "line blamed");
  body += sweep_line(s, l.middle, x, y, "line");
  for (std::size_t i = 0; i < s.sizes.size(); ++i) body += svg_dot(xs[i], y.at(l.middle[i]), 2.5, "dot own");
  return svg(sweep_right + 20, sweep_bottom + 24, body,
             s.title + " by size: median and the band of 5 to 95 % of the parts");
}

/// What is drawn beside the median, or that there is none of it.
std::string sweep_caption(const Page& page, const Sweep& s, const SweepLines& l) {
  std::string text = fmt::format("{} sizes; band: its peers, 5 to 95 %; ", s.sizes.size());
  text += l.bound_kind.empty() ? "no bound was given for it; " : "dashed: " + l.bound_kind + "; ";
  text += page.in.previous == nullptr ? "no run before"
          : std::ranges::all_of(l.previous, [](double v) { return std::isnan(v); })
              ? "not measured alike in " + page.in.previous->source.file
              : "dotted: " + page.in.previous->source.file;
  for (const auto& [name, values] : l.blamed) text += "; red: " + name;
  return text;
}

std::string sweep_table(const Sweep& s, const SweepLines& l) {
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < s.sizes.size(); ++i) {
    std::string blamed;
    for (const auto& [name, values] : l.blamed)
      if (std::isfinite(values[i]))
        blamed += (blamed.empty() ? "" : ", ") + name + " " + format_quantity(values[i], s.unit);
    rows.push_back({number_cell(format_bytes(static_cast<std::uint64_t>(s.sizes[i]))),
                    number_cell(quantity(l.middle[i], s.unit)), number_cell(quantity(l.low[i], s.unit)),
                    number_cell(quantity(l.high[i], s.unit)), number_cell(quantity(l.bound[i], s.unit)),
                    number_cell(quantity(l.previous[i], s.unit)),
                    number_cell(std::to_string(s.series[i]->rows.size())),
                    cell(blamed.empty() ? "-" : blamed)});
  }
  return "<details class=\"more\"><summary>As a table</summary>" +
         table(s.title,
               {{"size", "num"},
                {"median", "num"},
                {"5 %", "num"},
                {"95 %", "num"},
                {"bound", "num"},
                {"run before", "num"},
                {"parts", "num"},
                {"blamed"}},
               rows) +
         "</details>";
}

/// The strictest bound of the contract on the slow side of all parts of a metric; NaN without any.
double contract_bound(const Page& page, const verdict::Series& s) {
  double bound = results::not_taken;
  const bool higher = s.better != results::Better::lower;
  for (const auto& r : page.contract) {
    if (r.metric != s.full() || r.is_min != higher || !r.of_all) continue;
    if (std::isnan(bound) || (higher ? r.bound > bound : r.bound < bound)) bound = r.bound;
  }
  return bound;
}

/// What the baseline of a metric reached, of several strata the slowest; NaN without any.
double baseline_bound(const Page& page, const verdict::Series& s) {
  double bound = results::not_taken;
  const bool higher = s.better != results::Better::lower;
  const auto& baseline = page.in.judgement.options.baseline;
  if (baseline == nullptr) return bound;
  for (const auto& v : baseline->values) {
    if (v.metric != s.full() || s.first == nullptr || v.case_key != s.first->case_key) continue;
    const double value = verdict::value_of(v.log_rate, higher);
    if (std::isnan(bound) || (higher ? value < bound : value > bound)) bound = value;
  }
  return bound;
}

/// By the contract where it bounds any size, else by the baseline: a line has one meaning.
void add_bounds(const Page& page, const Sweep& s, SweepLines& l) {
  using BoundOf = double (*)(const Page&, const verdict::Series&);
  const std::pair<const char*, BoundOf> kinds[] = {{"contract", contract_bound},
                                                   {"baseline", baseline_bound}};
  for (const auto& [kind, bound_of] : kinds) {
    l.bound.clear();
    for (const auto* series : s.series) l.bound.push_back(bound_of(page, *series));
    if (std::ranges::all_of(l.bound, [](double b) { return std::isnan(b); })) continue;
    l.bound_kind = kind;
    return;
  }
}

double before_of(const Page& page, const verdict::Series& s) {
  if (page.in.previous == nullptr || s.first == nullptr) return results::not_taken;
  for (const auto& old : page.in.previous->series) {
    if (old.full() != s.full() || old.case_key != s.first->case_key) continue;
    std::vector<double> rates(old.log_rate.begin(), old.log_rate.end());
    return verdict::value_of(median(rates), old.higher_is_better);
  }
  return results::not_taken;
}

/// Names of the parts farthest to the slow side, at most three, when they are at all apart.
std::string tails_of(const Page& page, const verdict::Series& s, double centre) {
  std::vector<std::pair<double, const verdict::SeriesRow*>> slow;
  for (const auto& row : s.rows)
    if (const double d = verdict::deficit_of(row.median, centre, s.better != results::Better::lower);
        !std::isnan(d))
      slow.emplace_back(-d, &row);
  const std::size_t n = std::min<std::size_t>(3, slow.size());
  std::partial_sort(slow.begin(), slow.begin() + static_cast<std::ptrdiff_t>(n), slow.end(),
                    [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (std::size_t i = 0; i < n && slow[i].first < -0.0005; ++i)
    out += (out.empty() ? "" : ", ") + part_link(verdict::name_of(page.in.judgement, *slow[i].second)) + " " +
           signed_percent(slow[i].first);
  return out.empty() ? "-" : out;
}

/// Metrics whose parts are of several kinds, or under several drivers, kind by kind: each is judged by
/// itself.
std::string strata_table(const Page& page) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& s : page.in.judgement.series) {
    if (!s.judged || s.strata.size() < 2) continue;
    std::vector<std::vector<double>> values(s.strata.size());
    for (const auto& row : s.rows) values[static_cast<std::size_t>(row.stratum)].push_back(row.median);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i].empty()) continue;
      const double centre = median(values[i]);
      rows.push_back(
          {cell(s.full(), "wide"), cell(group_words(s.strata[i]), "wide"),
           number_cell(format_quantity(centre, s.unit)),
           number_cell(values[i].size() < 2 || centre == 0
                           ? "-"
                           : fmt::format("{:.2f} %", 100 * mad_sigma(values[i]) / std::abs(centre))),
           number_cell(std::to_string(values[i].size()))});
    }
  }
  if (rows.empty())
    return "<p>No metric has more than one group: its parts are of one kind, as far as is recorded.</p>\n";
  return "<h3>Group by group</h3>\n" +
         table(
             "Metrics by what their parts are (model, firmware, slot)",
             {{"metric", "wide"}, {"group", "wide"}, {"median", "num"}, {"spread", "num"}, {"parts", "num"}},
             rows, 40);
}

/// Whether two series tell the rates of parts of one kind at the same work: those of ranks and of NUMA
/// domains differ by how many of them a node has.
bool comparable(const verdict::Series& a, const verdict::Series& b) {
  return a.suite == b.suite && a.metric == b.metric && a.kind == b.kind && a.first != nullptr &&
         b.first != nullptr && a.first->traits.has_value() == b.first->traits.has_value() &&
         (!a.first->traits || a.first->traits->operation == b.first->traits->operation);
}

/// The same metric of the same case with one device of a node at work and with all: their ratio.
std::string contention(const Page& page) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& alone : page.in.judgement.series) {
    if (!alone.judged || !alone.name.ends_with("-alone") || alone.rows.empty()) continue;
    const std::string together = alone.name.substr(0, alone.name.size() - 5) + "together";
    for (const auto& s : page.in.judgement.series) {
      if (s.name != together || s.rows.empty() || !comparable(alone, s)) continue;
      const double a = median(medians_of(alone)), b = median(medians_of(s));
      rows.push_back({cell(s.full(), "wide"), number_cell(format_quantity(a, s.unit)),
                      number_cell(format_quantity(b, s.unit)),
                      number_cell(a != 0 ? fmt::format("{:.3f}", b / a) : "-")});
    }
  }
  if (rows.empty()) return "";
  return "<h3>Alone against together</h3>\n" +
         table("One device of a node at a time, and all of them at once",
               {{"metric", "wide"}, {"alone", "num"}, {"together", "num"}, {"ratio", "num"}}, rows, 20);
}

}  // namespace

SweepLines sweep_lines_of(const Page& page, const Sweep& s) {
  SweepLines l;
  std::set<std::string> metrics;
  for (const auto* series : s.series) {
    const auto values = medians_of(*series);
    l.low.push_back(quantile(values, 0.05));
    l.middle.push_back(median(values));
    l.high.push_back(quantile(values, 0.95));
    l.previous.push_back(before_of(page, *series));
    metrics.insert(series->full());
  }
  add_bounds(page, s, l);
  std::set<std::string> names;
  for (const auto& f : page.in.verdict.findings)
    if (f.severity != "INFO" && metrics.contains(f.metric) && f.name != "cluster" && names.size() < 3)
      names.insert(f.name);
  for (const auto& name : names) {
    std::vector<double> values;
    for (const auto* series : s.series) {
      std::vector<double> own;
      for (const auto& row : series->rows)
        for (const auto part : {row.entity, row.source, row.destination}) {
          if (part < 0) continue;
          const auto& j = page.in.judgement;
          if (j.entities.name(part) != name &&
              (j.entities.node(part) < 0 || j.entities.name(j.entities.node(part)) != name))
            continue;
          own.push_back(row.median);
          break;
        }
      values.push_back(median(own));
    }
    l.blamed.emplace_back(name, std::move(values));
  }
  return l;
}

std::string sweeps_section(const Page& page) {
  const auto& sweeps = page.sweeps;
  if (sweeps.empty()) return none("No metric of this run was measured at three sizes or more.");
  std::string out =
      "<p>Median over all parts with the band of 5 to 95 % of them; beside it the bound, the run before and "
      "the parts that a finding names. Both axes are logarithmic.</p>\n<div class=\"pair\">";
  for (std::size_t i = 0; i < sweeps.size(); ++i)
    out += "<div><h3>" + escaped(sweeps[i].title) + "</h3>" +
           figure(sweep_picture(sweeps[i], page.sweep_lines[i]),
                  sweep_caption(page, sweeps[i], page.sweep_lines[i]), fmt::format("sweep/{}", i)) +
           sweep_table(sweeps[i], page.sweep_lines[i]) + "</div>\n";
  return out + "</div>\n";
}

std::string distributions_section(const Page& page) {
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < page.in.judgement.series.size(); ++i) {
    const auto& s = page.in.judgement.series[i];
    if (!s.judged || s.rows.empty()) continue;
    const auto values = medians_of(s);
    const double centre = median(values), sigma = values.size() > 1 ? mad_sigma(values) : results::not_taken;
    const Scale x = scale_of(values, 0, 150);
    const std::string picture = values.size() < 2 ? "-"
                                                  : svg(150, 26, svg_histogram(values, x, 26, 38),
                                                        "distribution of " + s.full(), "plot spark");
    rows.push_back(
        {markup_cell(fmt::format("<span data-series=\"{}\">{}</span>", i, escaped(s.full())), "wide"),
         markup_cell(picture), number_cell(format_quantity(centre, s.unit)),
         number_cell(std::isnan(sigma) || centre == 0
                         ? "-"
                         : fmt::format("{:.2f} %", 100 * sigma / std::abs(centre))),
         number_cell(std::to_string(values.size())), number_cell(std::to_string(s.strata.size())),
         markup_cell(tails_of(page, s, centre), "wide")});
  }
  if (rows.empty()) return none("No metric with a direction was measured.");
  return "<p>Each part's median, over the fleet. Spread is robust; the slow tail is named.<span "
         "class=\"js\"> Choose a metric to see every part.</span></p>\n"
         "<div class=\"js\" id=\"distribution\"></div>\n" +
         table("Distributions over the fleet",
               {{"metric", "wide"},
                {"distribution"},
                {"median", "num"},
                {"spread", "num"},
                {"parts", "num"},
                {"groups", "num"},
                {"slow tail", "wide"}},
               rows, 40) +
         strata_table(page) + contention(page);
}

}  // namespace assay::report
