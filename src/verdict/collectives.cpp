// SPDX-License-Identifier: Apache-2.0
#include "verdict/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/units.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_levels.hpp"

namespace assay::verdict {
namespace {

/// Draws of groups that a case holds, as scores of nodes.
struct GroupScores {
  std::vector<std::int32_t> nodes;            ///< rows of /entities
  std::vector<std::vector<double>> values;    ///< by node: log rate of its group in each draw, less the draw's median
  std::vector<std::int64_t> samples;          ///< by node
  double centre = 0;                          ///< median log rate of the groups
};

bool in_groups(const Series& s) {
  return s.kind == "device" && s.stage == "groups" && s.judged && s.per_sample && s.first != nullptr &&
         s.unit == "B/s" && s.first->find("group") != nullptr;
}

/// One draw of a case: samples of every group, and who was in it.
struct Draw {
  std::map<int, std::vector<double>> rates;
  std::map<int, std::set<std::int32_t>> nodes;
};

void add_case(const Judgement& j, const results::CaseData& c, const Series& s, std::vector<Draw>& draws) {
  const auto *m = c.find(s.metric), *group = c.find("group");
  const std::size_t width = c.samples();
  if (m == nullptr || group == nullptr || !group->per_sample || m->values.size() < c.entities() * width ||
      group->values.size() < c.entities() * width)
    return;
  std::map<std::int32_t, Draw> own;
  for (std::size_t r = 0; r < c.entities(); ++r) {
    const auto node = j.entities.node(c.entity[r]);
    for (std::size_t i = 0; i < width && (r >= c.count.size() || static_cast<int>(i) < c.count[r]); ++i) {
      const double rate = m->values[r * width + i], number = group->values[r * width + i];
      if (!(rate > 0) || !(number >= 0) || number > 1e9 || node < 0) continue;
      Draw& draw = own[static_cast<std::int32_t>(number / 1e6)];
      draw.rates[static_cast<int>(number)].push_back(std::log(rate));
      draw.nodes[static_cast<int>(number)].insert(node);
    }
  }
  for (auto& [block, draw] : own) draws.push_back(std::move(draw));
}

GroupScores scores_of(const Judgement& j, const Series& s, bool fresh) {
  std::vector<Draw> draws;
  for (const auto& c : j.results.cases) {
    if (c.suite != s.suite || c.case_key != s.first->case_key || (confirming_number(c.name) > 0) != fresh ||
        base_name(c.name) != s.name || c.state != results::CaseState::pass)
      continue;
    add_case(j, c, s, draws);
  }
  std::map<std::int32_t, std::vector<double>> values;
  std::map<std::int32_t, std::int64_t> samples;
  std::vector<double> all;
  for (const auto& draw : draws) {
    std::map<int, double> rate;
    std::vector<double> rates;
    for (const auto& [group, of] : draw.rates) rates.push_back(rate[group] = median(of));
    if (rates.size() < 2) continue;
    all.insert(all.end(), rates.begin(), rates.end());
    // The upper half of the groups is free of a few culprits even where they sit in most groups.
    const double centre = network::upper(rates);
    for (const auto& [group, nodes] : draw.nodes)
      for (const auto node : nodes) {
        values[node].push_back(rate[group] - centre);
        samples[node] += static_cast<std::int64_t>(draw.rates.at(group).size() / std::max<std::size_t>(1, nodes.size()));
      }
  }
  GroupScores scores;
  scores.centre = all.empty() ? 0 : median(all);
  for (auto& [node, v] : values) {
    scores.nodes.push_back(node);
    scores.values.push_back(std::move(v));
    scores.samples.push_back(samples[node]);
  }
  return scores;
}

/// A node is as good as the best of its groups.
double best(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

struct SlowNode {
  std::int32_t node = -1;
  double deficit = 0, p = 1;
  std::int64_t samples = 0;
  bool alone = false;
};

/// Nodes all of whose groups are slow. Several nodes that were always together cannot be told apart: then none is named.
std::vector<SlowNode> slow_nodes(const GroupScores& scores, std::size_t tests) {
  std::vector<double> bests;
  std::size_t least = scores.values.empty() ? 0 : scores.values.front().size();
  for (const auto& v : scores.values) {
    bests.push_back(best(v));
    least = std::min(least, v.size());
  }
  std::vector<SlowNode> found;
  if (bests.size() < constants::collective_nodes || least < constants::collective_draws) return found;
  const auto add = [&](std::size_t i, double deficit, double p) {
    found.push_back({scores.nodes[i], deficit, p, scores.samples[i], true});
  };
  const double alpha = constants::network_alpha_warn / static_cast<double>(std::max<std::size_t>(1, tests));
  if (bests.size() >= constants::network_robust_population) {
    for (const auto& low : network::low_outliers(bests, alpha))
      if (low.deficit >= constants::network_fail) add(low.index, low.deficit, low.p_adjusted * static_cast<double>(tests));
  } else {
    const double slow = -std::log1p(-constants::peers_small_deficit), centre = network::upper(bests);
    for (std::size_t i = 0; i < bests.size(); ++i)
      if (centre - bests[i] >= slow) add(i, centre - bests[i], results::not_taken);
  }
  if (found.size() > bests.size() / 4) found.clear();
  for (auto& a : found)
    for (const auto& b : found) {
      if (a.node == b.node) continue;
      const auto of = [&](std::int32_t node) {
        const auto at = std::find(scores.nodes.begin(), scores.nodes.end(), node) - scores.nodes.begin();
        return scores.values[static_cast<std::size_t>(at)];
      };
      if (of(a.node) == of(b.node)) a.alone = false;
    }
  std::erase_if(found, [](const SlowNode& s) { return !s.alone; });
  return found;
}

/// Whether new groups of the node are slow too, by how much at least.
struct Again {
  bool measured = false;
  double deficit = 0, low = 0;
  std::size_t controls = 0;
};
Again again(const GroupScores& fresh, std::int32_t node, std::size_t candidates) {
  Again a;
  std::vector<double> others;
  double own = results::not_taken;
  for (std::size_t i = 0; i < fresh.nodes.size(); ++i) {
    if (fresh.values[i].size() < 2) continue;
    if (fresh.nodes[i] == node)
      own = best(fresh.values[i]);
    else
      others.push_back(best(fresh.values[i]));
  }
  if (std::isnan(own) || others.size() + 1 < constants::collective_nodes) return a;
  const double n = static_cast<double>(others.size()), spread = std::max(mad_sigma(others), constants::network_spread_floor);
  const double se = spread * std::sqrt(1 + 1.5708 / n);
  a.measured = true;
  a.controls = others.size();
  a.deficit = median(others) - own;
  a.low = a.deficit - t_quantile(1 - constants::network_alpha_confirm / static_cast<double>(std::max<std::size_t>(1, candidates)), n - 1) * se;
  return a;
}

std::vector<const Series*> group_series(const Judgement& j) {
  std::vector<const Series*> found;
  for (const auto& s : j.series)
    if (in_groups(s)) found.push_back(&s);
  return found;
}

/// Nodes that have a finding about their links already.
std::set<std::int32_t> named_by_links(const Judgement& j) {
  std::set<std::int32_t> named;
  for (const auto& f : j.found) {
    if (f.finding.severity == "INFO" || f.finding.kind != "slow" || f.finding.suite != "p2p") continue;
    for (const auto row : f.rows) named.insert(j.entities.node(row));
  }
  return named;
}

results::Finding finding_of(const Judgement& j, const Series& s, const GroupScores& scores, const SlowNode& slow, const Again& a) {
  const bool confirmed = a.measured && a.low > 0;
  const double deficit = confirmed ? a.deficit : slow.deficit;
  auto f = j.about(slow.node, a.measured && !confirmed ? "INFO" : "WARN", "abnormality", "slow");
  f.suite = s.suite;
  f.metric = s.full();
  f.unit = s.unit;
  f.better = results::to_string(s.better);
  f.reference = std::exp(scores.centre);
  f.value = std::exp(scores.centre - deficit);
  f.reference_kind = "peers";
  f.deficit = -std::expm1(-deficit);
  if (confirmed) f.ci_low = -std::expm1(-a.low);
  f.samples = slow.samples;
  f.controls = static_cast<std::int64_t>(scores.nodes.size()) - 1;
  f.confirmed = confirmed;
  if (!std::isnan(slow.p)) f.p_adjusted = std::min(1.0, slow.p);
  f.action = "TRIAGE";
  f.evidence = s.path;
  f.text = f.name + ": every random group it was in is slow in " + s.full() + ", " + format_quantity(*f.value, s.unit) +
           " against " + format_quantity(*f.reference, s.unit) + ", deficit " + percent(*f.deficit) +
           " (n=" + std::to_string(slow.samples) + "), its pairs are not" +
           (confirmed ? ", confirmed by new groups" : a.measured ? ", not slow in new groups" : ", not confirmed");
  return f;
}

}  // namespace

void judge_collectives(Judgement& j) {
  const auto series = group_series(j);
  if (series.empty()) return;
  auto named = named_by_links(j);
  for (auto& s : j.series) {
    if (!in_groups(s) || s.rows.size() < constants::collective_nodes) continue;
    for (auto& row : s.rows) row.reference = std::max<std::uint8_t>(row.reference, Reference::peers);
  }
  for (const auto* s : series) {
    const auto scores = scores_of(j, *s, false);
    const auto slow = slow_nodes(scores, series.size());
    if (slow.empty()) continue;
    const auto fresh = scores_of(j, *s, true);
    for (const auto& one : slow)
      // One finding per node: the other sizes say the same.
      if (named.insert(one.node).second) j.add(finding_of(j, *s, scores, one, again(fresh, one.node, slow.size())), {one.node});
  }
}

std::vector<Recheck> collective_rechecks(const Judgement& j) {
  std::vector<Recheck> asked;
  const auto series = group_series(j);
  std::set<std::int32_t> known;
  for (const auto* s : series) {
    const auto scores = scores_of(j, *s, false);
    std::set<std::int32_t> nodes;
    for (const auto& one : slow_nodes(scores, series.size()))
      if (known.insert(one.node).second) nodes.insert(one.node);
    if (nodes.empty() || !scores_of(j, *s, true).nodes.empty()) continue;
    Recheck r;
    r.suite = s->suite;
    r.name = s->name;
    r.metric = s->metric;
    for (const auto& row : s->rows) (nodes.contains(j.entities.node(row.entity)) ? r.candidates : r.controls).push_back(row.entity);
    asked.push_back(std::move(r));
  }
  return asked;
}

}  // namespace assay::verdict
