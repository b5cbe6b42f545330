// SPDX-License-Identifier: Apache-2.0
// Suspects and controls were measured in the same rounds; a suspect is scored as before
// (upper quartile over its partners) and compared with the scores of the controls.
#include "verdict/retest/link_result.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/population.hpp"

namespace assay::verdict::network {
namespace {

/// Pairs of controls in a round from which its own median is taken out.
constexpr std::size_t least_round_pairs = 8;
/// Pairs with other controls that make an end a control.
constexpr std::size_t least_control_pairs = 3;
/// Partners that are not slow themselves, without which a node or NIC is not measured.
constexpr std::size_t least_partners = 2;
/// Of so many control pairs one may be disturbed, where the suspect is grossly slow.
constexpr std::size_t least_pairs_beside_one = 8;

double value(const Pair& p, int end, Way way) {
  if (way == Way::both) return p.mean();
  return (p.a == end) == (way == Way::out) ? p.ab : p.ba;
}

Loss leaf_loss_of(const LinkRetest& retest, int end) {
  const auto leaf = at(retest.set.ends[at(end)].leaf);
  return leaf < retest.leaf_loss.size() ? retest.leaf_loss[leaf] : Loss{};
}
bool below_slow_leaf(const LinkRetest& retest, int end) { return leaf_loss_of(retest, end).deficit > 0; }

/// The pair without what suspect leaves take from it.
Pair less_leaf(const LinkRetest& retest, Pair p) {
  if (retest.set.crosses(p)) lift(p, leaf_loss_of(retest, p.a), leaf_loss_of(retest, p.b));
  return p;
}

/// Whether what a suspect leaf gets from this pair may be the loss of the other one.
bool may_be_of_other_leaf(const LinkRetest& retest, int end, int partner) {
  return 2 * leaf_loss_of(retest, partner).deficit > leaf_loss_of(retest, end).deficit;
}

/// The pair's other end; -1: not a pair of this one.
int partner_of(const Pair& p, int end) { return p.a == end ? p.b : p.b == end ? p.a : -1; }

/// What an end measures with partners that are no suspects: a slow partner says nothing of it. Empty with
/// fewer of them than `least_partners`, if the screening had as many.
std::vector<double> values_of(const Screened& screened, const LinkRetest& retest, int end, Way way,
                              bool of_leaf, std::set<std::pair<int, int>>& pairs) {
  std::set<int> met;
  std::vector<double> values;
  for (const auto& p : retest.less_paths.pairs) {
    const int partner = partner_of(p, end);
    if (partner < 0 || retest.slow_end[at(partner)] ||
        (of_leaf && (!retest.set.crosses(p) || may_be_of_other_leaf(retest, end, partner))))
      continue;
    const double v = value(of_leaf ? p : less_leaf(retest, p), end, way);
    if (std::isnan(v)) continue;
    values.push_back(v);
    met.insert(partner);
    pairs.insert({p.a, p.b});
  }
  if (of_leaf || met.size() >= least_partners) return values;
  std::set<int> known;
  for (const auto& p : screened.set.pairs)
    if (const int partner = partner_of(p, end); partner >= 0 && !retest.slow_end[at(partner)])
      known.insert(partner);
  if (met.size() < std::min(known.size(), least_partners)) values.clear();
  return values;
}

/// Controls as the suspect is looked at: their scores, or for single pairs the upper quartile of each.
/// Servers are controls of servers.
std::vector<double> control_scores(const LinkRetest& retest, const SlowPlace& s, bool server) {
  std::vector<double> scores;
  if (s.place == PartKind::pair) {
    for (const auto& values : retest.control_pairs) scores.push_back(upper(values));
    return scores;
  }
  std::vector<std::vector<double>> by_end(retest.set.ends.size());
  for (const auto& p : retest.less_paths.pairs) {
    if (!retest.control_end[at(p.a)] || !retest.control_end[at(p.b)]) continue;
    for (const int end : {p.a, p.b})
      if (const double v = value(p, end, s.way); !std::isnan(v) && retest.set.ends[at(end)].server == server)
        by_end[at(end)].push_back(v);
  }
  for (const auto& values : by_end)
    if (values.size() >= least_control_pairs) scores.push_back(upper(values));
  return scores;
}

/// All values of the suspect, and its score.
struct Seen {
  std::vector<double> values;
  double score = std::numeric_limits<double>::quiet_NaN();
  std::size_t parts = 0;
  std::size_t pairs = 0;  ///< different ones
};

Seen see(const Screened& screened, const LinkRetest& retest, const SlowPlace& s) {
  Seen seen;
  if (s.place == PartKind::pair) {
    const auto& wanted = screened.set.pairs[at(s.index)];
    // Measured as one of a slow end, it says nothing of itself.
    if (retest.slow_end[at(wanted.a)] || retest.slow_end[at(wanted.b)]) return seen;
    for (const auto& p : retest.set.pairs)
      if (p.a == wanted.a && p.b == wanted.b)
        if (const double v = value(less_leaf(retest, p), p.a, s.way); !std::isnan(v))
          seen.values.push_back(v);
    seen.parts = seen.pairs = 1;
    // As the partner of another it was measured once, and congestion may have been there.
    if (seen.values.size() < constants::network_pair_rounds) seen.values.clear();
    if (!seen.values.empty()) seen.score = upper(seen.values);
    return seen;
  }
  std::vector<double> scores;
  std::set<std::pair<int, int>> pairs;
  for (const int end : ends_of(screened.set, s)) {
    const auto values = values_of(screened, retest, end, s.way, s.place == PartKind::leaf, pairs);
    if (values.empty()) continue;
    scores.push_back(upper(values));
    seen.values.insert(seen.values.end(), values.begin(), values.end());
  }
  seen.parts = scores.size();
  seen.pairs = pairs.size();
  if (!scores.empty()) seen.score = upper(scores);
  return seen;
}

/// The worst value of the control pairs but for the worst of them, where they are many.
double worst_beside_one(const LinkRetest& retest) {
  std::vector<double> worst;
  for (const auto& values : retest.control_pairs)
    worst.push_back(*std::min_element(values.begin(), values.end()));
  std::sort(worst.begin(), worst.end());
  return worst[worst.size() < least_pairs_beside_one ? 0 : 1];
}

/// How healthy pairs differ from one another, in one way; unknown below two degrees of freedom.
struct PairSpread {
  double sigma = 0, degrees = 0;
  double retested = std::numeric_limits<double>::quiet_NaN();  ///< median of those measured again
};

/// From pairs without a suspect, of the screening and measured again, each time set about their own median.
/// Of pairs that cross a suspect switch, or of the others.
PairSpread spread_of_pairs(const Screened& screened, const LinkRetest& retest, Way way, bool of_slow_leaf) {
  std::set<std::pair<int, int>> suspects;
  for (const auto& s : screened.suspects)
    if (s.place == PartKind::pair) {
      const auto& p = screened.set.pairs[at(s.index)];
      suspects.insert({p.a, p.b});
    }
  std::vector<double> apart;
  PairSpread spread;
  for (const auto* set : {&screened.set, &retest.less_paths}) {
    std::map<std::pair<int, int>, std::vector<double>> rounds;  // of links; both ways are one
    for (const auto& measured : set->pairs) {
      const bool by_slow_leaf = set->crosses(measured) &&
                                (below_slow_leaf(retest, measured.a) || below_slow_leaf(retest, measured.b));
      if (retest.slow_end[at(measured.a)] || retest.slow_end[at(measured.b)] ||
          by_slow_leaf != of_slow_leaf || suspects.contains({measured.a, measured.b}))
        continue;
      const Pair p = less_leaf(retest, measured);
      const auto add = [&](int from, int to, double v) {
        if (!std::isnan(v)) rounds[{from, to}].push_back(v);
      };
      if (way == Way::both) {
        add(p.a, p.b, p.mean());
      } else {
        add(p.a, p.b, p.ab);
        add(p.b, p.a, p.ba);
      }
    }
    if (rounds.size() < 2) continue;
    std::vector<double> values;
    for (auto& [link, measured] : rounds) values.push_back(median(measured));
    const double centre = median(values);
    for (const double v : values) apart.push_back(v - centre);
    spread.degrees += static_cast<double>(values.size()) - 1;
    if (set == &retest.less_paths) spread.retested = centre;
  }
  if (!apart.empty()) spread.sigma = std::max(mad_sigma(apart), constants::network_spread_floor);
  return spread;
}

/// Too few controls for a spread of parts: the best of the suspect's retested pairs against the worst among
/// the controls, and their middles by how much healthy pairs differ.
void by_separation(const Screened& screened, const LinkRetest& retest, const Seen& seen, const SlowPlace& s,
                   RetestResult& c) {
  std::vector<double> all;
  for (const auto& values : retest.control_pairs) all.insert(all.end(), values.begin(), values.end());
  if (all.empty() || seen.values.empty()) return;
  const auto [worst, best] = std::minmax_element(all.begin(), all.end());
  const auto [lowest, highest] = std::minmax_element(seen.values.begin(), seen.values.end());
  c.deficit = median(all) - median(seen.values);
  c.low = c.sure = *worst - *highest;
  const double gross = log_deficit(constants::coarse_deficit);
  if (const double beside_one = worst_beside_one(retest) - *highest; beside_one > gross)
    c.low = c.sure = beside_one;
  c.high = *best - *lowest;
  c.controls = static_cast<std::int64_t>(retest.control_pairs.size());
  // A second fault, among the controls, must not clear a part that is grossly slow.
  c.slower = c.low > 0 || median(all) - *highest > gross;
  const auto ends = ends_of(screened.set, s);
  const bool below_slow = s.place != PartKind::leaf &&
                          std::ranges::any_of(ends, [&](int end) { return below_slow_leaf(retest, end); });
  for (const bool of_slow_leaf : {false, true}) {
    const PairSpread spread = spread_of_pairs(screened, retest, s.way, of_slow_leaf);
    if (spread.degrees < 2 || (of_slow_leaf && !below_slow)) continue;
    const double se = spread.sigma * std::sqrt(1 / static_cast<double>(retest.control_pairs.size()) +
                                               1 / static_cast<double>(seen.pairs));
    // What the switch takes is measured at its other nodes.
    if (of_slow_leaf && !std::isnan(spread.retested))
      c.deficit = std::min(c.deficit, spread.retested - median(seen.values));
    const auto beyond = [&](double alpha) { return c.deficit - t_quantile(1 - alpha, spread.degrees) * se; };
    c.low = std::min(c.low, beyond(constants::network_alpha_retest));
    c.sure = std::min(c.sure, beyond(constants::network_alpha_fail));
    c.slower = c.slower && beyond(constants::network_alpha_retest) > 0;
  }
  c.p = c.slower ? constants::network_alpha_retest : 1;
}

/// Median score of the other ends below the suspect switches of these, as they were measured again; NaN
/// without.
double score_below(const Screened& screened, const LinkRetest& retest, const std::vector<int>& ends,
                   Way way) {
  std::set<int> leaves;
  for (const int end : ends)
    if (below_slow_leaf(retest, end)) leaves.insert(screened.set.ends[at(end)].leaf);
  std::vector<double> scores;
  for (std::size_t e = 0; e < screened.set.ends.size(); ++e) {
    if (!leaves.contains(screened.set.ends[e].leaf) ||
        std::find(ends.begin(), ends.end(), static_cast<int>(e)) != ends.end())
      continue;
    std::set<std::pair<int, int>> pairs;
    const auto values = values_of(screened, retest, static_cast<int>(e), way, false, pairs);
    if (!values.empty()) scores.push_back(upper(values));
  }
  return scores.empty() ? results::not_taken : median(scores);
}

/// What is left of a part below a suspect switch, or beside a slow path, is known no better than what that
/// takes.
bool beyond_its_leaf(const Screened& screened, const LinkRetest& retest, const SlowPlace& s, double deficit) {
  if (s.place == PartKind::leaf) return true;
  double most = 0;
  for (const int end : ends_of(screened.set, s))
    if (const int leaf = screened.set.ends[at(end)].leaf; leaf >= 0) {
      most = std::max(most, retest.leaf_loss[at(leaf)].deficit);
      for (const auto& [path, taken] : retest.paths)
        if (path.first == leaf || path.second == leaf) most = std::max(most, taken);
    }
  return deficit > constants::network_leaf_rest * most;
}

/// Fills in what is kept out of the controls; returns the ends, and the pairs into `pairs`.
std::vector<bool> keep_apart(const Screened& screened, LinkRetest& retest,
                             std::set<std::pair<int, int>>& pairs) {
  std::vector<bool> ends(retest.set.ends.size(), false);
  retest.slow_end = ends;
  retest.leaf_loss.assign(screened.set.leaves.size(), {});
  for (std::size_t i = 0; i < retest.apart.size(); ++i) {
    const SlowPlace& s = screened.suspects[i];
    if (!retest.apart[i]) continue;
    if (s.place == PartKind::leaf) retest.leaf_loss[at(s.index)] = {s.deficit, s.way};
    if (s.place == PartKind::pair) {
      const auto& p = screened.set.pairs[at(s.index)];
      pairs.insert({p.a, p.b});
      continue;
    }
    for (const int end : ends_of(screened.set, s)) {
      ends[at(end)] = true;
      if (s.place != PartKind::leaf) retest.slow_end[at(end)] = true;
    }
  }
  return ends;
}

/// With the suspects that are kept out of the controls.
LinkRetest retest_with(const Judgement& j, const Places& places, const Screened& screened,
                       std::vector<bool> apart) {
  LinkRetest retest;
  retest.apart = std::move(apart);
  std::vector<int> rounds;
  retest.cases = retest_pairs(j, places, screened.set, retest.set, rounds);
  std::set<std::pair<int, int>> suspect_pairs;
  const std::vector<bool> suspect = keep_apart(screened, retest, suspect_pairs);
  const auto is_control = [&](const Pair& p) {
    return !suspect[at(p.a)] && !suspect[at(p.b)] && !suspect_pairs.contains({p.a, p.b});
  };
  std::map<int, std::vector<double>> by_round;
  std::vector<double> all;
  for (std::size_t i = 0; i < retest.set.pairs.size(); ++i) {
    const auto& p = retest.set.pairs[i];
    if (!is_control(p)) continue;
    for (const double v : {p.ab, p.ba}) {
      if (std::isnan(v)) continue;
      by_round[rounds[i]].push_back(v);
      all.push_back(v);
    }
  }
  const double centre = all.empty() ? screened.set.centre : median(all);
  std::map<int, double> round_centre;
  for (auto& [round, values] : by_round)
    round_centre[round] = values.size() >= 2 * least_round_pairs ? median(values) : centre;
  std::map<std::pair<int, int>, std::vector<double>> control_pairs;
  std::vector<std::size_t> degree(retest.set.ends.size(), 0);
  for (std::size_t i = 0; i < retest.set.pairs.size(); ++i) {
    auto& p = retest.set.pairs[i];
    const auto known = round_centre.find(rounds[i]);
    const double c = known == round_centre.end() ? centre : known->second;
    for (double* v : {&p.ab, &p.ba, &p.best_ab, &p.best_ba}) *v -= c;
    if (!is_control(p)) continue;
    control_pairs[{p.a, p.b}].push_back(p.mean());
    ++degree[at(p.a)];
    ++degree[at(p.b)];
  }
  for (std::size_t e = 0; e < degree.size(); ++e)
    retest.control_end.push_back(!suspect[e] && degree[e] >= least_control_pairs);
  for (auto& [ends, values] : control_pairs) retest.control_pairs.push_back(std::move(values));
  retest.paths = slow_paths(screened.set, leaf_views(screened.set));
  std::erase_if(retest.paths, [&](const auto& path) {
    return retest.leaf_loss[at(path.first.first)].deficit > 0 ||
           retest.leaf_loss[at(path.first.second)].deficit > 0;
  });
  retest.less_paths = retest.set;
  shift_paths(retest.less_paths, retest.paths, 1);
  return retest;
}

}  // namespace

LinkRetest link_retest(const Judgement& j, const Places& places, const Screened& screened) {
  LinkRetest retest = retest_with(j, places, screened, no_controls(screened));
  if (std::ranges::all_of(retest.apart, std::identity())) return retest;
  retest.all_apart = std::make_shared<const LinkRetest>(
      retest_with(j, places, screened, std::vector<bool>(retest.apart.size(), true)));
  return retest;
}

RetestResult judge_retest(const Screened& screened, const LinkRetest& retest, const SlowPlace& s,
                          std::size_t candidates, std::size_t sets) {
  RetestResult c;
  if (retest.cases == 0) return c;
  if (!retest.apart[static_cast<std::size_t>(&s - screened.suspects.data())])
    return judge_retest(screened, *retest.all_apart, s, candidates, sets);
  const Seen seen = see(screened, retest, s);
  if (seen.values.empty()) return c;
  const auto ends = ends_of(screened.set, s);
  const auto scores = control_scores(retest, s, screened.set.ends[at(ends.front())].server);
  c.measured = !retest.control_pairs.empty();
  if (!c.measured) return c;
  const std::set<int> own_ends(ends.begin(), ends.end());
  for (const auto& p : retest.set.pairs) {
    const bool a = own_ends.contains(p.a), b = own_ends.contains(p.b);
    if (s.place == PartKind::pair ? a && b : a || b) c.samples += p.samples;
  }
  if (scores.size() < constants::network_deletion_population) {
    by_separation(screened, retest, seen, s, c);
    c.slower = c.slower && beyond_its_leaf(screened, retest, s, c.deficit);
    return c;
  }
  const double centre = median(scores), n = static_cast<double>(scores.size());
  const double spread = std::max(mad_sigma(scores), constants::network_spread_floor);
  // A leaf is the upper quartile of its nodes; the reference is the median of the controls.
  const bool averaged = s.place == PartKind::leaf && seen.parts > 1;
  const double own_share = averaged ? normal_median_error / std::sqrt(static_cast<double>(seen.parts)) : 1.0;
  const double se = spread * std::hypot(own_share, normal_median_error / std::sqrt(n));
  const double questions = static_cast<double>(std::max<std::size_t>(1, candidates * sets));
  const double t = t_quantile(1 - constants::network_alpha_retest / questions, n - 1);
  c.deficit = centre - seen.score;
  // What a suspect switch takes shows at the others below it.
  if (s.place != PartKind::leaf && s.place != PartKind::pair)
    if (const double below = score_below(screened, retest, ends, s.way); !std::isnan(below))
      c.deficit = std::min(c.deficit, below - seen.score);
  c.low = c.deficit - t * se;
  c.high = c.deficit + t * se;
  c.sure = c.deficit - t_quantile(1 - constants::network_alpha_fail / questions, n - 1) * se;
  c.p = std::min(1.0, (1 - t_below(c.deficit / se, n - 1)) * questions);
  c.controls = static_cast<std::int64_t>(scores.size());
  c.slower = c.low > 0 && beyond_its_leaf(screened, retest, s, c.deficit);
  return c;
}

}  // namespace assay::verdict::network
