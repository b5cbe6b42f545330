// SPDX-License-Identifier: Apache-2.0
// Scores of ends and values far below the others: what the rules of many nodes and of few have in common.
#include <algorithm>
#include <cmath>

#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_levels.hpp"

namespace assay::verdict::network {

using results::not_taken;

void lift(Pair& p, Loss a, Loss b) {
  const bool slower_is_a = a.deficit >= b.deficit;
  const Loss& slower = slower_is_a ? a : b;
  if (slower.way != Way::in) (slower_is_a ? p.ab : p.ba) += slower.deficit;
  if (slower.way != Way::out) (slower_is_a ? p.ba : p.ab) += slower.deficit;
}

double upper(std::vector<double> values) {
  if (values.empty()) return not_taken;
  if (values.size() < 4) return *std::max_element(values.begin(), values.end());
  const double position = 0.75 * static_cast<double>(values.size() - 1);
  const auto k = static_cast<std::ptrdiff_t>(position);
  std::nth_element(values.begin(), values.begin() + k, values.end());
  const double low = values[static_cast<std::size_t>(k)];
  const double high = *std::min_element(values.begin() + k + 1, values.end());
  return low + (position - static_cast<double>(k)) * (high - low);
}

EndScores end_scores(const LinkSet& set, bool crossing_only) {
  const std::size_t n = set.ends.size();
  std::vector<std::size_t> first(n + 1, 0);
  for (const auto& p : set.pairs) {
    if (crossing_only && !set.crosses(p)) continue;
    ++first[at(p.a) + 1];
    ++first[at(p.b) + 1];
  }
  for (std::size_t e = 0; e < n; ++e) first[e + 1] += first[e];
  std::vector<std::size_t> next(first.begin(), first.end() - 1);
  std::vector<double> both(first[n]), out(first[n]), in(first[n]);
  for (const auto& p : set.pairs) {
    if (crossing_only && !set.crosses(p)) continue;
    const auto put = [&](int end, double sent, double received) {
      const std::size_t k = next[at(end)]++;
      both[k] = p.mean();
      out[k] = sent;
      in[k] = received;
    };
    put(p.a, p.ab, p.ba);
    put(p.b, p.ba, p.ab);
  }
  EndScores scores{std::vector<double>(n, not_taken), std::vector<double>(n, not_taken),
                   std::vector<double>(n, not_taken)};
  std::vector<double> values;
  const auto score = [&](const std::vector<double>& all, std::size_t e) {
    values.clear();
    for (std::size_t k = first[e]; k < first[e + 1]; ++k)
      if (!std::isnan(all[k])) values.push_back(all[k]);
    return values.size() < first[e + 1] - first[e] ? not_taken : upper(values);
  };
  for (std::size_t e = 0; e < n; ++e) {
    scores.both[e] = score(both, e);
    scores.out[e] = score(out, e);
    scores.in[e] = score(in, e);
  }
  return scores;
}

std::vector<Low> low_outliers(const std::vector<double>& values, double alpha) {
  std::vector<Low> found;
  const std::size_t n = values.size();
  if (n < constants::network_deletion_population) return found;
  if (n < constants::network_robust_population) {
    const double centre = median(values);
    // A value farther out than an outlier is one too: two equal ones hide each other.
    const auto peeled = slow_by_deletion(values, alpha, constants::network_spread_floor);
    double least = 1;
    for (auto o = peeled.rbegin(); o != peeled.rend(); ++o) {
      least = std::min(least, o->p);
      found.push_back({o->index, centre - values[o->index], least});
    }
    return found;
  }
  const RobustFit fit = robust_fit(values, constants::network_spread_floor);
  std::vector<double> scores;
  scores.reserve(n);
  for (const double v : values) scores.push_back(robust_score(v, fit));
  const double heavier = fast_tail_inflation(scores);
  const double critical = robust_critical(n, alpha) * heavier;
  for (std::size_t i = 0; i < n; ++i) {
    if (scores[i] > -critical) continue;
    const double p = robust_p_value(scores[i] / heavier, n) * static_cast<double>(n);
    found.push_back({i, fit.centre - values[i], std::min(p, alpha)});
  }
  return found;
}

}  // namespace assay::verdict::network
