// SPDX-License-Identifier: Apache-2.0
// Claims of magnitude: truly at least this much below a bound.
#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

/// The 95 % interval of the deficit; NaN without enough samples.
std::pair<double, double> interval(const Below& b) {
  if (std::isnan(b.standard_error)) return {results::not_taken, results::not_taken};
  const double half = constants::interval_z * b.standard_error;
  const double one = deficit_of(std::max(b.value - half, 0.0), b.reference, b.higher_is_better);
  const double two = deficit_of(b.value + half, b.reference, b.higher_is_better);
  return {std::min(one, two), std::max(one, two)};
}

}  // namespace

std::vector<std::int32_t> rows_of(const SeriesRow& row) {
  std::vector<std::int32_t> rows = {row.entity};
  if (row.source >= 0) rows.push_back(row.source);
  if (row.destination >= 0) rows.push_back(row.destination);
  return rows;
}

std::string name_of(const Judgement& j, const SeriesRow& row) {
  if (j.entities.valid(row.entity) || row.source < 0) return j.entities.name(row.entity);
  return j.entities.name(row.source) + ">" + j.entities.name(row.destination);
}

namespace {

/// By its own samples, whatever the level: what makes it sure, empty if nothing does.
std::string surely_below(const Below& b) {
  if (b.lasting) return "blocks";
  const double low = interval(b).first;
  // A count is exact when read once; a rate seen once or twice is not.
  const bool coarse = deficit_of(b.value, b.reference, b.higher_is_better) > constants::coarse_deficit;
  if (std::isnan(low) ? !b.exact && !coarse : low <= 0) return "";
  if (b.retested) return "retest";
  if (!std::isnan(low)) return "interval";
  return b.exact ? "exact" : "size";
}

/// What confirms it, empty if nothing does.
std::string confirmation_of(const Judgement& j, const Below& b) {
  const bool coarse =
      !b.lasting && deficit_of(b.value, b.reference, b.higher_is_better) > constants::coarse_deficit;
  return coarse || j.results.info.level != "smoke" ? surely_below(b) : "";
}

}  // namespace

bool cleared(const Below& b) { return b.retested && surely_below(b).empty(); }

bool confirmed_below(const Judgement& j, const Below& b) { return !confirmation_of(j, b).empty(); }

namespace {

std::string shown(const Series& s, const Below& b) {
  return b.dead ? "without a possible value" : format_quantity(b.value, s.unit);
}

std::string standing_of(const Series& s, const Below& b, bool confirmed) {
  if (b.lasting) return ", not confirmed by the retest, but by 3 blocks over 60 s";
  if (!b.retested) return confirmed ? "" : ", not confirmed";
  const std::string first =
      " (screening: " + (std::isnan(b.first) ? "no possible value" : format_quantity(b.first, s.unit)) + ")";
  if (deficit_of(b.value, b.reference, b.higher_is_better) <= 0) return ", not in the retest" + first;
  return (confirmed ? ", confirmed by the retest" : ", not confirmed by the retest") + first;
}

}  // namespace

results::Finding magnitude(const Judgement& j, const Series& s, const Below& b,
                           const std::string& reference_kind, const std::string& what) {
  const std::string by = confirmation_of(j, b);
  const bool confirmed = !by.empty();
  const bool gone = b.retested && deficit_of(b.value, b.reference, b.higher_is_better) <= 0;
  auto f = j.about(s, b.entity,
                   confirmed    ? "FAIL"
                   : cleared(b) ? "INFO"
                                : "WARN",
                   "magnitude", gone ? "intermittent" : "slow");
  f.confirm(by);
  if (!j.entities.valid(b.entity) && b.row != nullptr) {
    f.name = name_of(j, *b.row);
    f.level = s.kind;
  }
  f.better = b.higher_is_better ? "higher" : "lower";
  if (!b.dead) f.value = b.value;
  f.reference = b.reference;
  f.reference_kind = reference_kind;
  f.deficit = deficit_of(b.value, b.reference, b.higher_is_better);
  const auto [low, high] = interval(b);
  if (!std::isnan(low)) f.ci_low = low;
  if (!std::isnan(high)) f.ci_high = high;
  f.samples = b.n;
  if (b.row != nullptr && static_cast<std::size_t>(b.row->stratum) < s.strata.size()) {
    f.stratum = s.strata[static_cast<std::size_t>(b.row->stratum)];
  }
  f.action = confirmed ? "TRIAGE" : "MONITOR";
  f.text = f.name + ": " + s.full() + " " + shown(s, b) + ", " + what + ", " + "deficit " +
           percent(*f.deficit) + " (n=" + std::to_string(b.n) + ")" + standing_of(s, b, confirmed);
  return f;
}

namespace {

/// One finding for many of a population below its bound, all confirmed or all not, with its members.
void add_population(Judgement& j, const Series& s, const std::vector<Below>& below, std::size_t population,
                    const std::string& reference_kind, const std::string& what) {
  std::vector<double> values, references;
  std::vector<std::int32_t> rows;
  std::int64_t n = 0;
  const Below* worst = &below.front();
  auto deficit = [](const Below& b) { return deficit_of(b.value, b.reference, b.higher_is_better); };
  for (const auto& b : below) {
    values.push_back(b.value);
    references.push_back(b.reference);
    rows.insert(rows.end(), b.rows.begin(), b.rows.end());
    n += b.n;
    if (deficit(b) > deficit(*worst)) worst = &b;
  }
  auto f = magnitude(j, s, *worst, reference_kind, what);
  const std::string worst_name = f.name;
  f.severity = confirmed_below(j, below.front()) ? "FAIL" : "WARN";
  f.level = f.name = "cluster";
  f.id.clear();
  f.value = median(values);
  f.reference = median(references);
  f.deficit = deficit_of(*f.value, *f.reference, worst->higher_is_better);
  f.ci_low.reset();
  f.ci_high.reset();
  f.samples = n;
  for (const auto& b : below) {
    f.members.push_back(j.entities.valid(b.entity) || b.row == nullptr ? j.entities.name(b.entity)
                                                                       : name_of(j, *b.row));
  }
  f.text = "cluster: " + s.full() + " of " + std::to_string(below.size()) + " of " +
           std::to_string(population) + " entities is beyond its bound, median " +
           format_quantity(*f.value, s.unit) + ", " + what + ", worst " + worst_name + " " +
           shown(s, *worst) + "; members " + first_of(f.members);
  j.add(std::move(f), rows);
}

}  // namespace

void add_below(Judgement& j, const Series& s, std::vector<Below> below, std::size_t population,
               std::size_t least, const std::string& reference_kind,
               const std::function<std::string(const Below&)>& what) {
  const auto last =
      std::stable_partition(below.begin(), below.end(), [](const Below& b) { return !cleared(b); });
  const auto sure =
      std::stable_partition(below.begin(), last, [&](const Below& b) { return confirmed_below(j, b); });
  const auto count = static_cast<std::size_t>(last - below.begin());
  const bool common = count >= least && 2 * count > population;
  // What is confirmed of one is not of the others.
  for (const auto& group : {std::vector(below.begin(), sure), std::vector(sure, last)}) {
    if (common && (2 * group.size() > population || group.size() > constants::list_members))
      add_population(j, s, group, population, reference_kind, what(group.front()));
    else
      for (const auto& b : group) j.add(magnitude(j, s, b, reference_kind, what(b)), b.rows);
  }
  for (auto single = last; single != below.end(); ++single)
    j.add(magnitude(j, s, *single, reference_kind, what(*single)), single->rows);
}

}  // namespace assay::verdict
