// SPDX-License-Identifier: Apache-2.0
#include "report/summary_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "results/case_name.hpp"

namespace assay::report {
namespace {

/// The samples of one row that were taken.
std::vector<double> row_samples(const results::CaseData& c, const results::Metric& m,
                                const results::Held<double>& values, std::size_t row) {
  std::vector<double> samples;
  const std::size_t width = m.per_sample ? c.samples() : 1;
  std::size_t taken = width;
  if (m.per_sample && row < c.count.size())
    taken = std::min(width, static_cast<std::size_t>(std::max(0, c.count[row])));
  for (std::size_t s = 0; s < taken && row * width + s < values.size(); ++s) {
    const double v = values[row * width + s];
    if (!std::isnan(v)) samples.push_back(v);
  }
  return samples;
}

}  // namespace

std::string entity_name(const results::Results& results, std::int32_t row) {
  if (row < 0 || static_cast<std::size_t>(row) >= results.entities.size()) return "cluster";
  return results.entities[static_cast<std::size_t>(row)].name;
}

std::string entity_name(const results::Results& results, const results::CaseData& c, std::size_t row) {
  if (c.entity[row] < 0 && row < c.source.size() && row < c.destination.size()) {
    return entity_name(results, c.source[row]) + ">" + entity_name(results, c.destination[row]);
  }
  return entity_name(results, c.entity[row]);
}

std::vector<double> row_medians(const results::CaseData& c, const results::Metric& m) {
  std::vector<double> medians;
  medians.reserve(c.entity.size());
  const auto values = m.values.held();
  for (std::size_t r = 0; r < c.entity.size(); ++r) medians.push_back(median(row_samples(c, m, values, r)));
  return medians;
}

namespace {

/// Of a rate or a time against a median of others; NaN where one of them is 0.
double deficit_against(double value, double median, results::Better better) {
  if (better == results::Better::higher && median != 0) return 1.0 - value / median;
  if (better == results::Better::lower && value != 0) return 1.0 - median / value;
  return results::not_taken;
}

}  // namespace

MetricSummary summarize(const results::Results& results, const results::CaseData& c,
                        const results::Metric& m) {
  MetricSummary d;
  d.data = &c;
  d.metric = &m;
  const auto medians = row_medians(c, m);
  const auto values = m.values.held();
  d.median = median(medians);
  std::size_t worst = 0;
  bool any = false;
  const double sign = m.better == results::Better::lower ? -1.0 : 1.0;
  for (std::size_t r = 0; r < medians.size(); ++r) {
    const auto samples = row_samples(c, m, values, r);
    if (!samples.empty() && !std::isfinite(medians[r]) && d.infinite++ == 0)
      d.first_infinite = entity_name(results, c, r);
    if (std::isnan(medians[r])) continue;
    d.n += static_cast<std::int64_t>(samples.size());
    ++d.entities;
    if (!any || sign * medians[r] < sign * medians[worst]) worst = r;
    any = true;
  }
  if (!any) return d;
  const double sigma = d.entities > 1 ? mad_sigma(medians) : mad_sigma(row_samples(c, m, values, worst));
  if (d.median != 0) d.spread = sigma / std::abs(d.median);
  d.worst = entity_name(results, c, worst);
  d.worst_deficit = deficit_against(medians[worst], d.median, m.better);
  return d;
}

double deficit_again(const results::Results& results, const MetricSummary& d) {
  const results::CaseData& c = *d.data;
  double deficit = results::not_taken;
  for (const auto& again : results.cases) {
    if (again.suite != c.suite || !results::is_retest(again.name) ||
        again.name.substr(0, again.name.rfind('.')) != c.name)
      continue;
    const auto m = std::ranges::find(again.metrics, d.metric->name, &results::Metric::name);
    if (m == again.metrics.end()) continue;
    const auto medians = row_medians(again, *m);
    for (std::size_t r = 0; r < again.entity.size(); ++r) {
      if (entity_name(results, again, r) != d.worst) continue;
      // All parts may be faster or slower than before.
      auto others = medians;
      others[r] = results::not_taken;
      const double usual = median(others);
      deficit = deficit_against(medians[r], std::isnan(usual) ? d.median : usual, m->better);
    }
  }
  return deficit;
}

std::map<std::string, results::SelftestRow> selftest_sums(const results::Results& results) {
  std::map<std::string, results::SelftestRow> sums;
  for (const auto& s : results.selftest) {
    auto& sum = sums[s.checker];
    sum.injected += s.injected;
    sum.caught += s.caught;
    sum.located += s.located;
    sum.counted += s.counted;
  }
  return sums;
}

const results::Metric* headline(const results::CaseData& c) {
  for (const auto& m : c.metrics) {
    if (m.role == results::Role::metric && m.better != results::Better::none) return &m;
  }
  return nullptr;
}

std::string reduced_words(const results::CaseData& c, const results::Metric& headline) {
  // Steps to a size are of this factor or more; a vector that is shared out among ranks may lose a few bytes.
  constexpr double reduced = 0.5;
  const auto sizes = std::ranges::find(c.metrics, "message_bytes", &results::Metric::name);
  const auto planned = c.parameters.find("bytes");
  if (sizes == c.metrics.end() || planned == c.parameters.end() || !planned->is_number()) return "";
  const auto values = sizes->values.held();
  double least = reduced * planned->get<double>();
  std::size_t parts = 0;
  for (std::size_t row = 0; row < c.entity.size(); ++row) {
    const std::vector<double> used = row_samples(c, *sizes, values, row);
    const auto smallest = std::ranges::min_element(used);
    if (smallest == used.end() || *smallest > reduced * planned->get<double>()) continue;
    least = std::min(least, *smallest);
    ++parts;
  }
  if (parts == 0) return "";
  const std::string whom =
      parts == c.entity.size() ? "" : fmt::format(" in {} of {} parts", parts, c.entity.size());
  return fmt::format("size reduced to {}{} to fit the time{}",
                     format_bytes(static_cast<std::uint64_t>(least)), whom,
                     headline.unit == "s" ? ", times extrapolated" : "");
}

std::string short_link(std::string name) {
  const auto arrow = name.find('>'), slash = name.find('/');
  if (arrow != std::string::npos && slash < arrow &&
      name.compare(arrow + 1, slash + 1, name, 0, slash + 1) == 0)
    name.erase(arrow + 1, slash + 1);
  return name;
}

}  // namespace assay::report
