// SPDX-License-Identifier: Apache-2.0
// How small a slowdown a run could have seen.
#include <algorithm>
#include <cmath>
#include <set>

#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/abnormality.hpp"
#include "verdict/constants.hpp"
#include "verdict/contract.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

/// 95 % of a normal lie above this many deviations below its mean.
constexpr double recall_z = 1.645;

const char* word_of(Reference r) {
  switch (r) {
    case Reference::limit: return "limit";
    case Reference::baseline: return "baseline";
    case Reference::physical: return "physical";
    case Reference::history: return "history";
    case Reference::peers: return "peers";
    case Reference::none: break;
  }
  return "none";
}

Reference strongest(const Series& s, std::int32_t stratum) {
  std::uint8_t best = 0;
  for (const auto& row : s.rows)
    if (row.stratum == stratum || stratum < 0) best = std::max(best, row.reference);
  return static_cast<Reference>(best);
}

/// Deviations from the centre of its peers at which a part is surely abnormal, with `alpha` for the whole
/// population and the heaviness of its fast tail; NaN: none is.
double critical_of(std::size_t n, double alpha, double tail) {
  if (n >= constants::deletion_most) return heavy_critical(n, alpha, tail);
  if (n < constants::deletion_min) return results::not_taken;
  const double tests = as_double(n) * as_double(std::max<std::size_t>(1, n / 4));
  return -t_quantile(heavy_deletion_p(n, alpha) / tests, as_double(n) - 2);
}

/// Parts that findings name: their values do not belong to the spread of healthy parts.
std::set<std::int32_t> suspected_by(const Judgement& j) {
  std::set<std::int32_t> suspected;
  for (const Found& f : j.found)
    if (f.finding.severity != "INFO") suspected.insert(f.rows.begin(), f.rows.end());
  return suspected;
}

Sensitivity of_population(const Population& p, std::size_t populations,
                          const std::set<std::int32_t>& suspected) {
  Sensitivity out;
  const Series& s = *p.series;
  out.parts = p.size();
  std::vector<double> residuals;
  out.samples = p.members.front().row->n;
  for (const auto& m : p.members) {
    out.samples = std::min<std::int64_t>(out.samples, m.row->n);
    if (!m.low && !suspected.contains(m.row->entity)) residuals.push_back(m.residual);
  }
  out.stratum = s.strata[static_cast<std::size_t>(p.stratum)];
  out.basis = word_of(strongest(s, p.stratum));
  out.spread = mad_sigma(residuals);
  // Of few the deletion test takes the standard deviation, which a median of absolute deviations may miss by
  // half.
  if (p.size() < constants::deletion_most) out.spread = std::max(out.spread, standard_deviation(residuals));
  out.error = p.se;
  out.delta = p.delta;
  const double error = std::isnan(p.se) ? 0 : p.se;
  const double critical =
      critical_of(p.size(), constants::alpha_fail / as_double(std::max<std::size_t>(1, populations)),
                  abnormality(residuals, error).tail);
  const bool few = std::isnan(critical);
  const double among = few ? log_deficit(constants::peers_small_deficit)
                           : critical * std::max(out.spread, constants::peers_spread_floor);
  // The part that slows down may have been one of the faster ones: its own place among the parts counts, too,
  // and how well it is known.
  const double centre = std::sqrt(1 + 1.57 / as_double(p.size()));  // of the median it is held against
  const double own =
      std::hypot(centre * (few ? std::max(out.spread, constants::assumed_spread) : out.spread), error);
  const double most = p.size() > 2 ? std::max(recall_z, t_quantile(0.95, as_double(p.size()) - 2)) : recall_z;
  out.visible = fraction(std::max(log_deficit(std::min(0.9, p.effective_delta())), among) +
                         (few ? recall_z : most) * own);
  return out;
}

/// Of one part against a baseline: beyond what is a warning there and the interval of its median.
Sensitivity of_fixed(const Series& s) {
  Sensitivity out;
  std::vector<double> errors, medians;
  out.parts = s.rows.size();
  out.samples = s.rows.front().n;
  for (const auto& row : s.rows) {
    out.samples = std::min<std::int64_t>(out.samples, row.n);
    if (!std::isnan(row.standard_error) && row.median != 0)
      errors.push_back(row.standard_error / std::abs(row.median));
    medians.push_back(row.median);
  }
  const Reference basis = strongest(s, -1);
  out.basis = word_of(basis);
  if (s.rows.size() > 2 && median(medians) != 0) out.spread = mad_sigma(medians) / std::abs(median(medians));
  if (!errors.empty()) out.error = median(errors);
  // A baseline says what a part should reach. Below a limit or a floor a part may lie far above and lose much
  // before it shows.
  if (basis == Reference::baseline && !errors.empty())
    out.visible = constants::delta_warn + (constants::interval_z + recall_z) * out.error;
  return out;
}

}  // namespace

std::vector<Sensitivity> sensitivity_of(const Judgement& j) {
  std::vector<std::pair<const Series*, std::vector<Population>>> all;
  AttributeCache attributes;
  std::size_t count = 0;
  for (const auto& s : j.series) {
    if (!s.judged || s.rows.empty()) continue;
    all.emplace_back(&s, is_population(s) ? populations_of(j, s, attributes) : std::vector<Population>{});
    count += all.back().second.size();
  }
  const std::set<std::int32_t> suspected = suspected_by(j);
  std::vector<Sensitivity> out;
  for (const auto& [series, populations] : all) {
    std::vector<Sensitivity> own;
    for (const auto& p : populations) own.push_back(of_population(p, count, suspected));
    if (own.empty()) own.push_back(of_fixed(*series));
    for (auto& s : own) {
      s.metric = series->full();
      s.unit = series->unit;
      out.push_back(std::move(s));
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return (std::isnan(a.visible) ? 1e300 : a.visible) < (std::isnan(b.visible) ? 1e300 : b.visible);
  });
  return out;
}

}  // namespace assay::verdict
