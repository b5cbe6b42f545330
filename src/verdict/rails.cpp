// SPDX-License-Identifier: Apache-2.0
// A rail (local rank k of every node) all of whose groups are slow: what its devices share, such as the
// switches of that rail.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
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

/// More than half of the rails are slow beside the fastest: rails may differ by design, so it is a note.
void note_most_rails(Judgement& j, const Series& s, const std::map<int, Rail>& slow, double best) {
  const Rail& worst =
      std::ranges::min_element(slow, {}, [](const auto& r) { return r.second.centre; })->second;
  auto f = j.about(s, -1, "INFO", "abnormality", "split");
  f.value = std::exp(worst.centre);
  f.reference = std::exp(best);
  f.reference_kind = "peers";
  f.deficit = -std::expm1(worst.centre - best);
  f.action = "TRIAGE";
  std::string numbers;
  std::size_t groups = 0;
  for (const auto& [number, rail] : slow) {
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(number);
    groups += rail.rates.size();
    for (const auto row : rail.devices) f.members.push_back(j.entities.name(row));
  }
  f.samples = static_cast<std::int64_t>(groups);
  f.text = "cluster: rails " + numbers + " (these local ranks of every node) are slow in their groups of " +
           s.full() + ", the slowest " + format_quantity(*f.value, s.unit) + " against " +
           format_quantity(*f.reference, s.unit) + " of the fastest rail, deficit " + percent(*f.deficit) +
           " (n=" + std::to_string(groups) +
           " groups); they are more than half of the rails, so that a limit or a baseline has to tell which "
           "side is right";
  j.add(std::move(f), {});
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
  // Their pairs may have told it.
  bool noted = std::ranges::any_of(j.slow_rails, &SlowRail::most);
  for (const auto& s : j.series) {
    if (!s.judged || s.unit != "B/s" || s.stage != "groups" || s.first == nullptr || rails_of(*s.first) < 2)
      continue;
    const auto rails = rails_in(j, s);
    if (rails.size() < 2) continue;
    double best = rails.begin()->second.centre;
    for (const auto& [number, rail] : rails) best = std::max(best, rail.centre);
    // Rails differ by design (which NIC, how near to the memory), so it takes much.
    std::map<int, Rail> slow;
    for (const auto& [number, rail] : rails)
      if (best - rail.centre >= -std::log1p(-constants::peers_small_deficit)) slow.emplace(number, rail);
    if (2 * slow.size() > rails.size()) {
      if (!noted) note_most_rails(j, s, slow, best);
      noted = true;
      continue;
    }
    for (const auto& [number, rail] : slow) {
      if (!told.insert(number).second) continue;
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
