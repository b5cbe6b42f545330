// SPDX-License-Identifier: Apache-2.0
#include "verdict/collectives_many.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/collectives.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_links.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

/// Rail and number of members.
using Kind = std::pair<int, std::size_t>;

struct Group {
  Kind kind;
  double rate = 0;
  std::int64_t samples = 0;  ///< of one member
  std::set<std::int32_t> members, switches;
  bool slow = false, sound = false;
};

std::vector<Group> groups_in(const std::vector<Draw>& draws, int rails,
                             const std::function<std::int32_t(std::int32_t)>& switch_of) {
  std::vector<Group> groups;
  for (const auto& draw : draws)
    for (const auto& [number, rates] : draw.rates) {
      Group g;
      g.rate = median(rates);
      g.members = draw.units.at(number);
      g.kind = {number % rails, g.members.size()};
      g.samples = static_cast<std::int64_t>(rates.size() / std::max<std::size_t>(1, g.members.size()));
      for (const auto member : g.members) g.switches.insert(switch_of(member));
      groups.push_back(std::move(g));
    }
  return groups;
}

/// What slow groups are slow beside: a tenth of all; the best; those that a gap divides from all others.
enum class Beside { tenth, best, gap };

/// Where a gap begins and ends in descending rates: the first that is not fast, and the first that is slow.
struct Gap {
  std::size_t fast, slow;
};

/// How the rates beside a gap differ from the median of their own side.
double deviation_beside(std::span<const double> rates, Gap gap) {
  std::vector<double> residuals;
  for (const auto side : {rates.first(gap.fast), rates.subspan(gap.slow)}) {
    const double centre = median(side);
    for (const double rate : side) residuals.push_back(rate - centre);
  }
  return std::max(mad_sigma(residuals), constants::network_spread_floor);
}

/// The gap of `network_fail` below the best, a tenth of all at least, as wide as two populations must be
/// apart; at the end of the rates if there is none. Traffic of others leaves a few groups inside it.
Gap gap_below_best(const std::vector<double>& rates) {
  constexpr std::size_t least_groups = 2, one_inside_of = 16;
  const std::size_t n = rates.size(), least = std::max(least_groups, n / 10);
  for (std::size_t inside = 0; inside <= n / one_inside_of; ++inside)
    for (Gap gap{least, least + inside}; gap.slow < n; ++gap.fast, ++gap.slow) {
      const double width = rates[gap.fast - 1] - rates[gap.slow];
      if (width >= log_deficit(constants::network_fail) &&
          width > least_distance(n, 2) * deviation_beside(rates, gap))
        return gap;
    }
  return {n, n};
}

/// Marks what is slow beside the fast groups of its kind.
void mark_slow(std::vector<Group>& groups, Beside beside, std::map<Kind, double>& fast) {
  const double least = log_deficit(beside == Beside::best ? constants::collective_rare_deficit
                                                          : constants::peers_small_deficit);
  const bool across = std::any_of(groups.begin(), groups.end(), [](const Group& g) {
    return g.switches.size() > 1 && *g.switches.begin() >= 0;
  });
  std::map<Kind, std::vector<double>> rates;
  for (const auto& g : groups)
    if (!across || g.switches.size() > 1) rates[g.kind].push_back(g.rate);
  std::map<Kind, double> slowest_fast, fastest_slow;
  for (auto& [kind, of] : rates) {
    std::sort(of.rbegin(), of.rend());
    fast[kind] = of[beside == Beside::tenth ? of.size() / 10 : 0];
    if (beside != Beside::gap) continue;
    const Gap gap = gap_below_best(of);
    slowest_fast[kind] = of[gap.fast - 1];
    fastest_slow[kind] = gap.slow < of.size() ? of[gap.slow] : -HUGE_VAL;
    fast[kind] = of[gap.fast / 2];
  }
  for (auto& g : groups) {
    const auto at = fast.find(g.kind);
    const double deficit = at == fast.end() ? 0 : at->second - g.rate;
    g.slow = deficit >= least;
    g.sound = deficit < least / 2;
    if (beside != Beside::gap || at == fast.end()) continue;
    g.slow = g.rate <= fastest_slow[g.kind];
    g.sound = g.rate >= slowest_fast[g.kind];
  }
}

/// The one switch that nearly all slow groups cross (traffic slows others) and no other group does, with some
/// nodes below it.
std::int32_t switch_of_all_slow(const std::vector<Group>& groups) {
  constexpr std::size_t least_nodes = 2, least_groups = 3;
  std::map<std::int32_t, std::set<std::int32_t>> below;
  std::map<std::int32_t, std::size_t> crossing;
  std::size_t slow = 0;
  std::set<std::int32_t> cleared;
  for (const auto& g : groups) {
    slow += g.slow ? 1U : 0U;
    for (const auto leaf : g.switches) {
      below[leaf].insert(g.members.begin(), g.members.end());
      if (g.switches.size() < 2) continue;
      if (g.slow)
        ++crossing[leaf];
      else
        cleared.insert(leaf);
    }
  }
  std::int32_t found = -1;
  for (const auto& [leaf, count] : crossing) {
    if (leaf < 0 || cleared.contains(leaf) || count < least_groups || 10 * count < 9 * slow) continue;
    if (found >= 0 || below[leaf].size() < least_nodes) return -1;
    found = leaf;
  }
  return found;
}

/// Who was in slow groups only, and of these who is at fault beyond doubt.
void accuse(const std::vector<Group>& groups, Beside beside, ManySlow& out) {
  std::map<std::int32_t, std::size_t> slow;
  std::set<std::int32_t> sound, unclear;
  for (const auto& g : groups)
    for (const auto member : g.members) {
      const auto [at, fresh] = out.best.try_emplace(member, g.rate);
      if (!fresh) at->second = std::max(at->second, g.rate);
      out.samples[member] += g.samples;
      if (g.slow) ++slow[member];
      if (!g.slow) unclear.insert(member);
      if (g.sound) sound.insert(member);
    }
  if (out.best.size() < constants::collective_nodes) return;
  // Fewer fast groups may be those below one switch: they clear their members, and accuse no single one.
  const bool may_name =
      beside == Beside::tenth || (beside == Beside::gap && 2 * out.slow_groups <= out.groups);
  std::set<std::int32_t> suspects;
  for (const auto& [member, count] : slow)
    if (count >= constants::collective_draws && !unclear.contains(member)) suspects.insert(member);
  for (const auto& g : groups) {
    std::vector<std::int32_t> not_cleared;
    for (const auto member : g.members)
      if (!sound.contains(member)) not_cleared.push_back(member);
    if (g.slow && may_name && not_cleared.size() == 1 && suspects.contains(not_cleared.front()))
      out.named.insert(not_cleared.front());
  }
  for (const auto& g : groups) {
    const auto in = [&](const std::set<std::int32_t>& some) {
      return std::any_of(g.members.begin(), g.members.end(), [&](auto m) { return some.contains(m); });
    };
    if (!g.slow || in(out.named)) continue;
    for (const auto member : g.members)
      if (suspects.contains(member)) out.open.insert(member);
  }
}

results::Finding finding_of(const Judgement& j, const Series& s, std::int32_t row, const ManySlow& many,
                            double value, bool retested, bool cleared) {
  auto f = j.about(s, row, cleared ? "INFO" : "WARN", "abnormality", row < 0 ? "split" : "slow");
  f.value = std::exp(value);
  f.reference = std::exp(many.fast);
  f.reference_kind = "peers";
  f.deficit = -std::expm1(value - many.fast);
  f.controls = static_cast<std::int64_t>(many.best.size()) - 1;
  f.confirm(retested && !cleared && row >= 0 ? "retest" : "");
  f.action = "TRIAGE";
  return f;
}

std::string rates_in(const results::Finding& f) {
  return format_quantity(*f.value, f.unit) + " against " + format_quantity(*f.reference, f.unit);
}

/// That groups are slow without saying of whom.
void tell_open(Judgement& j, const Series& s, const ManySlow& many, bool retested, bool cleared) {
  auto f = finding_of(j, s, -1, many, many.slow, retested, cleared);
  f.samples = static_cast<std::int64_t>(many.groups);
  for (const auto row : many.open) f.members.push_back(j.entities.name(row));
  char factor[32];
  std::snprintf(factor, sizeof factor, "%.3g", std::exp(many.fast - many.slow));
  f.text = std::string("cluster: ") + (s.is_imported() ? "" : "random ") + "groups differ by a factor of " +
           std::string(factor) + " in " + s.full() + ", " + rates_in(f) + ": " +
           std::to_string(many.slow_groups) + " of " + std::to_string(many.groups) + " groups are slow; " +
           std::to_string(f.members.size()) + " " + (unit_of(s) == Unit::device ? "devices" : "nodes") +
           " were in such groups only (" + first_of(f.members) + "), which of them are slow is not known" +
           (cleared ? "; not slow in new groups" : "");
  j.add(std::move(f), {});
}

bool has_retest(const Judgement& j, const Series& s) { return !draws_of(j, s, true).empty(); }

}  // namespace

ManySlow many_slow(const std::vector<Draw>& draws, int rails, bool own_cores,
                   const std::function<std::int32_t(std::int32_t)>& switch_of) {
  auto groups = groups_in(draws, rails, switch_of);
  ManySlow out;
  for (const Beside beside : {Beside::tenth, Beside::best, Beside::gap}) {
    if (beside == Beside::gap && !own_cores) continue;
    std::map<Kind, double> fast;
    mark_slow(groups, beside, fast);
    out = {};
    std::vector<double> slow, reference;
    for (const auto& g : groups) {
      if (!g.slow) continue;
      slow.push_back(g.rate);
      reference.push_back(fast[g.kind]);
    }
    if (slow.empty()) continue;
    out.groups = groups.size();
    out.slow_groups = slow.size();
    out.slow = median(slow);
    out.fast = median(reference);
    accuse(groups, beside, out);
    if (beside != Beside::best && out.best.size() >= constants::collective_nodes)
      out.leaf = switch_of_all_slow(groups);
    if (out.any()) return out;
  }
  return {};
}

ManySlow many_slow(const Judgement& j, const Series& s, const std::set<std::int32_t>& named, bool retest) {
  auto draws = draws_of(j, s, false);
  if (retest) {
    auto more = draws_of(j, s, true);
    std::move(more.begin(), more.end(), std::back_inserter(draws));
  }
  for (auto& draw : draws)
    std::erase_if(draw.units, [&](const auto& group) {
      const bool explained = std::any_of(group.second.begin(), group.second.end(), [&](std::int32_t member) {
        return named.contains(j.entities.node(member));
      });
      if (explained) draw.rates.erase(group.first);
      return explained;
    });
  const network::Places places(j);
  const bool own_cores = std::none_of(s.rows.begin(), s.rows.end(), [&](const SeriesRow& row) {
    return j.entities.shares_cores(row.entity);
  });
  return many_slow(draws, rails_of(*s.first), own_cores,
                   [&](std::int32_t member) { return places.switch_of(j.entities.node(member)); });
}

bool judge_slow_switch(Judgement& j, const Series& s, std::set<std::int32_t>& named) {
  const auto many = many_slow(j, s, named, true);
  if (many.leaf < 0) return false;
  const network::Places places(j);
  std::vector<double> own;
  std::int64_t samples = 0;
  for (const auto& [member, rate] : many.best) {
    if (places.switch_of(j.entities.node(member)) != many.leaf) continue;
    named.insert(j.entities.node(member));
    samples += many.samples.at(member);
  }
  auto f = finding_of(j, s, many.leaf, many, many.slow, has_retest(j, s), false);
  f.samples = samples;
  f.text = f.name + ": all random groups of nodes below it and others are slow in " + s.full() + ", " +
           rates_in(f) + ", deficit " + percent(*f.deficit) + " (n=" + std::to_string(samples) +
           "), no other group is" + (f.confirmed ? ", confirmed by new groups" : ", not confirmed");
  j.add(std::move(f), {many.leaf});
  return true;
}

void judge_many(Judgement& j, const Series& s, std::set<std::int32_t>& named, std::set<std::int32_t>& noted,
                bool& told) {
  const bool retested = has_retest(j, s);
  auto many = many_slow(j, s, named, true);
  const bool cleared = retested && !many.any();
  if (cleared) many = many_slow(j, s, named, false);
  std::set<std::int32_t> here;
  for (const auto row : many.named) {
    if (cleared && !noted.insert(j.entities.node(row)).second) continue;
    auto f = finding_of(j, s, row, many, many.best.at(row), retested, cleared);
    f.samples = many.samples.at(row);
    f.text = f.name + ": all its " + (s.is_imported() ? "" : "random ") + "groups are slow in " + s.full() +
             ", " + rates_in(f) + ", deficit " + percent(*f.deficit) + " (n=" + std::to_string(*f.samples) +
             "), all others of one of them are not" +
             (f.confirmed ? ", confirmed by new groups"
              : cleared   ? ", not slow in new groups"
                          : ", not confirmed");
    here.insert(j.entities.node(row));
    j.add(std::move(f), {row});
  }
  if (!many.open.empty() && !told && (!cleared || noted.insert(-1).second)) {
    tell_open(j, s, many, retested, cleared);
    told = !cleared;
  }
  // Other sizes may say more of what is cleared in this one.
  if (!cleared) named.insert(here.begin(), here.end());
}

}  // namespace assay::verdict
