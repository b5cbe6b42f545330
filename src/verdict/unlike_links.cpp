// SPDX-License-Identifier: Apache-2.0
// Links between nodes of which many have less than half of the rate of the others, while no part explains
// it: half of a network that is slow has no peers that show which half is right.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/units.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/network.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_links.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

/// What is compared: links of one stratum, below one switch or across switches.
using LinksAlike = std::map<std::pair<std::int32_t, bool>, std::vector<const SeriesRow*>>;

LinksAlike links_alike(const Judgement& j, const Series& s, const network::Places& places) {
  LinksAlike alike;
  for (const auto& row : s.rows)
    if (row.median > 0 && std::isfinite(row.median) && row.reference < Reference::baseline &&
        j.entities.node(row.source) != j.entities.node(row.destination) &&
        !j.entities.shares_cores(row.source) && !j.entities.shares_cores(row.destination))
      alike[{row.stratum, places.switch_of(row.source) != places.switch_of(row.destination)}].push_back(&row);
  return alike;
}

bool links_are_told(const Judgement& j) {
  return std::ranges::any_of(j.found, [&](const Found& f) {
    const Series* s = f.finding.severity == "INFO" ? nullptr : series_of(j, f.finding);
    return s != nullptr && s->kind == "link" && f.finding.kind != "noisy" && f.finding.kind != "intermittent";
  });
}

/// Whether it says so.
bool add_two_populations(Judgement& j, const Series& s, const std::vector<const SeriesRow*>& links) {
  std::vector<double> rates;
  for (const auto* row : links) rates.push_back(std::log(row->median));
  if (rates.size() < constants::network_robust_population) return false;
  const auto split = best_split(rates, constants::network_spread_floor);
  const double gap = split.mean_high - split.mean_low;
  if (split.distance < constants::split_distance || gap < log_deficit(constants::collective_rare_deficit))
    return false;
  auto f = j.about(s, -1, "WARN", "abnormality", "split");
  f.value = std::exp(split.mean_low);
  f.reference = std::exp(split.mean_high);
  f.reference_kind = "peers";
  f.deficit = fraction(gap);
  f.samples = static_cast<std::int64_t>(links.size());
  f.action = "TRIAGE";
  std::vector<std::int32_t> rows;
  for (const auto* row : links) {
    if (std::log(row->median) >= split.cut) continue;
    f.members.push_back(name_of(j, *row));
    rows.insert(rows.end(), {row->source, row->destination});
  }
  f.text = "cluster: " + std::to_string(split.low) + " of " + std::to_string(links.size()) +
           " links are slow in " + s.full() + ", " + format_quantity(*f.value, s.unit) + " against " +
           format_quantity(*f.reference, s.unit) + " of the others, deficit " + percent(*f.deficit) +
           "; no node, NIC or switch explains them, so that a limit or a baseline has to tell which are "
           "right; members " +
           first_of(f.members);
  // Where others take the cores of the ranks, the links that happen to be slow are others in each run.
  const bool open = !note_shared_cores(j, s, rows, f);
  j.add(std::move(f), std::move(rows), open);
  return true;
}

}  // namespace

void judge_unlike_links(Judgement& j) {
  const network::Places places(j);
  for (const auto& s : j.series) {
    if (!s.judged || s.kind != "link" || s.unit != "B/s" || s.is_of(results::MetricClass::storage)) continue;
    if (links_are_told(j)) return;
    for (const auto& [alike, links] : links_alike(j, s, places))
      if (add_two_populations(j, s, links)) return;  // other sizes say the same
  }
}

}  // namespace assay::verdict
