// SPDX-License-Identifier: Apache-2.0
#include "verdict/drift.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "measure/statistics.hpp"
#include "results/iso_time.hpp"
#include "verdict/abnormality.hpp"
#include "verdict/constants.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

/// Of a steady loss, what lies between the middles of the first and of the last quarter.
constexpr double shown_by_quarters = 0.75;
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double median_of_known(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  return values.empty() ? unknown : median(values);
}

double change_of(const std::vector<double>& line) {
  const std::size_t quarter = std::max<std::size_t>(1, line.size() / 4);
  const auto end = [](std::size_t n) { return static_cast<std::ptrdiff_t>(n); };
  return median_of_known({line.end() - end(quarter), line.end()}) -
         median_of_known({line.begin(), line.begin() + end(quarter)});
}

/// Medians of `n` stretches of equal length.
std::vector<double> binned(const std::vector<double>& line, std::size_t n) {
  std::vector<double> bins;
  for (std::size_t b = 0; b < n; ++b) {
    const auto from = static_cast<std::ptrdiff_t>(b * line.size() / n),
               to = static_cast<std::ptrdiff_t>((b + 1) * line.size() / n);
    bins.push_back(median_of_known({line.begin() + from, line.begin() + to}));
  }
  return bins;
}

}  // namespace

Fall fall_of(std::span<const double> line) {
  Fall best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t begin = 0; begin + 1 < line.size(); ++begin) {
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (std::isnan(line[i])) continue;
      const double x = i > begin ? static_cast<double>(i - begin) : 0;
      ++n;
      sx += x;
      sy += line[i];
      sxx += x * x;
      sxy += x * line[i];
      syy += line[i] * line[i];
    }
    const double spread = sxx - sx * sx / n, along = sxy - sx * sy / n;
    if (!(spread > 0)) continue;
    const double rest = syy - sy * sy / n - along * along / spread;
    if (rest >= least * (1 - 1e-9)) continue;
    least = rest;
    best = {begin, along / spread * static_cast<double>(line.size() - 1 - begin)};
  }
  return best;
}

std::vector<Drifter> drifters_of(std::vector<std::vector<double>> lines, double alpha) {
  std::vector<Drifter> named;
  if (lines.size() < constants::peers_min_population || lines.front().size() < constants::drift_least_times)
    return named;
  for (std::size_t s = 0; s < lines.front().size(); ++s) {
    std::vector<double> at;
    for (const auto& line : lines) at.push_back(line[s]);
    const double all = median_of_known(at);
    for (auto& line : lines) line[s] -= all;
  }
  std::vector<double> changes;
  std::vector<std::size_t> who;
  for (std::size_t m = 0; m < lines.size(); ++m) {
    const double change = change_of(lines[m]);
    if (std::isnan(change)) continue;
    changes.push_back(change);
    who.push_back(m);
  }
  if (changes.size() < constants::peers_min_population) return named;
  const auto abnormal_ones = abnormality(changes);
  const TailPool nothing;
  double least_of_peers = 0;
  for (std::size_t k = 0; k < changes.size(); ++k) {
    const bool lost = changes[k] < -shown_by_quarters * log_deficit(constants::delta_drift) &&
                      surely_abnormal(abnormal_ones, k, alpha, nothing);
    if (lost) {
      const Fall fall = fall_of(lines[who[k]]);
      named.push_back({who[k], fall.begin, fall.change, 0});
    } else {
      least_of_peers = std::min(least_of_peers, changes[k]);
    }
  }
  for (auto& d : named) d.least_of_peers = least_of_peers;
  return named;
}

namespace {

/// "2026-01-31T04:05:06Z" and so many seconds later.
std::string later(const std::string& started, double seconds) {
  const auto begin = results::unix_seconds(started);
  if (!begin) return {};
  const auto time = static_cast<std::time_t>(*begin + std::llround(seconds));
  std::tm utc{};
  gmtime_r(&time, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string lost(const Drifter& d, double seconds) {
  return fmt::format("lost {} in {:.0f} min while its peers lost at most {}", percent(-std::expm1(d.change)),
                     seconds / 60, percent(-std::expm1(d.least_of_peers)));
}

/// The lines of a population in `n` stretches of its case, at equal clock where it has one; empty where one
/// is too short.
std::vector<std::vector<double>> lines_of(const Population& p, const results::CaseData& c,
                                          std::vector<std::size_t>& members) {
  const results::Metric* metric = c.find(p.series->metric);
  const results::Metric* clock = p.clocked ? c.find("clock") : nullptr;
  std::vector<std::vector<double>> lines;
  if (metric == nullptr || metric->values.size() != c.entities() * c.samples() ||
      c.t.size() != metric->values.size())
    return lines;
  if (clock != nullptr && clock->values.size() != metric->values.size()) clock = nullptr;
  const auto values = metric->values.held();
  const auto clocks = (clock != nullptr ? clock : metric)->values.held();
  std::map<std::int32_t, std::size_t> row;
  for (std::size_t e = 0; e < c.entities(); ++e) row[c.entity[e]] = e;
  for (std::size_t m = 0; m < p.size(); ++m) {
    const auto e = row.find(p.members[m].row->entity);
    if (e == row.end() || c.count[e->second] < constants::drift_least_samples) continue;
    std::vector<double> line;
    for (std::size_t s = 0; s < c.samples(); ++s) {
      const std::size_t at = e->second * c.samples() + s;
      const bool taken = static_cast<std::int32_t>(s) < c.count[e->second];
      double y = taken ? log_rate(values[at], p.series->better) : unknown;
      if (clock != nullptr && taken && clocks[at] > 0) y -= p.slope * std::log(clocks[at]);
      line.push_back(y);
    }
    lines.push_back(binned(line, constants::drift_stretches));
    members.push_back(m);
  }
  return lines;
}

}  // namespace

void judge_drift(Judgement& j) {
  AttributeCache attributes;
  struct Long {
    const Series* series;
    Population population;
  };
  std::vector<Long> all;
  for (const auto& s : j.series) {
    if (!is_population(s) || !s.per_sample || s.first == nullptr ||
        s.first->samples() < static_cast<std::size_t>(constants::drift_least_samples))
      continue;
    const auto t = s.first->t.held();
    const auto [from, to] = std::minmax_element(t.begin(), t.end());
    if (t.empty() || *to - *from < constants::drift_least_s) continue;
    for (auto& p : populations_of(j, s, attributes))
      if (!p.shared && p.size() >= constants::peers_min_population) all.push_back({&s, std::move(p)});
  }
  for (const auto& [series, p] : all) {
    const auto& c = *series->first;
    std::vector<std::size_t> members;
    auto lines = lines_of(p, c, members);
    for (const auto& d :
         drifters_of(std::move(lines), constants::alpha_warn / static_cast<double>(all.size()))) {
      const auto& row = *p.members[members[d.member]].row;
      const auto t = c.t.held();
      const auto [from, to] = std::minmax_element(t.begin(), t.end());
      const double begin = *from + (*to - *from) * static_cast<double>(d.begin) / constants::drift_stretches;
      auto f = j.about(row.entity, "WARN", "abnormality", "drift");
      f.suite = series->suite;
      f.metric = series->full();
      f.unit = series->unit;
      f.value = row.median;
      f.reference_kind = "peers";
      f.deficit = -std::expm1(d.change);
      f.samples = row.n;
      f.controls = static_cast<std::int64_t>(p.size()) - 1;
      f.since = later(j.results.info.started, begin);
      f.action = "MONITOR";
      f.evidence = series->path;
      f.text = f.name + ": " + series->full() + ": " + lost(d, *to - begin) +
               (p.clocked ? ", at equal clock" : "") +
               fmt::format(", since {:.0f} s after the run began{}{}", begin, f.since.empty() ? "" : " at ",
                           f.since);
      j.add(std::move(f), rows_of(row));
    }
  }
}

namespace {

using results::unix_seconds;

/// Segments in the order of their starts.
std::vector<const Snapshot*> in_order(const std::vector<Snapshot>& segments) {
  std::vector<const Snapshot*> order;
  for (const Snapshot& segment : segments) order.push_back(&segment);
  std::stable_sort(order.begin(), order.end(), [](const Snapshot* a, const Snapshot* b) {
    return unix_seconds(a->source.started).value_or(0) < unix_seconds(b->source.started).value_or(0);
  });
  return order;
}

struct PartRates {
  std::vector<double> log_rates;  ///< by segment
  const Part* part = nullptr;
};
/// A metric of one case and stratum over all segments: parts of another stratum are no peers.
struct MetricRates {
  const SnapshotSeries* series = nullptr;
  std::map<std::string, PartRates> parts;
};

std::map<std::string, MetricRates> rates_of(const std::vector<const Snapshot*>& segments) {
  std::map<std::string, MetricRates> metrics;
  for (std::size_t at = 0; at < segments.size(); ++at)
    for (const auto& s : segments[at]->series) {
      if (s.shared || s.kind == "link") continue;
      for (std::size_t i = 0; i < s.log_rate.size(); ++i) {
        const Part& part = segments[at]->part(s.rows->part[i]);
        auto& metric = metrics[s.full() + '\n' + s.case_key + '\n' +
                               s.strata[static_cast<std::size_t>(s.rows->stratum[i])]];
        metric.series = &s;
        auto& rates = metric.parts[part.kind + '\n' + part.id];
        rates.part = &part;
        rates.log_rates.resize(segments.size(), unknown);
        rates.log_rates[at] = s.log_rate[i];
      }
    }
  return metrics;
}

results::Finding segment_finding(const Drifter& d, const Part& part, const MetricRates& metric,
                                 const std::vector<const Snapshot*>& segments) {
  results::Finding f;
  f.severity = "WARN";
  f.claim = "abnormality";
  f.kind = "drift";
  f.level = part.kind;
  f.name = part.name;
  f.id = part.id;
  f.suite = metric.series->suite;
  f.metric = metric.series->full();
  f.unit = metric.series->unit;
  f.reference_kind = "peers";
  f.deficit = -std::expm1(d.change);
  f.controls = static_cast<std::int64_t>(metric.parts.size()) - 1;
  f.since = segments[d.begin]->source.started;
  f.action = "MONITOR";
  const auto seconds =
      unix_seconds(segments.back()->source.started).value_or(0) - unix_seconds(f.since).value_or(0);
  f.text = part.name + ": " + f.metric + ": " + lost(d, static_cast<double>(seconds)) +
           fmt::format(", from segment {} of {} on, since {}", d.begin + 1, segments.size(), f.since);
  return f;
}

}  // namespace

std::vector<SegmentDrift> drift_over(const std::vector<Snapshot>& segments) {
  const auto order = in_order(segments);
  const auto metrics = rates_of(order);
  std::map<std::string, SegmentDrift> worst;
  for (const auto& [name, metric] : metrics) {
    std::vector<std::vector<double>> rates;
    std::vector<std::string> keys;
    for (const auto& [key, part] : metric.parts) {
      rates.push_back(part.log_rates);
      keys.push_back(key);
    }
    for (const auto& d :
         drifters_of(std::move(rates), constants::alpha_warn / static_cast<double>(metrics.size()))) {
      const std::string& key = keys[d.member];
      auto& known = worst[key];
      if (known.finding.deficit.value_or(0) >= -std::expm1(d.change)) continue;
      known = {segment_finding(d, *metric.parts.at(key).part, metric, order), key};
    }
  }
  std::vector<SegmentDrift> out;
  for (auto& [key, drift] : worst) out.push_back(std::move(drift));
  return out;
}

}  // namespace assay::verdict
