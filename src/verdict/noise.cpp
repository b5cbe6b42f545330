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

/// The parts of a series that can be compared: its entities, of links between nodes the nodes; the one that
/// dips most is first. Ranks that share cores disturb one another and are left out, and so are parts that
/// fail, with their links: how often they dip says nothing of the others.
std::vector<Dipping> dipping_parts(const Judgement& j, const Series& s,
                                   const std::set<std::int32_t>& failed) {
  std::vector<Dipping> parts;
  const bool links = s.kind == "link";
  if (links ? !s.judged || s.is_of(results::MetricClass::storage) : !is_population(s)) return parts;
  std::map<std::int32_t, Dipping> nodes;
  for (const auto& row : s.rows) {
    if (!links) {
      if ((j.entities.shares_cores(row.entity) && !s.takes_turns) || fails(failed, j, row.entity)) continue;
      parts.push_back({row.entity, rows_of(row), row.dips, row.dips_of, row.median});
      continue;
    }
    const auto from = j.entities.node(row.source), to = j.entities.node(row.destination);
    if (from < 0 || to < 0 || from == to || failed.contains(from) || failed.contains(to)) continue;
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
  std::sort(parts.begin(), parts.end(), [](const Dipping& a, const Dipping& b) {
    return std::pair(a.share(), b.entity) > std::pair(b.share(), a.entity);
  });
  return parts;
}

/// What is usual: the parts that are not held to dip more than others.
struct UsualDips {
  double share = 0;        ///< the largest
  double dips = 0, n = 0;  ///< of all of them
  std::int64_t most_samples = 0;
};

/// Chance that any of all parts dips as often, if all dip alike. Of many samples it is that of so large a
/// share of all dips; of few, where dips must be a fifth, that at the rate of the usual ones with one dip
/// more.
double chance_of_dips(const Dipping& part, const UsualDips& usual, std::size_t parts) {
  const double n = static_cast<double>(part.n), dips = static_cast<double>(part.dips);
  const bool many = part.n >= constants::dips_min_samples;
  const boost::math::binomial_distribution<> chance(
      many ? dips + usual.dips : n,
      many ? n / (n + usual.n) : std::min(1.0, (usual.dips + 1) / (usual.n + 1)));
  return static_cast<double>(parts) * boost::math::cdf(boost::math::complement(chance, dips - 1));
}

/// What one series is judged by.
struct DipsOf {
  bool links = false;
  std::size_t parts = 0;
  std::size_t tests = 0;  ///< metrics of the run
};

/// Whether a part dips so much more than the usual ones, and more than chance explains. Single interruptions
/// show in many samples only; a part of two rates in few.
bool dips_more(const Dipping& part, const UsualDips& usual, const DipsOf& of) {
  const double others = std::max(usual.share * static_cast<double>(part.n), 1.0);
  if (static_cast<double>(part.dips) < constants::dips_factor * others) return false;
  // A part with more samples than others was measured again.
  const bool enough = part.n >= constants::dips_min_samples && part.n <= usual.most_samples
                          ? part.dips >= (of.links ? constants::dips_min_links : constants::dips_min)
                          : !of.links && part.n >= constants::dips_few_samples &&
                                part.dips >= constants::dips_min && part.share() >= constants::dips_few_share;
  return enough &&
         chance_of_dips(part, usual, of.parts) * static_cast<double>(of.tests) <= constants::alpha_warn;
}

/// How many of the parts, a fifth at most, dip more than all others do. Compared with the second alone, any
/// two would hide each other; where more parts dip, this is what the fleet does.
std::size_t dipping_apart(const std::vector<Dipping>& parts, const DipsOf& of, UsualDips& usual) {
  const auto most = std::max<std::size_t>(
      1, static_cast<std::size_t>(constants::split_minority * static_cast<double>(parts.size())));
  usual = {};
  for (std::size_t i = parts.size(); i-- > 1;) {
    usual.share = parts[i].share();
    usual.dips += static_cast<double>(parts[i].dips);
    usual.n += static_cast<double>(parts[i].n);
    usual.most_samples = std::max(usual.most_samples, parts[i].n);
    if (i > most || parts[i - 1].share() < constants::dips_factor * usual.share) continue;
    if (std::all_of(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const Dipping& part) { return dips_more(part, usual, of); }))
      return i;
  }
  return 0;
}

/// Dips of a part in the metrics of a suite: the one with most of them.
struct DipsStory {
  results::Finding finding;
  std::vector<std::int32_t> rows;
  double share = 0;
  std::size_t metrics = 0;
};

results::Finding about_dips(const Judgement& j, const Series& s, const Dipping& part, const UsualDips& usual,
                            std::size_t peers) {
  const bool links = s.kind == "link", shared = !links && lacks_core(j, s, part.entity);
  auto f = j.about(s, part.entity, shared ? "INFO" : "WARN", "abnormality", "intermittent");
  if (!std::isnan(part.median)) f.value = part.median;
  f.reference_kind = "peers";
  f.samples = part.n;
  f.controls = static_cast<std::int64_t>(peers);
  f.action = "MONITOR";
  f.text = f.name + ": " + s.full() + ": " + std::to_string(part.dips) + " of " + std::to_string(part.n) +
           " samples" + (links ? " of its links at less than " : " at less than ") + percent(constants::dip) +
           (links ? " of the link's upper quartile, of " : " of its own upper quartile, of ") +
           std::to_string(peers) + (peers == 1 ? " peer's" : " peers'") + " samples at most " +
           percent(usual.share) + (shared ? "; others used its cores, too" : "");
  return f;
}

/// One finding of all parts of a suite that dip, which are too many to be told one by one.
void add_dips_of_many(Judgement& j, const std::vector<DipsStory>& stories) {
  auto f = std::max_element(stories.begin(), stories.end(), [](const auto& a, const auto& b) {
             return a.share < b.share;
           })->finding;
  std::vector<std::int32_t> rows;
  for (const auto& story : stories) {
    f.members.push_back(story.finding.name);
    rows.insert(rows.end(), story.rows.begin(), story.rows.end());
  }
  f.text = "cluster: " + std::to_string(stories.size()) + " parts are slow now and then; worst " + f.text +
           "; members " + first_of(f.members);
  f.level = f.name = "cluster";
  j.add(std::move(f), std::move(rows));
}

}  // namespace

/// A median does not see what happens in one sample of twenty. Interrupted and congested machines dip too, so
/// only parts that do so much more often than all others are named, and never as a fault.
void judge_dips(Judgement& j) {
  const auto failed = parts_that_fail(j);
  const auto tests = static_cast<std::size_t>(std::count_if(j.series.begin(), j.series.end(), is_population));
  std::map<std::string, std::map<std::int32_t, DipsStory>> suites;
  for (const auto& s : j.series) {
    const auto parts = dipping_parts(j, s, failed);
    const bool links = s.kind == "link";
    if (parts.size() < 2 || (parts.size() < constants::peers_min_population && links)) continue;
    UsualDips usual;
    const std::size_t apart = dipping_apart(parts, {links, parts.size(), tests}, usual);
    for (std::size_t i = 0; i < apart; ++i) {
      auto& story = suites[s.suite][parts[i].entity];
      ++story.metrics;
      if (parts[i].share() <= story.share) continue;
      story.finding = about_dips(j, s, parts[i], usual, parts.size() - apart);
      story.rows = parts[i].rows;
      story.share = parts[i].share();
    }
  }
  for (auto& [suite, parts] : suites) {
    std::vector<DipsStory> many;
    for (auto& [part, story] : parts) {
      if (story.metrics > 1)
        story.finding.text += ", and so in " + std::to_string(story.metrics - 1) + " other metric" +
                              (story.metrics > 2 ? "s" : "") + " of " + suite;
      if (story.finding.severity == "WARN" && parts.size() > constants::list_members)
        many.push_back(std::move(story));
      else
        j.add(std::move(story.finding), std::move(story.rows));
    }
    if (!many.empty()) add_dips_of_many(j, many);
  }
}

}  // namespace assay::verdict
