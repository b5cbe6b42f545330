// SPDX-License-Identifier: Apache-2.0
#include "verdict/drift.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "measure/statistics.hpp"
#include "results/iso_time.hpp"
#include "verdict/abnormality.hpp"
#include "verdict/constants.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

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

/// The lines of those of a population that are not in `members` yet, in stretches of their case, at equal
/// clock where it has one; empty where it is too short.
std::vector<std::vector<double>> lines_of(const Population& p, const results::CaseData& c,
                                          std::vector<std::size_t>& members) {
  const results::Metric* metric = c.find(p.series->metric);
  const results::Metric* clock = p.clocked && p.slope_known ? c.find("clock") : nullptr;
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
    if (std::find(members.begin(), members.end(), m) != members.end()) continue;
    std::vector<double> line;
    for (std::size_t s = 0; s < c.samples(); ++s) {
      const std::size_t at = e->second * c.samples() + s;
      const bool taken = static_cast<std::int32_t>(s) < c.count[e->second];
      double y = taken ? log_rate(values[at], p.series->better) : unknown;
      if (clock != nullptr && taken) y = clocks[at] > 0 ? y - p.slope * std::log(clocks[at]) : unknown;
      line.push_back(y);
    }
    lines.push_back(binned(line, constants::drift_stretches));
    members.push_back(m);
  }
  return lines;
}

/// An imported part with other blocks than most has a table of its own, over the same time.
std::vector<const results::CaseData*> tables_of(const Judgement& j, const Series& s) {
  std::vector<const results::CaseData*> tables{s.first};
  if (!s.is_imported()) return tables;
  for (const results::CaseData& c : j.results.cases)
    if (&c != s.first && c.suite == s.suite && c.case_key == s.first->case_key && retest_number(c.name) == 0)
      tables.push_back(&c);
  return tables;
}

}  // namespace

namespace {

/// A population that was measured long enough within a case.
struct Long {
  const Series* series;
  Population population;
};

/// When the first and the last sample were taken. The times of samples that a part did not take are NaN.
std::pair<double, double> span_of(std::span<const double> t) {
  std::pair span(std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity());
  for (const double at : t) {
    if (std::isnan(at)) continue;
    span = {std::min(span.first, at), std::max(span.second, at)};
  }
  return span;
}

std::vector<Long> long_ones(Judgement& j) {
  AttributeCache attributes;
  std::vector<Long> all;
  for (const auto& s : j.series) {
    if (!is_population(s) || !s.per_sample || s.first == nullptr ||
        s.first->samples() < static_cast<std::size_t>(constants::drift_least_samples))
      continue;
    const auto t = s.first->t.held();
    if (const auto [from, to] = span_of(t); !(to - from >= constants::drift_least_s)) continue;
    for (auto& p : populations_of(j, s, attributes))
      if (!p.shared) all.push_back({&s, std::move(p)});
    if (s.rows.size() == 1 && !group_shares_cores(peer_group(j, s, s.rows[0]))) {
      Population alone;
      alone.series = &s;
      alone.members.push_back(
          {&s.rows[0], log_rate(s.rows[0].median, s.better), 0, results::not_taken, false});
      all.push_back({&s, std::move(alone)});
    }
  }
  return all;
}

/// A loss of all parts together: the worst metric of each suite.
class CommonLosses {
 public:
  /// `f` has suite, metric, unit and since.
  void add(results::Finding f, const Fall& fall, std::size_t parts, const std::string& when) {
    auto& worst = by_suite_[f.suite];
    const double loss = -std::expm1(fall.change);
    if (worst.deficit.value_or(0) >= loss) return;
    worst = std::move(f);
    worst.severity = "WARN";
    worst.claim = "abnormality";
    worst.kind = "drift";
    worst.level = worst.name = "cluster";
    worst.reference_kind = "history";
    worst.deficit = loss;
    worst.action = "TRIAGE";
    worst.text = fmt::format("cluster: {} of {} lost {} {}", worst.metric,
                             parts == 1 ? "the only part" : fmt::format("all {} parts together", parts),
                             percent(loss), when);
  }
  const std::map<std::string, results::Finding>& by_suite() const { return by_suite_; }

 private:
  std::map<std::string, results::Finding> by_suite_;
};

}  // namespace

void judge_drift(Judgement& j) {
  const std::vector<Long> all = long_ones(j);
  const auto compared = std::count_if(all.begin(), all.end(), [](const Long& one) {
    return one.population.size() >= constants::peers_min_population;
  });
  CommonLosses common;
  for (const auto& [series, p] : all) {
    const auto& c = *series->first;
    std::vector<std::size_t> members;
    std::vector<std::vector<double>> lines;
    for (const results::CaseData* table : tables_of(j, *series))
      for (auto& line : lines_of(p, *table, members)) lines.push_back(std::move(line));
    const auto t = c.t.held();
    const auto [from, to] = span_of(t);
    /// Seconds after the start of the run.
    const auto time_of = [from = from, to = to](std::size_t stretch) {
      return from + (to - from) * static_cast<double>(stretch) / constants::drift_stretches;
    };
    const auto when = [&](double begin) { return later(j.results.info.started, begin); };
    const auto since = [&](double begin) {
      return fmt::format("{}, since {:.0f} s after the run began{}{}",
                         p.clocked && p.slope_known ? ", at equal clock" : "", begin,
                         when(begin).empty() ? "" : " at ", when(begin));
    };
    if (const auto fall = common_fall_of(lines, log_deficit(constants::drift_common_case))) {
      const double begin = time_of(fall->begin);
      results::Finding f;
      f.suite = series->suite;
      f.metric = series->full();
      f.unit = series->unit;
      f.since = when(begin);
      f.evidence = series->path;
      common.add(std::move(f), *fall, members.size(),
                 fmt::format("in {:.0f} min{}", (to - begin) / 60, since(begin)));
    }
    if (p.size() < constants::peers_min_population) continue;
    for (const auto& d :
         drifters_of(std::move(lines), constants::alpha_warn / static_cast<double>(compared))) {
      const auto& row = *p.members[members[d.member]].row;
      const double begin = time_of(d.begin);
      auto f = j.about(row.entity, "WARN", "abnormality", "drift");
      f.suite = series->suite;
      f.metric = series->full();
      f.unit = series->unit;
      f.value = row.median;
      f.reference_kind = "peers";
      f.deficit = -std::expm1(d.change);
      f.samples = row.n;
      f.controls = static_cast<std::int64_t>(p.size()) - 1;
      f.since = when(begin);
      f.action = "MONITOR";
      f.evidence = series->path;
      f.text = f.name + ": " + series->full() + ": " + lost(d, to - begin) + since(begin);
      j.add(std::move(f), rows_of(row));
    }
  }
  for (const auto& [suite, finding] : common.by_suite()) j.add(finding, {});
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

/// About a loss of a metric from a segment on.
results::Finding about_segments(const MetricRates& metric, std::size_t begin,
                                const std::vector<const Snapshot*>& segments) {
  results::Finding f;
  f.suite = metric.series->suite;
  f.metric = metric.series->full();
  f.unit = metric.series->unit;
  f.since = segments[begin]->source.started;
  return f;
}

double minutes_since(const results::Finding& f, const std::vector<const Snapshot*>& segments) {
  return static_cast<double>(unix_seconds(segments.back()->source.started).value_or(0) -
                             unix_seconds(f.since).value_or(0)) /
         60;
}

std::string from_segment(const results::Finding& f, std::size_t begin,
                         const std::vector<const Snapshot*>& segments) {
  return fmt::format(", from segment {} of {} on, since {}", begin + 1, segments.size(), f.since);
}

results::Finding segment_finding(const Drifter& d, const Part& part, const MetricRates& metric,
                                 const std::vector<const Snapshot*>& segments) {
  auto f = about_segments(metric, d.begin, segments);
  f.severity = "WARN";
  f.claim = "abnormality";
  f.kind = "drift";
  f.level = part.kind;
  f.name = part.name;
  f.id = part.id;
  f.reference_kind = "peers";
  f.deficit = -std::expm1(d.change);
  f.controls = static_cast<std::int64_t>(metric.parts.size()) - 1;
  f.action = "MONITOR";
  f.text = part.name + ": " + f.metric + ": " + lost(d, 60 * minutes_since(f, segments)) +
           from_segment(f, d.begin, segments);
  return f;
}

}  // namespace

std::vector<SegmentDrift> drift_over(const std::vector<Snapshot>& segments) {
  const auto order = in_order(segments);
  const auto metrics = rates_of(order);
  std::map<std::string, SegmentDrift> worst;
  CommonLosses common;
  for (const auto& [name, metric] : metrics) {
    std::vector<std::vector<double>> rates;
    std::vector<std::string> keys;
    for (const auto& [key, part] : metric.parts) {
      rates.push_back(part.log_rates);
      keys.push_back(key);
    }
    if (const auto fall = common_fall_of(rates, log_deficit(constants::drift_common_files))) {
      auto f = about_segments(metric, fall->begin, order);
      const auto when =
          fmt::format("in {:.0f} min{}", minutes_since(f, order), from_segment(f, fall->begin, order));
      common.add(std::move(f), *fall, metric.parts.size(), when);
    }
    for (const auto& d :
         drifters_of(std::move(rates), constants::alpha_warn / static_cast<double>(metrics.size()))) {
      const std::string& key = keys[d.member];
      const auto known = worst.find(key);
      if (known != worst.end() && known->second.finding.deficit.value_or(0) >= -std::expm1(d.change))
        continue;
      worst[key] = {segment_finding(d, *metric.parts.at(key).part, metric, order), key};
    }
  }
  std::vector<SegmentDrift> out;
  for (const auto& [suite, finding] : common.by_suite()) out.push_back({finding, ""});
  for (auto& [key, drift] : worst) out.push_back(std::move(drift));
  return out;
}

}  // namespace assay::verdict
