// SPDX-License-Identifier: Apache-2.0
// A rail (local rank k of every node) all of whose groups are slow: what its devices share, such as the
// switches of that rail.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/collective_groups.hpp"
#include "verdict/collectives.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"

namespace assay::verdict {
namespace {

struct Rail {
  std::vector<double> rates;  ///< log of each group's
  std::set<std::int32_t> devices;
  double centre = 0;
};

std::map<int, Rail> rails_in(const Judgement& j, const Series& s) {
  std::map<int, Rail> rails;
  for (const auto& c : j.results.cases) {
    if (c.suite != s.suite || c.case_key != s.first->case_key || base_name(c.name) != s.name ||
        c.state != results::CaseState::pass)
      continue;
    for (const auto& draw : draws_of(j, c, s.metric, Unit::device))
      for (const auto& [group, rates] : draw.rates) {
        Rail& rail = rails[group % rails_of(c)];
        rail.rates.push_back(median(rates));
        rail.devices.insert(draw.units.at(group).begin(), draw.units.at(group).end());
      }
  }
  std::erase_if(rails, [](const auto& r) { return r.second.rates.size() < constants::collective_draws; });
  for (auto& [number, rail] : rails) rail.centre = median(rail.rates);
  return rails;
}

}  // namespace

results::Finding about_rail(const Judgement& j, const Series& s, const RailClaim& claim,
                            const std::set<std::int32_t>& members) {
  const bool fault = std::string_view(claim.severity) == "FAIL";
  auto f = j.about(s, -1, claim.severity, fault ? "magnitude" : "abnormality", fault ? "slow" : "split");
  f.value = claim.value;
  f.reference = claim.reference;
  f.reference_kind = "peers";
  f.deficit = claim.deficit;
  f.samples = static_cast<std::int64_t>(claim.samples);
  f.action = "TRIAGE";
  for (const auto row : members) f.members.push_back(j.entities.name(row));
  const std::string number = std::to_string(claim.number);
  f.text = "cluster: rail " + number + " (" + claim.who + " " + number +
           " of every node) is slow in all its " + claim.measured + " of " + s.full() + ", " +
           format_quantity(claim.value, s.unit) + " against " + format_quantity(claim.reference, s.unit) +
           " of the fastest rail, deficit " + percent(claim.deficit) +
           " (n=" + std::to_string(claim.samples) + " " + claim.of + ")";
  return f;
}

void judge_rails(Judgement& j) {
  std::set<int> told;  // the other sizes say the same
  for (const auto& s : j.series) {
    if (!s.judged || s.unit != "B/s" || s.stage != "groups" || s.first == nullptr || rails_of(*s.first) < 2)
      continue;
    const auto rails = rails_in(j, s);
    if (rails.size() < 2) continue;
    double best = rails.begin()->second.centre;
    for (const auto& [number, rail] : rails) best = std::max(best, rail.centre);
    // Rails differ by design (which NIC, how near to the memory), so it takes much.
    const auto slow = [&](const Rail& rail) {
      return best - rail.centre >= -std::log1p(-constants::peers_small_deficit);
    };
    const auto count =
        std::count_if(rails.begin(), rails.end(), [&](const auto& r) { return slow(r.second); });
    if (2 * static_cast<std::size_t>(count) > rails.size()) continue;
    for (const auto& [number, rail] : rails) {
      if (!slow(rail) || !told.insert(number).second) continue;
      const RailClaim claim{"WARN",
                            number,
                            std::exp(rail.centre),
                            std::exp(best),
                            -std::expm1(rail.centre - best),
                            rail.rates.size(),
                            "local rank",
                            "groups",
                            "groups"};
      j.add(about_rail(j, s, claim, rail.devices), {rail.devices.begin(), rail.devices.end()});
    }
  }
}

}  // namespace assay::verdict
