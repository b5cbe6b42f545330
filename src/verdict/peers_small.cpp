// SPDX-License-Identifier: Apache-2.0
// Fewer than six entities, and ranks that share cores: no spread to judge by, so only what is large and lasts
// is said, and never as a fault.
#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/agreement.hpp"
#include "verdict/constants.hpp"
#include "verdict/peer_findings.hpp"
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

/// Median of the faster half of the others: where most are slow, the median is one of them.
double faster_half_without(const std::vector<double>& sorted, std::size_t i, bool higher) {
  std::vector<double> others;
  for (std::size_t k = 0; k < sorted.size(); ++k)
    if (k != i) others.push_back(sorted[k]);
  if (higher) std::reverse(others.begin(), others.end());
  others.resize((others.size() + 1) / 2);
  return median(others);
}

struct Group {
  std::vector<SeriesRow*> rows;  ///< by ascending median
  std::vector<double> sorted;
  double z = constants::peers_z;
  bool shared = false;
  double spread = 0;  ///< of healthy parts, of three
};

void sort_rows(Group& p) {
  std::sort(p.rows.begin(), p.rows.end(), [](const auto* a, const auto* b) {
    return std::pair(a->median, a->entity) < std::pair(b->median, b->entity);
  });
  for (const auto* row : p.rows) p.sorted.push_back(row->median);
}

double threshold_of(const Group& p, double reference) {
  double threshold = constants::peers_small_deficit;
  if (p.sorted.size() >= constants::peers_min_population) {
    threshold = std::max(constants::peers_min_deficit, p.z * mad_sigma(p.sorted) / std::abs(reference));
  }
  return p.shared ? std::max(threshold, constants::peers_shared_deficit) : threshold;
}

/// A part that is slow in one metric.
struct Slow {
  const Series* series = nullptr;
  SeriesRow row;
  double reference = 0, deficit = 0;
  std::size_t peers = 0;
  bool warn = false;
  bool would = false;      ///< warn, but for the number of its samples
  bool of_faster = false;  ///< the reference is the faster half of the peers
  bool open = false;       ///< no fault can be claimed, and no warning says enough
};

void report(Judgement& j, const Slow& slow, std::size_t others) {
  const Series& s = *slow.series;
  const SeriesRow& row = slow.row;
  auto f = j.about(s, row.entity, slow.warn ? "WARN" : "INFO", "abnormality", "slow");
  f.name = name_of(j, row);
  f.level = s.kind;
  f.value = row.median;
  f.reference = slow.reference;
  f.reference_kind = "peers";
  f.deficit = slow.deficit;
  f.samples = row.n;
  f.controls = static_cast<std::int64_t>(slow.peers);
  f.stratum = s.strata[static_cast<std::size_t>(row.stratum)];
  f.action = "MONITOR";
  f.text = f.name + ": " + s.full() + " " + format_quantity(row.median, s.unit) + ", median of " +
           (slow.of_faster ? "the faster half of " : "") + std::to_string(slow.peers) +
           (slow.peers == 1 ? " peer " : " peers ") + format_quantity(slow.reference, s.unit) + ", deficit " +
           percent(slow.deficit) + " (n=" + std::to_string(row.n) + ")";
  if (others > 0)
    f.text += ", and so in " + count(static_cast<std::int64_t>(others), "other metric", "other metrics") +
              " of " + s.suite;
  if (slow.open)
    f.text += "; so few peers do not show which side is right: compare with a limit or a baseline";
  j.add(std::move(f), rows_of(row), slow.open);
}

/// Warns of what has few samples in each of several cases that agree, as of what has enough in one.
void raise_what_sizes_agree_on(const Judgement& j, std::vector<Slow>& found) {
  using Alike = std::tuple<std::int32_t, std::string, std::string>;  // entity, suite, metric
  std::map<Alike, std::vector<Slow*>> groups;
  for (auto& slow : found)
    if (slow.would || slow.warn)
      groups[{slow.row.entity, slow.series->suite, slow.series->metric}].push_back(&slow);
  for (auto& [group, members] : groups) {
    const auto& [entity, suite, metric] = group;
    if (std::none_of(members.begin(), members.end(), [](const Slow* s) { return s->would; })) continue;
    std::vector<SizedCase> cases;
    std::vector<Slow*> slow;
    for (const auto& s : j.series) {
      if (!is_population(s) || s.suite != suite || s.metric != metric) continue;
      const auto it =
          std::find_if(members.begin(), members.end(), [&](const Slow* m) { return m->series == &s; });
      slow.push_back(it == members.end() ? nullptr : *it);
      cases.push_back(
          {message_bytes(s), slow.back() != nullptr, slow.back() != nullptr ? slow.back()->row.n : 0});
    }
    const auto agree = agreeing(cases);
    for (std::size_t i = 0; i < slow.size(); ++i)
      if (agree[i]) {
        slow[i]->open = slow[i]->open || (slow[i]->would && slow[i]->deficit > constants::peers_open_deficit);
        slow[i]->warn = true;
      }
  }
}

/// One finding for each part and suite: the worst.
void report_all(Judgement& j, const std::vector<Slow>& found) {
  std::map<std::pair<std::int32_t, std::string>, std::vector<const Slow*>> parts;
  std::vector<const std::vector<const Slow*>*> order;
  for (const auto& slow : found) {
    auto& of = parts[{slow.row.entity, slow.series->suite}];
    if (of.empty()) order.push_back(&of);
    of.push_back(&slow);
  }
  for (const auto* of : order) {
    const auto* worst = *std::max_element(of->begin(), of->end(), [](const Slow* a, const Slow* b) {
      return std::tuple(a->warn, a->open, a->deficit) < std::tuple(b->warn, b->open, b->deficit);
    });
    report(j, *worst, of->size() - 1);
  }
}

/// Where half of the parts or more are slow, no majority says who is sound.
void open_without_majority(const Group& p, std::span<Slow> slow) {
  const auto warned = static_cast<std::size_t>(
      std::count_if(slow.begin(), slow.end(), [](const Slow& one) { return one.warn; }));
  if (p.shared || warned < 2 || 2 * warned < p.rows.size()) return;
  for (auto& one : slow) one.open = one.open || one.warn;
}

/// Spread of healthy parts where three are measured in several metrics: that of the two that are closest, in
/// the median.
double spread_of_threes(const std::vector<double>& closest) {
  constexpr std::size_t least_metrics = 6;
  constexpr double normal_closest = 0.36;  // of three normal values, in deviations
  return closest.size() < least_metrics ? 0 : median(closest) / normal_closest;
}

/// One of three nodes, which do not disturb one another, where the other two are alike. Two do not tell how
/// healthy ones spread: never a fault.
bool is_third_apart(const Judgement& j, const Series& s, const Group& p, std::size_t i, double deficit,
                    double best_sample) {
  constexpr double least_deviations = 8;  // of one that is slow in all metrics 21: the two others alone tell
  if (p.rows.size() != 3 || p.shared || !s.per_sample || best_sample < constants::peers_third_best ||
      deficit < std::max(constants::peers_third_deficit, least_deviations * p.spread))
    return false;
  std::set<std::int32_t> nodes;
  std::vector<double> others;
  for (std::size_t k = 0; k < p.rows.size(); ++k) {
    const auto& row = *p.rows[k];
    nodes.insert(j.entities.node(row.entity));
    if (row.n < constants::peers_third_samples || lacks_core(j, s, row.entity)) return false;
    if (k != i) others.push_back(row.median);
  }
  return nodes.size() == 3 && 1 - others.front() / others.back() <= constants::peers_third_alike * deficit;
}

void judge_group(const Judgement& j, const Series& s, Group& p, std::vector<Slow>& found) {
  const bool higher = s.better == results::Better::higher;
  const double overall = threshold_of(p, median(p.sorted));
  const bool small = p.sorted.size() < constants::peers_min_population;
  for (std::size_t i = 0; i < p.rows.size(); ++i) {
    const auto& row = *p.rows[i];
    double reference = median_without(p.sorted, i);
    if (!(reference > 0) || !(row.median > 0)) continue;
    const double faster = faster_half_without(p.sorted, i, higher);
    const bool of_faster =
        small && !p.shared && deficit_of(row.median, reference, higher) <= overall &&
        deficit_of(row.median, faster, higher) > std::max(overall, constants::peers_open_deficit);
    if (of_faster) reference = faster;
    const double deficit = deficit_of(row.median, reference, higher);
    if (deficit < constants::peers_min_deficit) continue;
    // The own uncertainty must not explain it either.
    const double half = std::isnan(row.claim_error) ? 0 : constants::interval_z * row.claim_error;
    const double best =
        deficit_of(higher ? row.median + half : std::max(row.median - half, 1e-300), reference, higher);
    // Few entities give no spread to judge by, so nothing but a lasting deficit counts: one that even the
    // best of enough samples shows. A neighbour on the machine slows some samples, a bad part all of them.
    // And ranks that take turns on a core get what the scheduler gives them: there the launch is the finding.
    const double best_sample = deficit_of(higher ? row.highest : row.lowest, reference, higher);
    const bool all_beyond = best_sample > overall;
    const bool lasting = !small || !s.per_sample || (row.n >= constants::peers_small_samples && all_beyond);
    // No scheduler leaves a rank so little of cores that all share. A pause of its host is in one or two
    // samples.
    const bool beyond_sharing =
        p.shared && best_sample > constants::peers_shared_most && (!s.per_sample || row.n >= 3);
    const bool far = deficit > overall && best > constants::peers_min_deficit && !p.shared;
    const bool third = is_third_apart(j, s, p, i, deficit, best_sample);
    // Too few samples show nothing that lasts, but nobody can measure an import again.
    const bool gross = s.is_imported() && far && all_beyond && deficit > constants::peers_open_deficit;
    Slow slow{
        &s, row, reference, deficit, p.rows.size() - 1, beyond_sharing || (far && lasting) || third || gross};
    slow.would = !slow.warn && far && all_beyond;
    slow.of_faster = of_faster;
    slow.open = slow.warn && far && (of_faster || deficit > constants::peers_open_deficit);
    const double note = p.shared ? overall : constants::peers_note_deficit;
    if (slow.warn || (deficit > note && (small || p.shared) && !of_faster)) found.push_back(slow);
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
  std::vector<std::pair<const Series*, Group>> all;
  std::vector<double> closest;
  for (auto& s : j.series) {
    if (!is_population(s)) continue;
    std::vector<Group> groups(peer_groups(s));
    for (auto& row : s.rows)  // values that cannot be have a rule of their own
      if (!std::isnan(log_rate(row.median, s.better))) groups[peer_group(j, s, row)].rows.push_back(&row);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      auto& p = groups[i];
      if (p.rows.size() < 2) continue;
      p.z = z;
      p.shared = group_shares_cores(i);
      for (auto* row : p.rows) row->reference = std::max<std::uint8_t>(row->reference, Reference::peers);
      if (has_own_rule(p.rows.size(), p.shared)) continue;
      sort_rows(p);
      if (p.rows.size() == 3)
        closest.push_back(std::log(std::min(p.sorted[1] / p.sorted[0], p.sorted[2] / p.sorted[1])));
      all.emplace_back(&s, std::move(p));
    }
  }
  std::vector<Slow> found;
  std::vector<std::size_t> ends;  // of what each group has in `found`
  const double spread = spread_of_threes(closest);
  for (auto& [s, p] : all) {
    p.spread = spread;
    judge_group(j, *s, p, found);
    ends.push_back(found.size());
  }
  raise_what_sizes_agree_on(j, found);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t first = i == 0 ? 0 : ends[i - 1];
    open_without_majority(all[i].second, std::span(found).subspan(first, ends[i] - first));
  }
  report_all(j, found);
}

}  // namespace assay::verdict
