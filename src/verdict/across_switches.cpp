// SPDX-License-Identifier: Apache-2.0
// Links across switches that are all slow beside those below one switch: each of them meets a slow switch, or
// what joins the switches is slow, or the network carries less across by design. No switch is told from
// another by that.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/agreement.hpp"
#include "verdict/constants.hpp"
#include "verdict/link_group.hpp"
#include "verdict/network.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_relief.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

using network::LinkGroup;
using SwitchPair = std::pair<std::int32_t, std::int32_t>;

struct AcrossSwitches {
  LinkGroup across, below;
  std::map<SwitchPair, std::vector<double>> paths;  ///< log rates, both ways
  std::set<std::int32_t> switches;
  bool bounded = true;  ///< each link across is held against a limit or a baseline
};

AcrossSwitches links_by_place(const Judgement& j, const Series& s, const network::Places& places) {
  AcrossSwitches of;
  const auto on_a_slow_rail = [&](const SeriesRow& row) {
    return std::ranges::any_of(j.slow_rails,
                               [&](const SlowRail& r) { return r.contains(row.source, row.destination); });
  };
  for (const auto& row : s.rows) {
    if (!(row.median > 0) || j.entities.node(row.source) == j.entities.node(row.destination) ||
        j.entities.shares_cores(row.source) || j.entities.shares_cores(row.destination) ||
        on_a_slow_rail(row))
      continue;
    const auto from = places.switch_of(row.source), to = places.switch_of(row.destination);
    if (from < 0 || to < 0) continue;
    (from == to ? of.below : of.across).add(j, row);
    if (from == to) continue;
    of.switches.insert({from, to});
    of.paths[std::minmax(from, to)].push_back(std::log(row.median));
    of.bounded = of.bounded && row.reference >= Reference::baseline;
  }
  return of;
}

bool all_slow_across(AcrossSwitches& of) {
  if (of.across.rates.size() < constants::rail_links || of.below.rates.size() < constants::rail_links)
    return false;
  of.across.centre = median(of.across.rates);
  of.below.centre = median(of.below.rates);
  const double half = (of.below.centre - of.across.centre) / 2;
  return network::slow_beside(of.across, of.below, log_deficit(constants::network_fail), 1) &&
         std::ranges::all_of(of.paths,
                             [&](const auto& path) { return of.below.centre - median(path.second) >= half; });
}

/// A finding of links that says which switch, or that all links across are slow.
bool switches_are_named(const Judgement& j) {
  return std::ranges::any_of(j.found, [&](const Found& found) {
    const auto& f = found.finding;
    const Series* s = f.severity == "INFO" ? nullptr : series_of(j, f);
    return s != nullptr && s->kind == "link" && (f.level == "switch" || network::is_about_switches(j, f));
  });
}

void add_slow_across(Judgement& j, const Series& s, const AcrossSwitches& of, const network::Places& places) {
  const bool missed_floor = network::relieve_across(j, places, of.switches);
  auto f = j.about(s, -1, missed_floor ? "FAIL" : "WARN", "abnormality", "split");
  f.value = std::exp(of.across.centre);
  f.reference = std::exp(of.below.centre);
  f.reference_kind = "peers";
  f.deficit = fraction(of.below.centre - of.across.centre);
  f.samples = static_cast<std::int64_t>(of.across.rates.size());
  f.action = "TRIAGE";
  for (const auto row : of.switches) f.members.push_back(j.entities.name(row));
  f.text = "cluster: all links across switches are slow in " + s.full() + ", " +
           format_quantity(*f.value, s.unit) + " against " + format_quantity(*f.reference, s.unit) +
           " of those below one switch, deficit " + percent(*f.deficit) +
           " (n=" + std::to_string(*f.samples) + " links)" +
           (missed_floor ? ", and miss their physical floor" : "") + "; switches " + first_of(f.members) +
           ", the links that join them, or oversubscription by design: compare with a limit or a baseline";
  j.add(std::move(f), {});
}

}  // namespace

void judge_across_switches(Judgement& j) {
  if (switches_are_named(j)) return;
  const network::Places places(j);
  for (const auto& s : j.series) {
    if (!s.judged || s.kind != "link" || s.unit != "B/s" || s.is_of(results::MetricClass::storage) ||
        message_bytes(s) < constants::nic_floor_min_bytes)
      continue;
    auto of = links_by_place(j, s, places);
    if (of.bounded || !all_slow_across(of)) continue;
    add_slow_across(j, s, of, places);
    return;  // other sizes say the same
  }
}

}  // namespace assay::verdict
