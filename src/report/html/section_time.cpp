// SPDX-License-Identifier: Apache-2.0
// What was seen while cases ran, and the training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <ranges>
#include <set>
#include <tuple>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "report/html/markup.hpp"
#include "report/html/sections.hpp"
#include "report/html/svg.hpp"
#include "results/described.hpp"
#include "verdict/counter_totals.hpp"

namespace assay::report {
namespace {

constexpr std::size_t most_rows = 500;

using Line = std::vector<std::pair<double, double>>;

struct Quantity {
  std::string unit;
  std::map<std::int32_t, Line> lines;  ///< by entity
};

std::map<std::string, Quantity> quantities_of(const results::Results& r) {
  std::map<std::string, Quantity> out;
  const auto& table = r.telemetry;
  for (const auto& [name, values] : table.number) {
    Quantity q;
    for (std::size_t i = 0; i < std::min(values.size(), table.t.size()); ++i)
      if (!std::isnan(values[i])) q.lines[table.entity[i]].emplace_back(table.t[i], values[i]);
    if (q.lines.empty()) continue;
    const auto unit = table.unit.find(name);
    if (unit != table.unit.end()) q.unit = unit->second;
    out[name] = std::move(q);
  }
  return out;
}

/// Cases of one suite that follow each other, as one.
std::vector<CaseSpan> suites_of(const std::vector<CaseSpan>& spans) {
  std::vector<CaseSpan> joined;
  for (const CaseSpan& s : spans) {
    if (!joined.empty() && joined.back().suite == s.suite)
      joined.back().to = std::max(joined.back().to, s.to);
    else
      joined.push_back(s);
  }
  return joined;
}

constexpr double time_left = 76, time_right = 840;

std::string time_picture(const Page& page, const std::string& name, const Quantity& q) {
  constexpr double top = 24, bottom = 170;
  std::vector<double> times, values;
  for (const auto& [entity, line] : q.lines)
    for (const auto& [t, v] : line) {
      times.push_back(t);
      values.push_back(v);
    }
  const auto spans = suites_of(page.spans);
  for (const CaseSpan& s : spans) times.insert(times.end(), {s.from, s.to});
  const Scale x = scale_of(times, time_left, time_right), y = scale_of(values, bottom, top);
  std::string body;
  bool even = false;
  for (const auto& [from, to, suite, first] : spans) {
    body += svg_rect(x.at(from), top - 16, std::max(1.0, x.at(to) - x.at(from)), bottom - top + 16,
                     even ? "span even" : "span");
    if (x.at(to) - x.at(from) > 8.0 * static_cast<double>(suite.size()))
      body += svg_text(x.at(from) + 4, top - 4, suite, "tick");
    even = !even;
  }
  body += svg_axis_left(y, time_left, time_right, q.unit) + svg_axis(x, bottom, bottom - 4, "s", 8);
  const std::size_t points = 400;
  for (const auto entity : page.drawn.at(name)) {
    const Line& line = q.lines.at(entity);
    Line out;
    const std::size_t every = std::max<std::size_t>(1, line.size() / points);
    for (std::size_t i = 0; i < line.size(); i += every)
      out.emplace_back(x.at(line[i].first), y.at(line[i].second));
    body += svg_path(out, q.lines.size() > 4 ? "line thin" : "line");
  }
  // One mark at a place, however many parts had it at that time.
  std::set<std::pair<int, bool>> flags;
  std::set<int> wrong;
  for (const auto& f : page.in.results.flags)
    if (std::isfinite(f.t) && flags.emplace(static_cast<int>(x.at(f.t)), f.value != 0).second)
      body += svg_line(x.at(f.t), bottom - 10, x.at(f.t), bottom, f.value != 0 ? "flag set" : "flag");
  for (const auto& e : page.in.results.errors)
    if (std::isfinite(e.t) && wrong.insert(static_cast<int>(x.at(e.t))).second)
      body += svg_dot(x.at(e.t), bottom - 4, 3, "mark-flag");
  return svg(time_right + 20, bottom + 24, body, name + " over time, with the suites that ran");
}

/// The picture in numbers, for those who cannot see it.
std::string time_table(const Page& page, const std::string& name, const Quantity& q) {
  std::vector<std::vector<Cell>> rows;
  for (const auto entity : page.drawn.at(name)) {
    std::vector<double> values;
    for (const auto& [t, v] : q.lines.at(entity)) values.push_back(v);
    rows.push_back({markup_cell(part_link(page.in.judgement.entities.name(entity))),
                    number_cell(quantity(std::ranges::min(values), q.unit)),
                    number_cell(quantity(median(values), q.unit)),
                    number_cell(quantity(std::ranges::max(values), q.unit)),
                    number_cell(std::to_string(values.size()))});
  }
  return "<details class=\"more\"><summary>As a table</summary>" +
         table(
             name + " by part" +
                 (q.lines.size() > rows.size() ? fmt::format(", {} of {}", rows.size(), q.lines.size()) : ""),
             {{"part"}, {"least", "num"}, {"median", "num"}, {"most", "num"}, {"readings", "num"}}, rows) +
         "</details>\n";
}

std::string parts_text(std::size_t drawn, std::size_t all) {
  if (drawn == all) return fmt::format("{} part{}", all, all == 1 ? "" : "s");
  return fmt::format("{} of {} parts: those with the lowest, the middle and the highest medians", drawn, all);
}

/// Errors first: the bytes of thousands of NICs must not crowd them out.
std::string counters_table(const Page& page) {
  std::map<std::tuple<bool, std::string, std::string>, double> sums;
  for (const auto& c : page.in.results.counters)
    if (c.after > c.before)
      sums[{verdict::is_traffic(c.counter), page.in.judgement.entities.name(c.entity), c.counter}] +=
          c.after - c.before;
  if (sums.empty()) return "<p>No counter changed, or none could be read.</p>\n";
  std::vector<std::vector<Cell>> rows;
  for (const auto& [key, sum] : sums | std::views::take(most_rows))
    rows.push_back({markup_cell(part_link(std::get<1>(key))), cell(std::get<2>(key)),
                    number_cell(fmt::format("{:.15g}", sum))});
  return table(
      sums.size() > rows.size()
          ? fmt::format("Counters that changed while cases ran: {} of {}, the others are in the file",
                        rows.size(), sums.size())
          : fmt::format("Counters that changed while cases ran ({})", sums.size()),
      {{"part"}, {"counter"}, {"by", "num"}}, rows, 12);
}

}  // namespace

std::vector<CaseSpan> spans_of(const results::Results& r) {
  std::vector<CaseSpan> spans;
  for (const auto& c : r.cases) {
    double from = std::numeric_limits<double>::max(), to = 0;
    const auto times = c.t.held();
    for (const double t : times) {
      if (!std::isfinite(t)) continue;
      from = std::min(from, t);
      to = std::max(to, t);
    }
    if (to > 0) spans.push_back({from, to, c.suite, c.name});
  }
  std::ranges::stable_sort(spans, {}, &CaseSpan::from);
  return spans;
}

DrawnParts drawn_parts(const results::Results& r) {
  constexpr std::size_t each = 8;
  std::map<std::string, std::vector<std::pair<double, std::int32_t>>> medians;
  for (const auto& [name, q] : quantities_of(r))
    for (const auto& [part, line] : q.lines) {
      std::vector<double> values;
      for (const auto& [t, value] : line) values.push_back(value);
      const double middle = median(values);  // NaN between two infinities
      medians[name].emplace_back(std::isnan(middle) ? std::numeric_limits<double>::max() : middle, part);
    }
  DrawnParts drawn;
  for (auto& [name, parts] : medians) {
    std::ranges::sort(parts);
    const std::size_t n = parts.size();
    for (std::size_t i = 0; i < n; ++i)
      if (n <= 3 * each || i < each || i >= n - each || (i >= (n - each) / 2 && i < (n + each) / 2))
        drawn[name].insert(parts[i].second);
  }
  return drawn;
}

std::string telemetry_section(const Page& page) {
  const auto quantities = quantities_of(page.in.results);
  std::string out;
  if (quantities.empty()) out = none("Nothing was sampled over time in this run (--telemetry-hz).");
  for (const auto& [name, q] : quantities) {
    out += "<h3>" + escaped(name) + "</h3>" +
           figure(time_picture(page, name, q),
                  parts_text(page.drawn.at(name).size(), q.lines.size()) +
                      "; shaded: which suite ran; at the bottom, ticks: throttle flags, dots: wrong values.",
                  "telemetry/" + name) +
           time_table(page, name, q);
  }
  out += "<h3>Counters and wrong values</h3>\n" + counters_table(page);
  if (page.in.results.errors.empty()) return out + "<p>No value was wrong.</p>\n";
  std::vector<std::vector<Cell>> rows;
  for (const auto& e : page.in.results.errors) {
    if (rows.size() == most_rows) break;
    rows.push_back({cell(e.case_path), markup_cell(part_link(page.in.judgement.entities.name(e.entity))),
                    number_cell(fmt::format("{:#x}", e.index)),
                    number_cell(fmt::format("{:#018x}", e.expected)),
                    number_cell(fmt::format("{:#018x}", e.actual)),
                    number_cell(fmt::format("{:#018x}", e.expected ^ e.actual)),
                    number_cell(fmt::format("{:.1f} s", e.t))});
  }
  return out + table(fmt::format("Wrong values ({})", page.in.results.errors.size()),
                     {{"case"},
                      {"part"},
                      {"place", "num"},
                      {"expected", "num"},
                      {"actual", "num"},
                      {"xor", "num"},
                      {"at", "num"}},
                     rows, 20);
}

namespace {

/// The samples of a metric over the steps of a case: the median over its ranks.
Line by_step(const results::CaseData& c, const results::Metric& m) {
  Line line;
  if (!m.per_sample) return line;
  const auto all = m.values.held();
  for (std::size_t s = 0; s < c.samples(); ++s) {
    std::vector<double> values;
    for (std::size_t r = 0; r < c.entity.size() && r * c.samples() + s < all.size(); ++r) {
      const double v = all[r * c.samples() + s];
      if (!std::isnan(v)) values.push_back(v);
    }
    if (!values.empty()) line.emplace_back(static_cast<double>(s), median(values));
  }
  return line;
}

/// What is drawn of the loss, at most so many steps of it.
std::string loss_table(const results::CaseData& c, const Line& loss, const Line& oracle) {
  constexpr std::size_t most = 200;
  const std::size_t every = (loss.size() + most - 1) / most;
  const std::string& unit = c.find("loss")->unit;
  const std::map<double, double> bound(oracle.begin(), oracle.end());
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < loss.size(); i += every) {
    const auto at = bound.find(loss[i].first);
    rows.push_back({number_cell(fmt::format("{:.0f}", loss[i].first)),
                    number_cell(quantity(loss[i].second, unit)),
                    number_cell(at == bound.end() ? "-" : quantity(at->second, unit))});
  }
  return "<details class=\"more\"><summary>Loss by step</summary>" +
         table("Loss of " + c.path() + " by step",
               {{"step", "num"}, {"loss", "num"}, {"entropy of the data", "num"}}, rows, most) +
         "</details>";
}

std::string loss_picture(const results::CaseData& c) {
  const auto *loss = c.find("loss"), *oracle = c.find("oracle");
  if (loss == nullptr || oracle == nullptr) return "";
  const Line a = by_step(c, *loss), b = by_step(c, *oracle);
  if (a.size() < 2) return "";
  constexpr double top = 10, bottom = 170;
  std::vector<double> xs, ys;
  for (const auto* line : {&a, &b})
    for (const auto& [x, y] : *line) {
      xs.push_back(x);
      ys.push_back(y);
    }
  const Scale x = scale_of(xs, time_left, time_right), y = scale_of(ys, bottom, top);
  std::string body =
      svg_axis_left(y, time_left, time_right, loss->unit) + svg_axis(x, bottom, bottom - 4, "1", 8);
  Line pa, pb;
  for (const auto& [s, v] : a) pa.emplace_back(x.at(s), y.at(v));
  for (const auto& [s, v] : b) pb.emplace_back(x.at(s), y.at(v));
  body += svg_path(pb, "bound path") + svg_path(pa, "line");
  return figure(svg(time_right + 20, bottom + 24, body,
                    "loss of " + c.path() + " by step, beside the entropy of the data"),
                "Loss by step; dashed: the entropy of the data, which no model can beat.") +
         loss_table(c, a, b);
}

/// Shares of a step by stage, as a bar.
std::string stages_picture(const results::CaseData& c) {
  std::vector<std::pair<std::string, double>> stages;
  double sum = 0;
  for (const char* name : {"data", "forward", "backward", "exposed", "optimizer"}) {
    const auto* m = c.find(name);
    if (m == nullptr || m->unit != "s") continue;
    const double value = median(m->values.held());
    if (std::isnan(value)) continue;
    stages.emplace_back(name, value);
    sum += value;
  }
  if (stages.size() < 2 || sum <= 0) return "";
  std::string body, words;
  double at = 0;
  std::size_t k = 0;
  for (const auto& [name, value] : stages) {
    const double width = 840 * value / sum;
    body += svg_rect(at, 0, std::max(0.3, width - 1), 26, fmt::format("stage s{}", k).c_str());
    if (width > 9.0 * static_cast<double>(name.size() + 8))
      body += svg_text(at + 8, 17, name + " " + format_quantity(value, "s"), "onbar");
    words += name + " " + format_quantity(value, "s") + ", ";
    at += width;
    ++k;
  }
  return figure(
      svg(840, 26, body, "time of a step by stage"),
      "Time of a step by stage: " + words + "medians; exposed is communication not overlapped with compute.");
}

std::string throughput_table(const Page& page, const results::CaseData& c) {
  const auto* m = c.find("throughput");
  if (m == nullptr) return "";
  const auto all = m->values.held();
  std::vector<std::vector<Cell>> rows;
  for (std::size_t r = 0; r < c.entity.size(); ++r) {
    std::vector<double> own;
    const std::size_t width = m->per_sample ? c.samples() : 1;
    for (std::size_t s = 0; s < width && r * width + s < all.size(); ++s) own.push_back(all[r * width + s]);
    rows.push_back({markup_cell(part_link(page.in.judgement.entities.name(c.entity[r]))),
                    number_cell(quantity(median(own), m->unit))});
  }
  return "<details class=\"more\"><summary>Throughput by rank</summary>" +
         table("Throughput by rank of " + c.path(), {{"rank"}, {"median", "num"}}, rows, 64) + "</details>";
}

}  // namespace

namespace {

/// Of all ranks together: what one of them does alone is told with the other parts.
bool is_training(const results::CaseData& c) {
  return std::any_of(c.metrics.begin(), c.metrics.end(), [&](const results::Metric& m) {
    const results::Judging judging = results::judging_of(c, m);
    return (judging.of == results::MetricClass::step || judging.of == results::MetricClass::storage) &&
           judging.shared_by == results::SharedBy::world;
  });
}

}  // namespace

std::string training_section(const Page& page) {
  std::string out;
  for (const auto& c : page.in.results.cases) {
    if (!is_training(c) || c.state == results::CaseState::skip) continue;
    std::vector<std::vector<Cell>> rows;
    for (const auto& m : c.metrics) {
      const auto values = m.values.held();
      const double middle = median(values);
      if (!std::isnan(middle))
        rows.push_back({cell(m.name), number_cell(format_quantity(middle, m.unit)),
                        number_cell(quantity(quantile(values, 0.05), m.unit)),
                        number_cell(quantity(quantile(values, 0.95), m.unit))});
    }
    if (rows.empty()) continue;
    out += "<h3>" + escaped(c.path()) + "</h3>\n" + stages_picture(c) + loss_picture(c);
    out += "<details class=\"more\"><summary>All metrics of this case</summary>" +
           table("Metrics of " + c.path(), {{"metric"}, {"median", "num"}, {"5 %", "num"}, {"95 %", "num"}},
                 rows, 40) +
           "</details>" + throughput_table(page, c);
  }
  return out.empty() ? none("No training case ran.") : out;
}

}  // namespace assay::report
