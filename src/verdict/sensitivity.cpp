// SPDX-License-Identifier: Apache-2.0
// How small a slowdown a run could have seen.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/abnormality.hpp"
#include "verdict/constants.hpp"
#include "verdict/contract.hpp"
#include "verdict/population.hpp"
#include "verdict/suite_scores.hpp"

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

/// The rule by which one metric alone warns of a part (screening.cpp), asked of a part that may lack
/// anything.
class Rule {
 public:
  Rule(const EntityIndex& entities, const std::vector<Population>& populations)
      : populations_(populations), tests_(tests_of(entities, populations)) {
    const Suites suites = combine(entities, populations, tests_, true);
    std::vector<Test> own;
    std::set<const Test*> heard;
    for (const auto& [name, c] : suites) {
      for (Test& t : own_tests(populations, c)) own.push_back(std::move(t));
      halved_.insert(c.alike.begin(), c.alike.end());
      for (const auto& voice : c.voices) {
        heard.insert(voice.begin(), voice.end());
        hear(**std::ranges::max_element(voice, {}, [](const Test* t) { return t->result.peaked; }));
      }
    }
    for (const Test& t : own) hear(t);
    for (const Test& t : tests_) {
      weights_ += t.weight;
      if (t.at_clock && !heard.contains(&t)) hear(t);
    }
    lend_spreads(populations, suites, tests_, own);
    single_ = suites.empty() ? 1 : 1 - constants::combined_share - constants::joint_share;
  }

  /// The largest side of a population; nullptr where none is tested.
  const Test* of(std::size_t population) const {
    const Test* best = nullptr;
    for (const Test& t : tests_)
      if (t.population == population && t.at_clock &&
          (best == nullptr || t.members.size() > best->members.size()))
        best = &t;
    return best;
  }

  /// The least logarithmic deficit against the centre of its peers that is abnormal where healthy parts
  /// spread by `spread`.
  double least(const Test& t, double spread) const {
    double low = 0, high = 3;
    for (int step = 0; step < 30; ++step) {
      const double middle = 0.5 * (low + high);
      (abnormal_at(t, middle, spread) ? high : low) = middle;
    }
    return high;
  }

 private:
  void hear(const Test& t) {
    // Tails among nodes and within them are told apart by the rule; what is heard of neither proves nothing.
    if (t.result.real > constants::real_enough && !(t.nested > 0))
      pool_.add(t.members.size(), t.result.peaked, t.result.real);
  }

  bool abnormal_at(const Test& t, double deficit, double spread) const {
    const Abnormality& of = t.result;
    const double size = as_double(of.size);
    Abnormality a;
    a.size = of.size;
    a.tail = of.tail;
    a.peaked = of.peaked;
    a.variance = of.variance;
    a.real = of.real;
    a.degrees = of.degrees;
    const double off = -deficit / std::max(spread, constants::peers_spread_floor);
    a.score = {off};
    if (of.size >= constants::deletion_most) {
      a.p = {off < -1.5 ? robust_p_value(off / fast_tail_inflation(of.score), of.size) : 1.0};
    } else {
      const auto p = [&](double by, double degrees) {
        return std::min(1.0, t_below(by, degrees) * as_double(counted_peels(of.size)));
      };
      const double further = std::sqrt(1 + 1 / (size - 1));  // of the mean of the others
      a.p = {p(off / further, size - 2)};
      if (!of.moderated.empty()) a.moderated = {p(-deficit / std::sqrt(of.variance) / further, of.degrees)};
    }
    const bool nested = t.nested > 0, few = of.size < constants::peers_min_population;
    const double share =
        single_ * t.weight / weights_ * (halved_.contains(&t) ? 0.5 : 1) * (nested ? 0.5 : 1);
    const double delta = log_deficit(populations_[t.population].delta);
    const auto surely = [&](double alpha) {
      return surely_abnormal(a, 0, alpha * share, nested ? TailPool{} : pool_, trust_in_tails(of, delta));
    };
    // Under six parts only what may fail is measured again.
    return few ? surely(constants::alpha_fail)
               : abnormal(a, 0, constants::alpha_warn * share) && surely(constants::alpha_warn_heavy);
  }

  const std::vector<Population>& populations_;
  std::vector<Test> tests_;
  std::set<const Test*> halved_;
  TailPool pool_;
  double weights_ = 0, single_ = 1;
};

/// Parts that findings name: their values do not belong to the spread of healthy parts.
std::set<std::int32_t> suspected_by(const Judgement& j) {
  std::set<std::int32_t> suspected;
  for (const Found& f : j.found)
    if (f.finding.severity != "INFO") suspected.insert(f.rows.begin(), f.rows.end());
  return suspected;
}

/// Three nodes with samples enough for the rule of the third (peers_small.cpp).
bool are_three_nodes(const EntityIndex& entities, const Population& p) {
  std::set<std::int32_t> nodes;
  for (const auto& m : p.members)
    if (m.row->n >= constants::peers_third_samples) nodes.insert(entities.node(m.row->entity));
  return p.size() == 3 && nodes.size() == 3 && p.series->per_sample;
}

/// Of a population without a test: what few parts, or parts that share their cores, are warned of.
double least_of_few(const EntityIndex& entities, const Population& p, double spread) {
  if (p.shared) return log_deficit(constants::peers_shared_most);
  double least = constants::peers_small_deficit;
  // 95 % of the differences of two parts are smaller than that.
  const double alike = constants::interval_z * std::sqrt(2.0) * spread / constants::peers_third_alike;
  if (are_three_nodes(entities, p)) least = std::min(least, std::max(constants::peers_third_deficit, alike));
  return log_deficit(least);
}

/// The least logarithmic deficit that is a warning. `spread`: of healthy parts.
double least_told(const EntityIndex& entities, const Population& p, const Test* test, const Rule& rule,
                  double spread) {
  if (test == nullptr) return least_of_few(entities, p, spread);
  const bool few = p.size() < constants::peers_min_population, eligible = p.eligible();
  const double error = std::isnan(p.se) ? 0 : p.se;
  const double notice =
      few ? log_deficit(std::min(0.9, p.effective_delta()))
          : std::max(log_deficit(eligible ? constants::delta_notice : constants::peers_min_deficit),
                     error * (eligible ? constants::warn_errors : constants::warn_errors_noisy));
  // What is missing in gross is told by its size.
  const double gross =
      few ? least_of_few(entities, p, spread)
          : std::max(log_deficit(p.noise_known ? constants::gross_deficit : constants::coarse_deficit),
                     constants::gross_deviations * spread);
  return std::max(notice, std::min(gross, rule.least(*test, spread)));
}

/// As the rule takes it: of many parts a fit of the bulk. Of few the deletion test takes the standard
/// deviation, which a median of absolute deviations may miss by half.
double spread_of(const std::vector<double>& residuals) {
  if (residuals.size() + 1 < constants::deletion_most)
    return std::max(mad_sigma(residuals), standard_deviation(residuals));
  const RobustFit fit = robust_fit(residuals, constants::peers_spread_floor);
  return fit.scale * std::sqrt(1 + 1 / as_double(fit.kept));
}

Sensitivity of_population(const EntityIndex& entities, const Population& p, const Test* test,
                          const Rule& rule, const std::set<std::int32_t>& suspected) {
  Sensitivity out;
  const Series& s = *p.series;
  out.parts = p.size();
  std::vector<double> residuals;
  out.samples = p.members.front().row->n;
  for (const auto& m : p.members) {
    out.samples = std::min<std::int64_t>(out.samples, m.row->n);
    if (!m.low && !suspected.contains(m.row->entity)) residuals.push_back(m.residual);
  }
  // A finding about all of them says nothing of how they differ.
  if (residuals.size() < 2) {
    residuals.clear();
    for (const auto& m : p.members) residuals.push_back(m.residual);
  }
  out.stratum = s.strata[static_cast<std::size_t>(p.stratum)];
  out.basis = word_of(strongest(s, p.stratum));
  out.spread = spread_of(residuals);
  out.error = p.se;
  out.delta = p.delta;
  const bool few = p.size() < constants::deletion_min || p.shared;
  // The part that slows down may have been one of the faster ones: its own place among the parts counts, too,
  // and how well it is known.
  const double centre = std::sqrt(1 + 1.57 / as_double(p.size()));  // of the median it is held against
  const double own = std::hypot(centre * (few ? std::max(out.spread, constants::assumed_spread) : out.spread),
                                std::isnan(p.se) ? 0 : p.se);
  const double most = p.size() > 2 ? std::max(recall_z, t_quantile(0.95, as_double(p.size()) - 2)) : recall_z;
  out.visible = fraction(least_told(entities, p, test, rule, out.spread) + (few ? recall_z : most) * own);
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
  std::vector<Population> populations;
  std::vector<std::pair<const Series*, std::size_t>> all;  // and how many populations it has
  AttributeCache attributes;
  for (const auto& s : j.series) {
    if (!s.judged || s.rows.empty()) continue;
    const std::size_t before = populations.size();
    if (is_population(s))
      std::ranges::move(populations_of(j, s, attributes), std::back_inserter(populations));
    all.emplace_back(&s, populations.size() - before);
  }
  const std::set<std::int32_t> suspected = suspected_by(j);
  const Rule rule(j.entities, populations);
  std::vector<Sensitivity> out;
  std::size_t next = 0;
  for (const auto& [series, count] : all) {
    const std::size_t end = next + count, first = out.size();
    for (; next < end; ++next)
      out.push_back(of_population(j.entities, populations[next], rule.of(next), rule, suspected));
    if (count == 0) out.push_back(of_fixed(*series));
    for (std::size_t i = first; i < out.size(); ++i) {
      out[i].metric = series->full();
      out[i].unit = series->unit;
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return (std::isnan(a.visible) ? 1e300 : a.visible) < (std::isnan(b.visible) ? 1e300 : b.visible);
  });
  return out;
}

}  // namespace assay::verdict
