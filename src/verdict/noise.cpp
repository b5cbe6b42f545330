// SPDX-License-Identifier: Apache-2.0
// Whether a metric was measured well enough to be judged at all, and which parts are slow now and then.
#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <map>
#include <set>

#include "measure/statistics.hpp"
#include "results/described.hpp"
#include "verdict/constants.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {

namespace {

/// The precision a row is judged to; NaN when it has too few samples to tell.
double precision_of(const SeriesRow& row) {
  if (!(std::abs(row.median) > 0)) return results::not_taken;
  return constants::noise_z * row.standard_error / std::abs(row.median);
}

/// Ends of links most of whose pairs are noisy: single pairs meet traffic in their round, and their ends are
/// judged over all partners.
std::set<std::int32_t> noisy_ends(const Series& s) {
  std::map<std::int32_t, std::vector<double>> pairs;
  for (const auto& row : s.rows) {
    const double delta = precision_of(row);
    if (std::isnan(delta)) continue;
    pairs[row.source].push_back(delta);
    pairs[row.destination].push_back(delta);
  }
  std::set<std::int32_t> ends;
  for (const auto& [end, deltas] : pairs) {
    if (median(deltas) > constants::noise_limit) ends.insert(end);
  }
  return ends;
}

/// What a part's precision is compared with. The standard error of ten samples in three blocks varies by
/// chance as much as the noise of a whole fleet does not: where its peers are precise, a part must be noisier
/// than they are.
double noise_limit_of(const Series& s) {
  std::vector<double> deltas;
  for (const auto& row : s.rows) {
    const double delta = precision_of(row);
    if (!std::isnan(delta)) deltas.push_back(delta);
  }
  if (s.kind == "link" || deltas.size() < constants::deletion_min) return constants::noise_limit;
  const double typical = median(deltas);
  if (typical > constants::noise_limit) return constants::noise_limit;
  return std::max(constants::noise_limit, constants::noise_of_peers * typical);
}

/// Parts that are at fault already: how uncertain their medians are says nothing more.
std::set<std::int32_t> parts_that_fail(const Judgement& j) {
  std::set<std::int32_t> parts;
  for (const auto& f : j.found)
    if (f.finding.severity == "FAIL") parts.insert(f.rows.begin(), f.rows.end());
  return parts;
}

bool fails(const std::set<std::int32_t>& failed, const Judgement& j, std::int32_t part) {
  return failed.contains(part) || failed.contains(j.entities.node(part));
}

}  // namespace

void judge_noise(Judgement& j) {
  const auto failed = parts_that_fail(j);
  for (const auto& s : j.series) {
    if (!s.required || !s.judged || !s.per_sample || s.stage == results::inventory_stage) continue;
    // In random groups a rank's samples differ with those it was drawn together with.
    if (s.first != nullptr && s.first->find("group") != nullptr) continue;
    const SeriesRow* worst = nullptr;
    double worst_delta = 0;
    std::vector<std::int32_t> rows;
    const bool links = s.kind == "link";
    const auto ends = links ? noisy_ends(s) : std::set<std::int32_t>{};
    const double limit = noise_limit_of(s);
    for (const auto& row : s.rows) {
      const double delta = precision_of(row);
      if (std::isnan(delta) || delta <= limit) continue;
      if (links && !ends.contains(row.source) && !ends.contains(row.destination)) continue;
      const auto own = rows_of(row);
      if (std::any_of(own.begin(), own.end(), [&](std::int32_t part) { return fails(failed, j, part); }))
        continue;
      rows.insert(rows.end(), own.begin(), own.end());
      if (worst != nullptr && delta <= worst_delta) continue;
      worst = &row;
      worst_delta = delta;
    }
    if (worst == nullptr) continue;
    const bool open = j.at_least_standard();
    auto f = j.about(s, worst->entity, open ? "WARN" : "INFO", "magnitude", "noisy");
    f.name = name_of(j, *worst);
    f.level = s.kind;
    f.value = worst->median;
    f.samples = worst->n;
    f.uncertainty = worst_delta;
    f.action = "MONITOR";
    f.text = s.full() + ": medians are uncertain by " + percent(worst_delta) +
             " (4 standard errors), more than " + percent(limit) + ": worst " + f.name +
             " (n=" + std::to_string(worst->n) + ")";
    j.add(std::move(f), rows, open);
  }
}

namespace {

/// A part with its samples, and those that dip.
struct Dipping {
  std::int32_t entity = -1;
  std::vector<std::int32_t> rows;
  std::int64_t dips = 0, n = 0;
  double median = results::not_taken;  ///< of its samples, where they are of one row
  double share() const {
    return static_cast<double>(dips) / static_cast<double>(std::max<std::int64_t>(n, 1));
  }
};

/// The parts of a series that can be compared: its entities, of links between nodes the nodes. Ranks that
/// share cores disturb one another and are left out.
std::vector<Dipping> dipping_parts(const Judgement& j, const Series& s) {
  std::vector<Dipping> parts;
  const bool links = s.kind == "link";
  if (links ? !s.judged || s.is_of(results::MetricClass::storage) : !is_population(s)) return parts;
  std::map<std::int32_t, Dipping> nodes;
  for (const auto& row : s.rows) {
    if (!links) {
      if (j.entities.shares_cores(row.entity) && !s.takes_turns) continue;
      parts.push_back({row.entity, rows_of(row), row.dips, row.dips_of, row.median});
      continue;
    }
    const auto from = j.entities.node(row.source), to = j.entities.node(row.destination);
    if (from < 0 || to < 0 || from == to) continue;
    if (j.entities.shares_cores(row.source) || j.entities.shares_cores(row.destination)) continue;
    for (const auto node : {from, to}) {
      auto& part = nodes[node];
      part.entity = node;
      part.rows = {node};
      part.dips += row.dips;
      part.n += row.dips_of;
    }
  }
  for (auto& [node, part] : nodes) parts.push_back(std::move(part));
  return parts;
}

/// Chance that any of the parts dips as often as the first, if all do as the others, which have one more.
double chance_of_dips(const std::vector<Dipping>& parts) {
  double dips = 1, n = 1;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    dips += static_cast<double>(parts[i].dips);
    n += static_cast<double>(parts[i].n);
  }
  const boost::math::binomial_distribution<> chance(static_cast<double>(parts[0].n), std::min(1.0, dips / n));
  return static_cast<double>(parts.size()) *
         boost::math::cdf(boost::math::complement(chance, static_cast<double>(parts[0].dips) - 1));
}

/// Whether the first part has enough dips. Single interruptions show in many samples only; a part of two
/// rates in few, where that is no chance of any of `tests` metrics.
bool enough_dips(const std::vector<Dipping>& parts, bool links, std::size_t tests) {
  const Dipping& worst = parts[0];
  // A part with more samples than others was measured again.
  if (worst.n >= constants::dips_min_samples && worst.n <= parts[1].n)
    return worst.dips >= (links ? constants::dips_min_links : constants::dips_min);
  return !links && worst.n >= constants::dips_few_samples && worst.dips >= constants::dips_min &&
         worst.share() >= constants::dips_few_share &&
         chance_of_dips(parts) * static_cast<double>(tests) <= constants::alpha_warn;
}

}  // namespace

/// A median does not see what happens in one sample of twenty. Interrupted and congested machines dip too, so
/// only a part that does so much more often than all others is named, and never as a fault.
void judge_dips(Judgement& j) {
  struct Dips {
    results::Finding finding;
    std::vector<std::int32_t> rows;
    double share = 0;
    std::size_t metrics = 0;
  };
  const auto failed = parts_that_fail(j);
  const auto tests = static_cast<std::size_t>(std::count_if(j.series.begin(), j.series.end(), is_population));
  std::map<std::pair<std::int32_t, std::string>, Dips> stories;  // of a part in a suite: the metric with most
  for (const auto& s : j.series) {
    auto parts = dipping_parts(j, s);
    if (parts.size() < 2 || (parts.size() < constants::peers_min_population && s.kind == "link")) continue;
    std::partial_sort(parts.begin(), parts.begin() + 2, parts.end(),
                      [](const Dipping& a, const Dipping& b) { return a.share() > b.share(); });
    const Dipping &worst = parts[0], &second = parts[1];
    const bool links = s.kind == "link";
    if (!enough_dips(parts, links, tests) || fails(failed, j, worst.entity)) continue;
    const double others = std::max(second.share() * static_cast<double>(worst.n), 1.0);
    if (static_cast<double>(worst.dips) < constants::dips_factor * others) continue;
    const bool shared = !links && lacks_core(j, s, worst.entity);
    auto f = j.about(s, worst.entity, shared ? "INFO" : "WARN", "abnormality", "intermittent");
    if (!std::isnan(worst.median)) f.value = worst.median;
    f.reference_kind = "peers";
    f.samples = worst.n;
    f.controls = static_cast<std::int64_t>(parts.size()) - 1;
    f.action = "MONITOR";
    f.text = f.name + ": " + s.full() + ": " + std::to_string(worst.dips) + " of " + std::to_string(worst.n) +
             " samples" + (links ? " of its links at less than " : " at less than ") +
             percent(constants::dip) +
             (links ? " of the link's upper quartile, of its " : " of its own upper quartile, of its ") +
             std::to_string(parts.size() - 1) + (parts.size() == 2 ? " peer's" : " peers'") +
             " samples at most " + percent(second.share()) + (shared ? "; others used its cores, too" : "");
    Dips& story = stories[{worst.entity, s.suite}];
    ++story.metrics;
    if (worst.share() > story.share) {
      story.finding = std::move(f);
      story.rows = worst.rows;
      story.share = worst.share();
    }
  }
  for (auto& [part, story] : stories) {
    if (story.metrics > 1)
      story.finding.text += ", and so in " + std::to_string(story.metrics - 1) + " other metric" +
                            (story.metrics > 2 ? "s" : "") + " of " + part.second;
    j.add(std::move(story.finding), std::move(story.rows));
  }
}

}  // namespace assay::verdict
