// SPDX-License-Identifier: Apache-2.0
// Fewer than six entities, and ranks that share cores: no spread to judge by, so only what is large and lasts
// is said, and never as a fault.
#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

/// Larger groups that have their cores for themselves are screened (screening.hpp).
bool has_own_rule(std::size_t n, bool shared) { return !shared && n >= constants::peers_min_population; }

/// Median of the sorted values without position i.
double median_without(const std::vector<double>& sorted, std::size_t i) {
  const std::size_t n = sorted.size() - 1;
  auto value = [&](std::size_t k) { return sorted[k < i ? k : k + 1]; };
  return n % 2 == 1 ? value(n / 2) : 0.5 * (value(n / 2 - 1) + value(n / 2));
}

struct Group {
  std::vector<SeriesRow*> rows;  ///< by ascending median
  std::vector<double> sorted;
  double z = constants::peers_z;
  bool shared = false;
};

double threshold_of(const Group& p, double reference) {
  double threshold = constants::peers_small_deficit;
  if (p.sorted.size() >= constants::peers_min_population) {
    threshold = std::max(constants::peers_min_deficit, p.z * mad_sigma(p.sorted) / std::abs(reference));
  }
  return p.shared ? std::max(threshold, constants::peers_shared_deficit) : threshold;
}

void report(Judgement& j, const Series& s, const Group& p, const SeriesRow& row, double reference,
            double deficit, bool warn) {
  auto f = j.about(row.entity, warn ? "WARN" : "INFO", "abnormality", "slow");
  f.name = name_of(j, row);
  f.level = s.kind;
  f.suite = s.suite;
  f.metric = s.full();
  f.unit = s.unit;
  f.better = results::to_string(s.better);
  f.value = row.median;
  f.reference = reference;
  f.reference_kind = "peers";
  f.deficit = deficit;
  f.samples = row.n;
  f.controls = static_cast<std::int64_t>(p.rows.size()) - 1;
  f.stratum = s.strata[static_cast<std::size_t>(row.stratum)];
  f.action = "MONITOR";
  f.evidence = s.path;
  f.text = f.name + ": " + s.full() + " " + format_quantity(row.median, s.unit) + ", median of " +
           std::to_string(p.rows.size() - 1) + (p.rows.size() == 2 ? " peer " : " peers ") +
           format_quantity(reference, s.unit) + ", deficit " + percent(deficit) +
           " (n=" + std::to_string(row.n) + ")";
  j.add(std::move(f), rows_of(row));
}

void judge_group(Judgement& j, const Series& s, Group& p) {
  std::sort(p.rows.begin(), p.rows.end(), [](const auto* a, const auto* b) {
    return std::pair(a->median, a->entity) < std::pair(b->median, b->entity);
  });
  for (auto* row : p.rows) {
    p.sorted.push_back(row->median);
    p.shared = p.shared || j.entities.shares_cores(row->entity);
    row->reference = std::max<std::uint8_t>(row->reference, Reference::peers);
  }
  p.shared = p.shared && !s.takes_turns;
  if (has_own_rule(p.rows.size(), p.shared)) return;
  const bool higher = s.better == results::Better::higher;
  const double overall = threshold_of(p, median(p.sorted));
  for (std::size_t i = 0; i < p.rows.size(); ++i) {
    const auto& row = *p.rows[i];
    const double reference = median_without(p.sorted, i);
    if (!(reference > 0) || !(row.median > 0)) continue;
    const double deficit = deficit_of(row.median, reference, higher);
    if (deficit < constants::peers_min_deficit) continue;
    // The own uncertainty must not explain it either.
    const double half = std::isnan(row.standard_error) ? 0 : constants::interval_z * row.standard_error;
    const double best =
        deficit_of(higher ? row.median + half : std::max(row.median - half, 1e-300), reference, higher);
    const bool small = p.sorted.size() < constants::peers_min_population;
    // Few entities give no spread to judge by, so nothing but a lasting deficit counts: one that even the
    // best of enough samples shows. A neighbour on the machine slows some samples, a bad part all of them.
    // And ranks that take turns on a core get what the scheduler gives them: there the launch is the finding.
    const double best_sample = deficit_of(higher ? row.highest : row.lowest, reference, higher);
    const bool lasting =
        !small || !s.per_sample || (row.n >= constants::peers_small_samples && best_sample > overall);
    // No scheduler leaves a rank so little of cores that all share. A pause of its host is in one or two
    // samples.
    const bool beyond_sharing =
        p.shared && best_sample > constants::peers_shared_most && (!s.per_sample || row.n >= 3);
    if (beyond_sharing ||
        (deficit > overall && best > constants::peers_min_deficit && lasting && !p.shared)) {
      report(j, s, p, row, reference, deficit, true);
    } else if (deficit > (p.shared ? overall : constants::peers_note_deficit) && (small || p.shared)) {
      report(j, s, p, row, reference, deficit, false);
    }
  }
}

}  // namespace

void judge_small_populations(Judgement& j) {
  std::size_t comparisons = 0;
  for (const auto& s : j.series) comparisons += is_population(s) ? s.rows.size() : 0;
  if (comparisons == 0) return;
  const double tail = constants::alpha_warn / static_cast<double>(comparisons);
  const double z = std::max(constants::peers_z,
                            boost::math::quantile(boost::math::complement(boost::math::normal(), tail)));
  for (auto& s : j.series) {
    if (!is_population(s)) continue;
    std::vector<Group> groups(s.strata.size());
    for (auto& row : s.rows)  // values that cannot be have a rule of their own
      if (!std::isnan(log_rate(row.median, s.better)))
        groups[static_cast<std::size_t>(row.stratum)].rows.push_back(&row);
    for (auto& p : groups) {
      p.z = z;
      if (p.rows.size() >= 2) judge_group(j, s, p);
    }
  }
}

}  // namespace assay::verdict
