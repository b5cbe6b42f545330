// SPDX-License-Identifier: Apache-2.0
// Rails found from pairs: NIC (or rank) k of every node. Where all pairs of a rail are slow, every other
// comparison is among its own members or finds each node half slow; beside the other rails it shows.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "results/inventory_names.hpp"
#include "verdict/collectives.hpp"
#include "verdict/constants.hpp"
#include "verdict/link_group.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_links.hpp"
#include "verdict/network_relief.hpp"
#include "verdict/population.hpp"
#include "verdict/strata.hpp"

namespace assay::verdict {
namespace {

using PairedRail = network::LinkGroup;
using PairedRails = std::map<int, PairedRail>;

/// The slots of NICs and devices, by row of /entities.
std::vector<std::int32_t> numbers_of_ends(const Judgement& j) {
  auto numbers = slots_in_nodes(j.entities, "nic");
  const auto devices = slots_in_nodes(j.entities, "device");
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::max(numbers[i], devices[i]);
  return numbers;
}

/// What rails must have in common to be compared: the kind of their parts, of NICs also the protocol and the
/// nominal rate (/inventory/nic). By row of /entities.
std::map<std::int32_t, std::string> kinds_of_parts(const Judgement& j) {
  std::map<std::int32_t, std::string> kinds;
  for (std::size_t i = 0; i < j.entities.size(); ++i)
    kinds[static_cast<std::int32_t>(i)] = j.entities.kind(static_cast<std::int32_t>(i));
  const auto table = j.results.inventory.find("nic");
  if (table == j.results.inventory.end()) return kinds;
  const auto* rate = number_column(table->second, {results::inventory::rate});
  const auto* protocol = text_column(table->second, {"kind"});
  for (std::size_t i = 0; i < table->second.entity.size(); ++i)
    kinds[table->second.entity[i]] += " " + (protocol != nullptr ? (*protocol)[i] : "") + " " +
                                      (rate != nullptr ? std::to_string((*rate)[i]) : "");
  return kinds;
}

/// The number of a link's rail; -1 for a link inside a node, of two numbers, or of ranks on shared cores.
int rail_of(const Judgement& j, const std::vector<std::int32_t>& numbers, const SeriesRow& row) {
  if (!j.entities.valid(row.source) || !j.entities.valid(row.destination) || row.median <= 0) return -1;
  const int number = numbers[network::at(row.source)];
  if (number != numbers[network::at(row.destination)] ||
      j.entities.node(row.source) == j.entities.node(row.destination) ||
      j.entities.shares_cores(row.source) || j.entities.shares_cores(row.destination))
    return -1;
  return number;
}

/// Whether the middles of any two are as far apart as a warning takes. Most fleets have no slow rail, and
/// many links.
bool may_have_slow_rails(const Judgement& j, const Series& s, const std::vector<std::int32_t>& numbers) {
  std::vector<std::vector<double>> rates;
  for (const auto& row : s.rows) {
    const int number = rail_of(j, numbers, row);
    if (number < 0) continue;
    if (network::at(number) >= rates.size()) rates.resize(network::at(number) + 1);
    rates[network::at(number)].push_back(std::log(row.median));
  }
  std::erase_if(rates, [](const auto& of_rail) { return of_rail.empty(); });
  if (rates.size() < 2) return false;
  std::vector<double> middles;
  for (const auto& of_rail : rates) middles.push_back(median(of_rail));
  const auto [least, most] = std::ranges::minmax_element(middles);
  return *most - *least >= log_deficit(constants::network_warn);
}

/// The rails of a series of links between nodes, apart by kind; those with pairs of too few nodes, or of
/// parts of several kinds, are left out.
std::map<std::string, PairedRails> rails_of_links(const Judgement& j, const Series& s,
                                                  const std::vector<std::int32_t>& numbers) {
  const auto kinds = kinds_of_parts(j);
  PairedRails rails;
  std::map<int, std::set<std::string>> kinds_of_rail;
  for (const auto& row : s.rows) {
    const int number = rail_of(j, numbers, row);
    if (number < 0) continue;
    PairedRail& rail = rails[number];
    rail.add(j, row);
    for (const auto end : {row.source, row.destination}) kinds_of_rail[number].insert(kinds.at(end));
  }
  std::map<std::string, PairedRails> by_kind;
  for (auto& [number, rail] : rails) {
    const auto& kind = kinds_of_rail[number];
    if (kind.size() > 1 || rail.of_node.size() < constants::rail_nodes ||
        rail.rates.size() < constants::rail_links)
      continue;
    rail.centre = median(rail.rates);
    by_kind[*kind.begin()].emplace(number, std::move(rail));
  }
  return by_kind;
}

/// The switches of a rail, if it has them for itself.
std::set<std::int32_t> own_switches(const PairedRails& rails, int rail, const network::Places& places) {
  std::set<std::int32_t> own;
  for (const auto end : rails.at(rail).ends) {
    const auto row = places.switch_of(end);
    if (row < 0) return {};
    own.insert(row);
  }
  for (const auto& [number, other] : rails)
    for (const auto end : other.ends)
      if (number != rail && own.contains(places.switch_of(end))) return {};
  return own;
}

/// Nodes whose other rails are as they should be.
std::set<std::int32_t> sound_nodes(const PairedRails& rails, const std::set<int>& slow, double best) {
  std::map<std::int32_t, std::vector<double>> others;
  for (const auto& [number, rail] : rails)
    for (const auto& [node, rates] : rail.of_node)
      if (!slow.contains(number)) others[node].insert(others[node].end(), rates.begin(), rates.end());
  std::set<std::int32_t> sound;
  for (const auto& [node, rates] : others)
    if (best - median(rates) < constants::network_fail) sound.insert(node);
  return sound;
}

/// Compared among themselves, the links of a slow rail neither hide a fault of another rail nor get excuses.
/// Retests, which know no strata, take off what the rail loses.
void set_apart(Judgement& j, SlowRail& rail) {
  const auto in_any = [&](const SeriesRow& row) {
    return std::ranges::any_of(j.slow_rails,
                               [&](const SlowRail& r) { return r.contains(row.source, row.destination); });
  };
  for (auto& s : j.series) {
    if (s.kind != "link") continue;
    std::vector<double> own, others;
    std::int32_t stratum = -1;
    for (auto& row : s.rows) {
      if (row.median <= 0) continue;
      const double rate = (s.better == results::Better::lower ? -1 : 1) * std::log(row.median);
      const bool across = j.entities.node(row.source) != j.entities.node(row.destination);
      if (rail.contains(row.source, row.destination)) {
        if (stratum < 0) {
          stratum = static_cast<std::int32_t>(s.strata.size());
          s.strata.push_back(s.strata[network::at(row.stratum)] + ", slow rail " +
                             std::to_string(rail.number));
        }
        row.stratum = stratum;
        own.push_back(rate);
      } else if (across && !in_any(row)) {
        others.push_back(rate);
      }
    }
    if (!own.empty() && !others.empty()) rail.loss[s.full()] = network::upper(others) - network::upper(own);
  }
}

void add_slow_rails(Judgement& j, const Series& s, const PairedRails& rails, const network::Places& leaves) {
  const auto& best =
      std::ranges::max_element(rails, {}, [](const auto& r) { return r.second.centre; })->second;
  std::set<int> numbers;
  for (const auto& [number, rail] : rails)
    if (network::slow_beside(rail, best, log_deficit(constants::network_warn), rails.size()))
      numbers.insert(number);
  for (const int number : numbers) {
    const auto known = [&](const SlowRail& other) { return other.number == number; };
    if (std::ranges::any_of(j.slow_rails, known)) continue;  // other sizes say the same
    const PairedRail& rail = rails.at(number);
    SlowRail found;
    found.number = number;
    found.metric = s.full();
    found.ends = rail.ends;
    found.switches = own_switches(rails, number, leaves);
    found.sound_nodes = sound_nodes(rails, numbers, best.centre);
    found.links = rail.rates.size();
    found.value = std::exp(rail.centre);
    found.deficit = -std::expm1(rail.centre - best.centre);
    found.most = 2 * numbers.size() > rails.size();
    j.slow_rails.push_back(std::move(found));
  }
}

std::set<std::int32_t> explained_by(const SlowRail& rail) {
  std::set<std::int32_t> rows = rail.ends;
  rows.insert(rail.switches.begin(), rail.switches.end());
  rows.insert(rail.sound_nodes.begin(), rail.sound_nodes.end());
  return rows;
}

/// What lies between a rank and its NIC may differ by design; NICs of one rate do not by so much.
const char* severity_of(const Judgement& j, const SlowRail& rail) {
  const bool nics = j.entities.kind(*rail.ends.begin()) == "nic";
  if (rail.deficit >= (nics ? constants::peers_small_deficit : constants::rail_deficit)) return "FAIL";
  return rail.deficit >= (nics ? constants::network_fail : constants::peers_small_deficit) ? "WARN" : "INFO";
}

/// More than half of the rails are slow beside the fastest: peers do not show which side is right.
void add_most_rails(Judgement& j, const std::vector<const SlowRail*>& rails) {
  const SlowRail& worst = **std::ranges::max_element(rails, {}, [](const auto* r) { return r->deficit; });
  const auto s = std::ranges::find(j.series, worst.metric, &Series::full);
  std::set<std::int32_t> rows, explained;
  std::string numbers;
  std::size_t links = 0;
  for (const auto* rail : rails) {
    rows.insert(rail->ends.begin(), rail->ends.end());
    explained.merge(explained_by(*rail));
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(rail->number);
    links += rail->links;
  }
  const bool missed_floor = network::fold_floors(j, std::move(explained));
  const std::string peers = severity_of(j, worst);
  const bool told = peers != "INFO";
  auto f = j.about(*s, -1, missed_floor ? "FAIL" : told ? "WARN" : "INFO", "abnormality", "split");
  f.value = worst.value;
  f.reference = worst.value / (1 - worst.deficit);
  f.reference_kind = "peers";
  f.deficit = worst.deficit;
  f.samples = static_cast<std::int64_t>(links);
  f.action = "TRIAGE";
  for (const auto row : rows) f.members.push_back(j.entities.name(row));
  f.text = "cluster: rails " + numbers + " (these numbers of every node) are slow in all their pairs of " +
           s->full() + ", the slowest " + format_quantity(*f.value, s->unit) + " against " +
           format_quantity(*f.reference, s->unit) + " of the fastest rail, deficit " +
           percent(worst.deficit) + " (n=" + std::to_string(links) +
           " links); they are more than half of the rails, so that a limit " +
           "or a baseline has to tell which side is right";
  const bool open = told && !missed_floor && worst.deficit > constants::coarse_deficit;
  j.add(std::move(f), {rows.begin(), rows.end()}, open);
}

}  // namespace

void find_slow_rails(Judgement& j) {
  const auto numbers = numbers_of_ends(j);
  for (const auto& s : j.series) {
    if (!s.judged || s.kind != "link" || s.unit != "B/s" || s.is_of(results::MetricClass::storage) ||
        !may_have_slow_rails(j, s, numbers))
      continue;
    const network::Places leaves(j);
    for (const auto& [kind, rails] : rails_of_links(j, s, numbers)) add_slow_rails(j, s, rails, leaves);
  }
  for (auto& rail : j.slow_rails) set_apart(j, rail);
}

void judge_slow_rails(Judgement& j) {
  std::vector<const SlowRail*> most;
  for (const auto& rail : j.slow_rails) {
    if (rail.most) {
      most.push_back(&rail);
      continue;
    }
    const auto s = std::ranges::find(j.series, rail.metric, &Series::full);
    const auto& rows = rail.switches.empty() ? rail.ends : rail.switches;
    const bool missed_floor = network::fold_floors(j, explained_by(rail));
    const RailClaim claim{missed_floor ? "FAIL" : severity_of(j, rail),
                          rail.number,
                          rail.value,
                          rail.value / (1 - rail.deficit),
                          rail.deficit,
                          rail.links,
                          "number",
                          "pairs",
                          "links"};
    auto f = about_rail(j, *s, claim, rows);
    f.text += (rail.switches.empty() ? "; members " : "; its switches ") + first_of(f.members);
    j.add(std::move(f), {rows.begin(), rows.end()});
  }
  if (!most.empty()) add_most_rails(j, most);
}

}  // namespace assay::verdict
