// SPDX-License-Identifier: Apache-2.0
// Whether a metric was measured well enough to be judged at all, and which parts are slow now and then.
#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <limits>
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
  std::int64_t episodes = 0, longest = 0;  ///< runs of consecutive dips, and the length of the longest one
  double median = results::not_taken;      ///< of its samples, where they are of one row
  std::int64_t events = 0;                 ///< dips, or episodes where dips come in a row
  double share() const { return part_of(dips); }
  double part_of(std::int64_t count) const {
    return static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(n, 1));
  }
};

/// A job, a daemon or heat that disturbs a healthy part lasts for several samples: one event, where chance
/// would seldom leave the same dips in so few runs (Wald and Wolfowitz 1940).
std::int64_t events_of(const Dipping& part) {
  const auto d = static_cast<double>(part.dips), others = static_cast<double>(part.n - part.dips);
  if (part.dips <= part.episodes || others < 1) return part.episodes;
  const auto log_choose = [](double n, double k) {
    return k > n ? -std::numeric_limits<double>::infinity()
                 : std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
  };
  double as_few = 0;
  for (std::int64_t i = 1; i <= part.episodes && as_few <= constants::dips_clustered; ++i) {
    const auto runs = static_cast<double>(i);
    as_few +=
        std::exp(log_choose(d - 1, runs - 1) + log_choose(others + 1, runs) - log_choose(d + others, d));
  }
  return as_few > constants::dips_clustered ? part.dips : part.episodes;
}

/// The parts of a series that can be compared: its entities, of links between nodes the nodes. Ranks that
/// share cores disturb one another and are left out, and so are parts that
/// fail, with their links: how often they dip says nothing of the others.
bool may_dip(const Series& s) {
  return s.kind == "link" ? s.judged && !s.is_of(results::MetricClass::storage) : is_population(s);
}

std::vector<Dipping> dipping_parts(const Judgement& j, const Series& s,
                                   const std::set<std::int32_t>& failed) {
  std::vector<Dipping> parts;
  const bool links = s.kind == "link";
  if (!may_dip(s)) return parts;
  std::map<std::int32_t, Dipping> nodes;
  for (const auto& row : s.rows) {
    if (!links) {
      if ((j.entities.shares_cores(row.entity) && !s.takes_turns) || fails(failed, j, row.entity)) continue;
      parts.push_back(
          {row.entity, rows_of(row), row.dips, row.dips_of, row.episodes, row.longest, row.median});
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
      part.episodes += row.episodes;
    }
  }
  for (auto& [node, part] : nodes) parts.push_back(std::move(part));
  for (auto& part : parts) part.events = events_of(part);
  return parts;
}

/// What is usual: the parts that are not held to dip more than others.
struct UsualDips {
  double share = 0;         ///< of samples, the largest
  double events_share = 0;  ///< of events, the largest
  std::int64_t longest = 0;
  double dips = 0, events = 0, n = 0;  ///< of all of them
  std::int64_t most_samples = 0;
  void add(const Dipping& part) {
    share = std::max(share, part.share());
    events_share = std::max(events_share, part.part_of(part.events));
    longest = std::max(longest, part.longest);
    dips += static_cast<double>(part.dips);
    events += static_cast<double>(part.events);
    n += static_cast<double>(part.n);
    most_samples = std::max(most_samples, part.n);
  }
};

/// What is counted of a part, and of all usual ones.
struct DipsCount {
  std::int64_t own = 0;
  double usual = 0;
};

/// Chance that any of all parts has so high a count, if all are alike. Of many samples it is that of so large
/// a share of all counts; of few, where dips must be a fifth, that at the rate of the usual ones with one
/// more.
double chance_of_dips(const DipsCount& count, double n, double usual_n, std::size_t parts) {
  const auto own = static_cast<double>(count.own);
  const bool many = n >= constants::dips_min_samples;
  const boost::math::binomial_distribution<> chance(
      many ? own + count.usual : n,
      many ? n / (n + usual_n) : std::min(1.0, (count.usual + 1) / (usual_n + 1)));
  return static_cast<double>(parts) * boost::math::cdf(boost::math::complement(chance, own - 1));
}

/// What one series is judged by.
struct DipsOf {
  bool links = false;
  std::size_t parts = 0;
  std::size_t tests = 0;  ///< metrics of the run, of parts or of links
};

/// Whether a part dips so much more often than the usual ones, and more than chance explains. Single
/// interruptions show in many samples only; a part of two rates in few, of which it must lose more than any
/// other, too.
bool dips_more(const Dipping& part, const UsualDips& usual, const DipsOf& of) {
  const auto n = static_cast<double>(part.n);
  const auto exceeds = [&](const DipsCount& count, double largest) {
    return static_cast<double>(count.own) >= constants::dips_factor * std::max(largest * n, 1.0) &&
           chance_of_dips(count, n, usual.n, of.parts) * static_cast<double>(of.tests) <=
               constants::alpha_warn;
  };
  if (!exceeds({part.events, usual.events}, usual.events_share)) return false;
  // A part with more samples than others was measured again.
  if (part.n >= constants::dips_min_samples && part.n <= usual.most_samples)
    return part.dips >= (of.links ? constants::dips_min_links : constants::dips_min);
  return !of.links && part.n >= constants::dips_few_samples && part.events >= constants::dips_min &&
         part.share() >= constants::dips_few_share && exceeds({part.dips, usual.dips}, usual.share);
}

/// Whether a part once dips for so much longer than any of the usual ones that it is no disturbance as
/// theirs.
bool dips_longer(const Dipping& part, const UsualDips& usual, const DipsOf& of) {
  return !of.links && part.longest >= constants::dips_long &&
         part.part_of(part.longest) >= constants::dips_few_share &&
         static_cast<double>(part.longest) >= constants::dips_factor * static_cast<double>(usual.longest);
}

using IsApart = bool (*)(const Dipping&, const UsualDips&, const DipsOf&);

/// How many of the parts, of which the worst is first, are apart from all others. Compared with the second
/// alone, any two would hide each other; where more parts than `most` dip, this is what the fleet does.
std::size_t apart_from_others(const std::vector<Dipping>& parts, const DipsOf& of, IsApart is_apart) {
  const auto fifth = static_cast<std::size_t>(constants::split_minority * static_cast<double>(parts.size()));
  const std::size_t few = !of.links && parts.size() >= constants::dips_two_of ? 2 : 1;
  const std::size_t most = std::max(few, fifth);
  UsualDips usual;
  for (std::size_t i = parts.size(); i-- > 1;) {
    usual.add(parts[i]);
    if (i > most) continue;
    if (std::all_of(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const Dipping& part) { return is_apart(part, usual, of); }))
      return i;
  }
  return 0;
}

/// The parts that dip more often or for longer than all others come first; how many they are.
std::size_t dipping_apart(std::vector<Dipping>& parts, const DipsOf& of) {
  const auto rank = [&](auto&& of_part) {
    std::sort(parts.begin(), parts.end(), [&](const Dipping& a, const Dipping& b) {
      return std::pair(of_part(a), b.entity) > std::pair(of_part(b), a.entity);
    });
  };
  std::set<std::int32_t> named;
  const auto name = [&](IsApart is_apart) {
    const std::size_t apart = apart_from_others(parts, of, is_apart);
    for (std::size_t i = 0; i < apart; ++i) named.insert(parts[i].entity);
  };
  rank([](const Dipping& part) { return static_cast<double>(part.longest); });
  name(dips_longer);
  rank([](const Dipping& part) { return part.part_of(part.events); });
  name(dips_more);
  std::stable_partition(parts.begin(), parts.end(),
                        [&](const Dipping& part) { return named.contains(part.entity); });
  return named.size();
}

/// Dips of a part in the metrics of a suite: the one with most of them.
struct DipsStory {
  results::Finding finding;
  std::vector<std::int32_t> rows;
  double share = 0;
  std::size_t metrics = 0;
};

/// Where dips come in a row.
std::string runs_of(const Dipping& part) {
  if (part.events == part.dips || part.longest < 2) return "";
  return part.episodes == 1 ? " in a row"
                            : ", in " + std::to_string(part.episodes) + " runs of up to " +
                                  std::to_string(part.longest) + ",";
}

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
           " samples" + (links ? " of its links" : "") + runs_of(part) + " at less than " +
           percent(constants::dip) +
           (links ? " of the link's upper quartile; " : " of its own upper quartile; ") +
           std::to_string(peers) + (peers == 1 ? " peer" : " peers") + ": at most " + percent(usual.share) +
           (shared ? "; its cores were shared" : "");
  return f;
}

/// Cases in which a file server did not answer for a while, by their names without repeats: writers that had
/// to wait for it have a backlog afterwards, others none.
std::set<std::string> cases_with_stalls(const Judgement& j) {
  std::set<std::string> cases;
  for (const auto& e : j.results.events)
    if (e.finding == "hang" && !e.case_path.empty()) cases.insert(base_name(e.case_path));
  return cases;
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
  const auto stalls = cases_with_stalls(j);
  std::size_t tests[2] = {};  // of parts, of links
  for (const auto& s : j.series) tests[s.kind == "link"] += may_dip(s) ? 1U : 0U;
  std::map<std::string, std::map<std::int32_t, DipsStory>> suites;
  for (const auto& s : j.series) {
    auto parts = dipping_parts(j, s, failed);
    const bool links = s.kind == "link";
    if (parts.size() < 2 || (parts.size() < constants::peers_min_population && links)) continue;
    const std::size_t apart = dipping_apart(parts, {links, parts.size(), tests[links]});
    UsualDips usual;
    for (std::size_t i = apart; i < parts.size(); ++i) usual.add(parts[i]);
    for (std::size_t i = 0; i < apart; ++i) {
      auto& story = suites[s.suite][parts[i].entity];
      ++story.metrics;
      auto finding = about_dips(j, s, parts[i], usual, parts.size() - apart);
      if (stalls.contains(s.suite + "/" + s.name)) {
        finding.severity = "INFO";
        finding.text += "; a file server did not answer for a while in this case";
      }
      const auto weight = std::pair(finding.severity == "WARN", parts[i].share());
      if (weight <= std::pair(story.finding.severity == "WARN", story.share)) continue;
      story.finding = std::move(finding);
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
