// SPDX-License-Identifier: Apache-2.0
#include "verdict/history.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/history_level.hpp"
#include "verdict/history_matrix.hpp"
#include "verdict/reference_scores.hpp"

namespace assay::verdict {
namespace {

using past::Identities, past::Matrix, past::Past, past::past_of, past::Run;
using results::not_taken;
constexpr double scale_floor = 2e-4;
constexpr std::size_t scale_min = history_least;

/// Median of at most `window` values that end before position `end`.
double window_median(const std::vector<double>& values, std::size_t end, std::size_t window) {
  const std::size_t begin = end > window ? end - window : 0;
  return median(std::span(values).subspan(begin, end - begin));
}

/// The values of a part by which it is judged.
std::span<const double> last_of(const Past& p, std::size_t window) {
  return std::span(p.values).last(std::min(p.values.size(), window));
}

/// Deficits of each value against the median of the others of the same part.
void leave_one_out(std::span<const double> last, std::vector<double>& out) {
  const std::size_t n = last.size();
  if (n < 2) return;
  std::vector<double> others(n - 1);
  for (std::size_t i = 0; i < n; ++i) {
    std::copy(last.begin(), last.begin() + static_cast<std::ptrdiff_t>(i), others.begin());
    std::copy(last.begin() + static_cast<std::ptrdiff_t>(i) + 1, last.end(),
              others.begin() + static_cast<std::ptrdiff_t>(i));
    out.push_back(median(others) - last[i]);
  }
}

/// Whether a part changed its level: two runs in a row, or the latest, are apart from its median by more than
/// `apart`.
bool shifts(const Past& p, double apart) {
  const double centre = median(p.values);
  const auto off = [&](std::size_t i) {
    return p.values[i] < centre - apart ? -1 : p.values[i] > centre + apart ? 1 : 0;
  };
  for (std::size_t i = 1; i < p.values.size(); ++i)
    if (off(i) != 0 && off(i) == off(i - 1)) return true;
  return !p.values.empty() && off(p.values.size() - 1) < 0;
}

/// By row, whether a part keeps its level. A fault that lasts must not be what healthy parts are said to do.
struct Steady {
  std::vector<bool> rows;
  bool most_shift = false;  ///< that is how this metric is, or all parts lost speed: then all count as steady
};

Steady steady_rows(const Matrix& m, std::size_t window) {
  constexpr double shifted_deviations = 5, most_shifted = 0.8;
  std::vector<bool> steady(m.rows.size(), true);
  std::vector<double> all;
  for (const auto& row : m.rows) leave_one_out(last_of(past_of(row), window), all);
  if (all.size() < scale_min) return {steady};
  // Half of the parts may have changed their level for half of the runs.
  const double scale = std::min(mad_sigma(all), past::noise_of(m));
  const double apart = shifted_deviations * std::max(scale, scale_floor);
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    const Past p = past_of(m.rows[i]);
    steady[i] = p.values.size() < 2 || !shifts(p, apart);
  }
  const auto shifted = static_cast<double>(std::count(steady.begin(), steady.end(), false));
  if (!(shifted > most_shifted * static_cast<double>(m.rows.size()))) return {steady};
  return {std::vector<bool>(m.rows.size(), true), true};
}

/// The leave-one-out differences of those that keep their level, if they are enough; where most do not, of
/// each before and after its change. A loss of all parts must not be what they are said to do.
std::vector<double> null_of(const Matrix& m, const Steady& steady, std::size_t window) {
  std::vector<double> all, of_steady;
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    const Past p = past_of(m.rows[i]);
    const auto last = last_of(p, window);
    leave_one_out(last, all);
    for (const auto& ended : m.ended[i]) leave_one_out(ended, steady.rows[i] ? of_steady : all);
    if (!steady.rows[i]) continue;
    const std::size_t cut = steady.most_shift ? level_cut(last) : 0;
    leave_one_out(last.first(cut), of_steady);
    leave_one_out(last.subspan(cut), of_steady);
  }
  return of_steady.size() < scale_min ? all : of_steady;
}

/// A metric on its way to a threshold.
struct Draft {
  HistorySeries out;
  Matrix matrix;
  std::vector<Score> scores;
  std::vector<double> differences;
};

Draft draft_of(const Snapshot& now, const std::vector<std::int32_t>& ids, const SnapshotSeries& s,
               const std::vector<Run>& runs, std::size_t identities, const HistoryOptions& options) {
  Draft d;
  d.out.metric = s.full();
  d.out.case_key = s.case_key;
  d.scores = scores_of(now, s);
  if (d.scores.empty()) return d;
  d.matrix = past::matrix_of(runs, past::key_of(s), identities);
  const auto steady = steady_rows(d.matrix, options.window);
  d.differences = null_of(d.matrix, steady, options.window);
  d.out.pairs = static_cast<std::int64_t>(d.differences.size());
  std::vector<double> changes;
  for (const auto& score : d.scores) {
    const auto row = d.matrix.row_of[static_cast<std::size_t>(ids[static_cast<std::size_t>(score.part)])];
    const Past p = row < 0 ? Past{} : past_of(d.matrix.rows[static_cast<std::size_t>(row)]);
    d.out.base.push_back(p.values.empty()
                             ? static_cast<float>(not_taken)
                             : static_cast<float>(window_median(p.values, p.values.size(), options.window)));
    if (!p.values.empty() && steady.rows[static_cast<std::size_t>(row)])
      changes.push_back(score.log_rate - static_cast<double>(d.out.base.back()));
  }
  // Both what this metric did before and how far the parts that keep their level are from their past now: the
  // noise of today counts too.
  double scale = d.differences.size() >= scale_min ? mad_sigma(d.differences) : not_taken;
  if (changes.size() >= scale_min)  // half of the parts may have changed
    scale = std::fmax(scale, std::min(mad_sigma(changes), scale_of_half(changes)));
  d.out.scale = std::isnan(scale) ? not_taken : std::max(scale, scale_floor);
  d.out.runs = static_cast<std::int64_t>(d.matrix.runs);
  d.out.levels = static_cast<std::int64_t>(d.matrix.levels);
  d.out.fleet = d.matrix.fleet_sigma;
  if (d.matrix.since >= 0)
    d.out.fleet_since = runs[static_cast<std::size_t>(d.matrix.since)].snapshot->source.started;
  return d;
}

/// `pooled`: what the differences of all metrics together reach, NaN for too few.
void set_threshold(Draft& d, double pooled, double p, const HistoryOptions& options) {
  auto& out = d.out;
  if (std::isnan(out.scale)) {
    out.threshold = not_taken;
    return;
  }
  double reach = t_quantile(1 - p, 4);
  out.null = "t4";
  if (!std::isnan(pooled)) {
    reach = pooled;
    out.null = "empirical";
    if (d.differences.size() >= options.empirical_min) {
      std::vector<double> own = d.differences;
      for (double& v : own) v /= out.scale;
      reach = std::max(reach, tail_quantile(std::move(own), p));
    } else if (d.differences.size() >= scale_min) {
      reach = std::max(
          reach, quantile(d.differences, 1 - std::max(p, 2.0 / static_cast<double>(d.differences.size()))) /
                     out.scale);
    }
  }
  out.threshold = std::max(reach * out.scale, options.least_change);
}

/// Parts that were low in the runs just before: the longest block at the end all of which lies under the runs
/// before it.
void find_shifted(Draft& d, const std::vector<std::int32_t>& ids, const std::vector<Run>& runs,
                  const HistoryOptions& options) {
  if (std::isnan(d.out.threshold)) return;
  for (std::size_t i = 0; i < d.scores.size(); ++i) {
    const auto row =
        d.matrix.row_of[static_cast<std::size_t>(ids[static_cast<std::size_t>(d.scores[i].part)])];
    if (row < 0) continue;
    const Past p = past_of(d.matrix.rows[static_cast<std::size_t>(row)]);
    const std::size_t n = p.values.size();
    Shifted found;
    double highest = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 1; k + 2 <= n; ++k) {
      const double base = window_median(p.values, n - k, options.window);
      const auto block = std::span(p.values).last(k);
      highest = std::max(highest, block.front());
      if (highest >= base - d.out.threshold / 2) continue;  // whatever its level is
      // All of it lies nearer to its own level than to the one before.
      const double below = std::max(d.out.threshold, base - median(block)) / 2;
      if (highest >= base - below) continue;
      found = {static_cast<std::uint32_t>(i),
               static_cast<std::int32_t>(k),
               block.back() < base - d.out.threshold,
               base,
               base - block.back(),
               runs[p.runs[n - k]].snapshot->source.started};
    }
    if (found.runs > 0) d.out.shifted.push_back(std::move(found));
  }
}

/// Adds the files that are left out for their injected faults to `injected`.
std::vector<Run> runs_before(const std::vector<Snapshot>& earlier, const Snapshot& now, std::size_t most,
                             Identities& identities, std::vector<std::string>& injected) {
  std::vector<const Snapshot*> chosen;
  for (const auto& run : earlier) {
    const bool same = !run.source.run_id.empty() && run.source.run_id == now.source.run_id;
    const bool later =
        !run.source.started.empty() && !now.source.started.empty() && run.source.started > now.source.started;
    if (same || later) continue;
    if (run.injected && !now.injected)
      injected.push_back(run.source.file);
    else
      chosen.push_back(&run);
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const auto* a, const auto* b) { return a->source.started < b->source.started; });
  if (chosen.size() > most) chosen.erase(chosen.begin(), chosen.end() - static_cast<std::ptrdiff_t>(most));
  std::vector<Run> runs;
  for (const auto* snapshot : chosen) {
    Run run{snapshot, identities.of(*snapshot), {}};
    for (const auto& s : snapshot->series) run.series.emplace(past::key_of(s), &s);
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace

double tail_quantile(std::vector<double> differences, double p) {
  constexpr double tail = 0.01;
  const double u = quantile(differences, 1 - tail);
  if (p >= tail) return quantile(differences, 1 - p);
  std::vector<double> over;
  for (const double d : differences)
    if (d > u) over.push_back(d - u);
  if (over.empty()) return u;
  std::sort(over.begin(), over.end());
  const double n = static_cast<double>(over.size());
  double a0 = 0, a1 = 0;  // probability-weighted moments
  for (std::size_t i = 0; i < over.size(); ++i) {
    a0 += over[i] / n;
    a1 += over[i] * (1 - (static_cast<double>(i) + 0.65) / n) / n;
  }
  // Few exceedances cannot tell a shape: then one a little heavier than exponential. Never lighter.
  double shape = over.size() >= 30 && a0 > 2 * a1 ? 2 - a0 / (a0 - 2 * a1) : 0.1;
  shape = std::clamp(shape, 0.0, 0.5);
  // The mean excess of few is uncertain, and too small a one alarms more than too large a one misses: one
  // standard error up.
  const double scale = a0 * (1 - shape) * (1 + 1 / std::sqrt(n)), ratio = tail / p;
  return u + (shape < 1e-6 ? scale * std::log(ratio) : scale / shape * (std::pow(ratio, shape) - 1));
}

History history_of(const std::vector<Snapshot>& earlier, const Snapshot& now, const std::string& name,
                   const HistoryOptions& options) {
  History out;
  out.name = name;
  Identities identities;
  const auto ids = identities.of(now);
  const auto runs = runs_before(earlier, now, options.most_runs, identities, out.injected);
  for (const auto& run : runs) out.runs.push_back(run.snapshot->source);
  out.totals = totals_of(runs, now, ids);
  std::vector<Draft> drafts;
  std::vector<double> pool;
  std::size_t tests = 0;
  std::set<std::int32_t> nodes;
  for (const auto& s : now.series) {
    Draft d = draft_of(now, ids, s, runs, identities.size(), options);
    if (d.matrix.rows.empty()) continue;
    for (const double v : d.differences)
      if (!std::isnan(d.out.scale)) pool.push_back(v / d.out.scale);
    tests += d.scores.size();
    for (const auto& score : d.scores) nodes.insert(now.part(score.part).node);
    drafts.push_back(std::move(d));
  }
  if (drafts.empty()) return out;
  const double p = std::min(
      0.01, options.alarms_per_node * static_cast<double>(nodes.size()) / static_cast<double>(tests));
  const double pooled = pool.size() >= options.empirical_min ? tail_quantile(std::move(pool), p) : not_taken;
  for (auto& d : drafts) {
    set_threshold(d, pooled, p, options);
    find_shifted(d, ids, runs, options);
    out.series.push_back(std::move(d.out));
  }
  return out;
}

}  // namespace assay::verdict
