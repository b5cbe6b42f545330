// SPDX-License-Identifier: Apache-2.0
// A collective of all nodes that is slow while pairs and small groups are clean: which half is slow, which
// quarter of that, ... Parts of one size run side by side and ought to be equally fast, so no other reference
// is needed.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/agreement.hpp"
#include "verdict/collective_groups.hpp"
#include "verdict/collectives.hpp"
#include "verdict/constants.hpp"
#include "verdict/network.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_levels.hpp"
#include "verdict/retest/candidates.hpp"

namespace assay::verdict {
namespace {

constexpr const char* variant = "halves";

bool of_world(const Series& s) {
  return s.is_of(results::MetricClass::collective) && s.stage == "world" && s.kind == "device" && s.judged &&
         s.per_sample && s.unit == "B/s" && s.first != nullptr;
}

double centre_of(const Series& s) {
  std::vector<double> medians;
  for (const auto& row : s.rows) medians.push_back(row.median);
  return medians.empty() ? 0 : median(medians);
}

bool is_about_network(const Judgement& j, const results::Finding& finding) {
  const Series* s = series_of(j, finding);
  return s != nullptr && (s->is_of(results::MetricClass::link) || s->is_of(results::MetricClass::collective));
}

/// Something is known to be slow between nodes already: then the world is slow for that reason.
bool explained(const Judgement& j) {
  return std::any_of(j.found.begin(), j.found.end(), [&](const Found& f) {
    const auto& finding = f.finding;
    const bool place = finding.level != "cluster" || finding.kind == "split";
    return finding.severity != "INFO" && (finding.kind == "slow" || finding.kind == "split") && place &&
           finding.reference_kind == "peers" && is_about_network(j, finding);
  });
}

/// The finding that the world is beyond a limit, a floor, its baseline or its past; null if none.
const results::Finding* bound_broken_by(const Judgement& j, const Series& world) {
  for (const auto& f : j.found)
    if (f.finding.metric == world.full() && (f.finding.kind == "slow" || f.finding.kind == "drift") &&
        f.finding.severity != "INFO" && f.finding.reference_kind != "peers")
      return &f.finding;
  return nullptr;
}

/// What says that all together are slow: a broken bound, or less than this share of what small groups reach
/// at the same size.
std::optional<std::string> slow_world(const Judgement& j, const Series& world) {
  if (const auto* f = bound_broken_by(j, world)) return "against its " + f->reference_kind;
  for (const auto& s : j.series) {
    if (s.suite != world.suite || s.stage != "groups" || s.metric != world.metric ||
        s.first->find("group") == nullptr || message_bytes(s) != message_bytes(world) ||
        rails_of(*s.first) > 1)
      continue;
    const double all = centre_of(world), few = centre_of(s);
    if (few > 0 && all < constants::bisection_share * few)
      return format_quantity(all, world.unit) + " against " + format_quantity(few, world.unit) +
             " in groups of 4 nodes";
  }
  return std::nullopt;
}

const results::CaseData* bisected(const Judgement& j, const Series& world) {
  for (const auto& c : j.results.cases)
    if (c.suite == world.suite && base_name(c.name) == world.name && text_parameter(c, "variant") == variant)
      return &c;
  return nullptr;
}

/// The world series to look into: of those whose halves were measured, else of all, the largest vectors,
/// which links decide.
const Series* suspect_world(const Judgement& j, std::string& why) {
  const auto rank = [&](const Series& s) { return std::pair(bisected(j, s) != nullptr, message_bytes(s)); };
  const Series* found = nullptr;
  for (const auto& s : j.series) {
    if (!of_world(s) || (found != nullptr && rank(s) <= rank(*found))) continue;
    if (const auto reason = slow_world(j, s)) {
      found = &s;
      why = *reason;
    }
  }
  return found;
}

/// The smallest part of the nodes that is slow beside its like.
struct SlowPart {
  std::set<std::int32_t> nodes;  ///< empty: no part is
  double rate = 0, others = 0;   ///< logs
  std::size_t parts = 0;         ///< of that size
  bool deepest = false;          ///< there were no smaller ones
  std::int64_t samples = 0;
};

SlowPart descend(const std::vector<Draw>& draws) {
  const double least = -std::log1p(-constants::peers_small_deficit);
  SlowPart place;
  for (std::size_t d = 0; d < draws.size(); ++d) {
    const Draw& draw = draws[d];
    if (draw.rates.size() < 2) continue;
    std::map<int, double> rate;
    std::vector<double> all;
    for (const auto& [part, rates] : draw.rates) all.push_back(rate[part] = median(rates));
    const double others = network::upper(all);
    std::size_t slow = 0;
    std::optional<int> worst;
    for (const auto& [part, nodes] : draw.units) {
      if (others - rate[part] < least) continue;
      ++slow;
      const bool within = place.nodes.empty() ||
                          std::includes(place.nodes.begin(), place.nodes.end(), nodes.begin(), nodes.end());
      if (within && (!worst || rate[part] < rate[*worst])) worst = part;
    }
    if (!worst || 2 * slow > rate.size()) continue;
    place = {draw.units.at(*worst),
             rate[*worst],
             others,
             rate.size(),
             d + 1 == draws.size(),
             static_cast<std::int64_t>(draw.rates.at(*worst).size())};
  }
  return place;
}

}  // namespace

void judge_bisection(Judgement& j) {
  std::string why;
  const Series* world = suspect_world(j, why);
  if (world == nullptr || explained(j)) return;
  const auto* c = bisected(j, *world);
  const auto draws = c == nullptr ? std::vector<Draw>{} : draws_of(j, *c, world->metric, Unit::node);
  // Without halves no part can be named: a note, unless a broken bound says that it is slow.
  if (draws.empty() &&
      (bound_broken_by(j, *world) != nullptr || j.entities.nodes().size() < constants::collective_nodes))
    return;
  const SlowPart place = descend(draws);
  const bool found = !place.nodes.empty();
  auto f = j.about(*world, -1, found ? "WARN" : "INFO", "abnormality", "slow");
  f.reference_kind = "peers";
  if (!draws.empty()) f.evidence = "/cases/" + c->path() + "/" + world->metric;
  f.action = "TRIAGE";
  const std::string start = "cluster: " + world->full() + " of all nodes is slow (" + why +
                            "), pairs and random groups name no part; ";
  if (!found) {
    f.value = centre_of(*world);
    f.text =
        start + (draws.empty()
                     ? "its halves were not measured"
                     : "of its halves down to " + std::to_string(draws.back().units.begin()->second.size()) +
                           " nodes none is slower than the others of its size: only all nodes together "
                           "are slow, as with an oversubscribed core of the network");
    j.add(std::move(f), {});
    return;
  }
  f.value = std::exp(place.rate);
  f.reference = std::exp(place.others);
  f.deficit = -std::expm1(place.rate - place.others);
  f.samples = place.samples;
  f.controls = static_cast<std::int64_t>(place.parts) - 1;
  std::string names;
  for (const auto row : place.nodes) {
    f.members.push_back(j.entities.name(row));
    if (f.members.size() <= 8) names += (names.empty() ? "" : ", ") + f.members.back();
  }
  f.text = start + "the part " + names +
           (f.members.size() > 8 ? " and " + std::to_string(f.members.size() - 8) + " more" : "") + " is, " +
           format_quantity(*f.value, f.unit) + " against " + format_quantity(*f.reference, f.unit) +
           " of the others of " + std::to_string(place.parts) + " parts, deficit " + percent(*f.deficit) +
           " (n=" + std::to_string(place.samples) + ")" +
           (place.deepest ? "" : "; its own halves are not: check the links between them");
  j.add(std::move(f), {place.nodes.begin(), place.nodes.end()});
}

std::vector<Retest> bisection_retests(const Judgement& judged) {
  if (judged.entities.nodes().size() < constants::collective_nodes) return {};
  Judgement j(judged.results, judged.options);
  j.series = judged.series;
  suspect_by_limits(j);
  std::string why;
  const Series* world = suspect_world(j, why);
  if (world == nullptr || bisected(j, *world) != nullptr) return {};
  judge_network(j);
  judge_collectives(j);
  judge_ranks_in_step(j);
  if (explained(j)) return {};
  Retest r = next_retest(j, world->suite, world->name, world->metric);
  r.variant = variant;
  for (const auto& row : world->rows) r.candidates.push_back(row.entity);
  return {r};
}

}  // namespace assay::verdict
