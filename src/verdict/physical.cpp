// SPDX-License-Identifier: Apache-2.0
// Floors that follow from what the hardware reports. Claimed only where the inventory knows the rates
// exactly.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/units.hpp"
#include "results/inventory_names.hpp"
#include "verdict/collective_groups.hpp"
#include "verdict/constants.hpp"
#include "verdict/judgement.hpp"
#include "verdict/network_levels.hpp"
#include "verdict/network_links.hpp"
#include "verdict/retest/result.hpp"
#include "verdict/shared_end.hpp"

namespace assay::verdict {
namespace {

using Numbers = std::unordered_map<std::int32_t, double>;

Numbers numbers_of(const Judgement& j, const char* kind, std::initializer_list<const char*> names) {
  Numbers numbers;
  const auto it = j.results.inventory.find(kind);
  if (it == j.results.inventory.end()) return numbers;
  const auto* values = number_column(it->second, names);
  for (std::size_t i = 0; values != nullptr && i < values->size(); ++i) {
    if ((*values)[i] > 0) numbers[it->second.entity[i]] = (*values)[i];
  }
  return numbers;
}

using Judged = std::function<std::vector<Below>(const std::vector<Below>&)>;

/// Findings for one series: for the parts that explain links below the bound, for the population when most of
/// the rest is below, else one for each entity. `judged`, if given, picks the entities whose rate tells of
/// themselves; where others are explained it is asked again for the rest.
void settle(Judgement& j, const Series& s, std::vector<Below> all, const std::string& what_prefix,
            const Judged& judged = {}) {
  if (judged) all = judged(all);
  std::vector<Below> below;
  std::copy_if(all.begin(), all.end(), std::back_inserter(below),
               [](const Below& b) { return b.value < b.reference; });
  if (below.empty()) return;
  take_retests(j, s, below);
  const bool own = !s.is_of(results::MetricClass::collective);  // else the ranks are no population
  if (!own) below = one_for_each_communicator(j, s, below);
  auto what = [&](const Below& b) { return what_prefix + " " + format_quantity(b.reference, s.unit); };
  std::vector<const SeriesRow*> rows;
  for (const auto& b : all) rows.push_back(b.row);
  explain_by_ends(j, s, rows, below, "physical", what(below.front()));
  if (judged && rows.size() < all.size()) {
    const std::set<const SeriesRow*> left(rows.begin(), rows.end());
    std::erase_if(all, [&](const Below& b) { return !left.contains(b.row); });
    std::set<const SeriesRow*> kept;
    for (const auto& b : judged(all)) kept.insert(b.row);
    std::erase_if(below, [&](const Below& b) { return !kept.contains(b.row); });
  }
  const bool population = own && rows.size() >= constants::population_min;
  add_below(j, s, std::move(below), rows.size(), population ? 1 : rows.size() + 1, "physical", what);
}

/// Nodes of which the launch left out cores or memory; -1: of all. GPUs that no rank has are no part of what
/// fills the DIMMs, nor are counters that cannot be read.
std::set<std::int32_t> partly_used(const Judgement& j) {
  std::set<std::int32_t> nodes;
  for (const auto& e : j.results.events) {
    if (e.finding != "uncovered" || e.kind == "launch-info") continue;
    const std::int32_t node = j.entities.node(e.entity);
    const auto host = node < 0 ? std::string::npos : e.text.find(": ");  // may have any name
    const std::string what = host == std::string::npos ? " " + e.text : e.text.substr(host + 1);
    const auto says = [&](const char* word) { return what.find(word) != std::string::npos; };
    if (!says("GPU") && (says(" core") || says(" memory"))) nodes.insert(node);
  }
  return nodes;
}

/// By node: NUMA domains that take a share of its bandwidth, and devices that the run measures.
struct MemoryUsers {
  explicit MemoryUsers(const Judgement& j) {
    // Memory behind a CXL link or of a GPU may be a domain without cores, which takes no share.
    const Numbers cores = numbers_of(j, "numa", {"pus"});
    std::set<std::int32_t> known;  // nodes that tell it
    for (const auto& [domain, pus] : cores) known.insert(j.entities.node(domain));
    for (std::size_t i = 0; i < j.entities.size(); ++i) {
      const auto row = static_cast<std::int32_t>(i), node = j.entities.node(row);
      const std::string& kind = j.results.entities[i].kind;
      if (kind == "numa" && (!known.contains(node) || cores.contains(row))) ++domains[node];
      if (kind == "device" && j.entities.takes_part(row)) ++devices[node];
    }
  }
  Numbers domains, devices;
};

void judge_memory(Judgement& j) {
  Numbers bandwidth = numbers_of(j, "node", {results::inventory::memory_bandwidth});
  // With cores left idle by the launch the controllers cannot be filled, and a floor would name the
  // launch's victim.
  for (const auto node : partly_used(j)) {
    if (node < 0) return;
    bandwidth.erase(node);
  }
  if (bandwidth.empty()) return;
  MemoryUsers users(j);
  for (auto& s : j.series) {
    if (s.judging.floor != results::Floor::memory_channels || !s.judged) continue;
    std::unordered_map<std::int32_t, Below> sums;  // by numa domain, or by node for devices that ran together
    std::unordered_map<std::int32_t, double> members;
    for (auto& row : s.rows) {
      const auto node = j.entities.node(row.entity);
      const auto known = bandwidth.find(node);
      if (known == bandwidth.end()) continue;
      const bool numa = s.kind == "numa";
      const double share = numa ? known->second / users.domains[node] : known->second;
      auto& b = sums[numa ? row.entity : node];
      b.row = &row;
      b.entity = numa ? row.entity : node;
      b.rows.push_back(row.entity);
      b.value += row.median;
      b.standard_error = std::hypot(b.standard_error, row.claim_error);
      b.reference = constants::memory_floor_fraction * share;
      b.n += row.n;
      ++members[b.entity];
    }
    std::vector<Below> all;
    for (auto& [entity, b] : sums) {
      if (s.kind == "device" && members[entity] < users.devices[entity])
        continue;  // a part of the node is not the node
      all.push_back(b);
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.entity < b.entity; });
    std::set<std::int32_t> judged;
    for (const auto& b : all) judged.insert(b.rows.begin(), b.rows.end());
    for (auto& row : s.rows) {
      if (judged.contains(row.entity))
        row.reference = std::max<std::uint8_t>(row.reference, Reference::physical);
    }
    settle(j, s, all, "physical floor");
  }
}

struct NicRate {
  double rate = 0;
  bool tcp = false;  ///< what goes over it goes through the kernel

  /// What one of `streams` at the same time may claim.
  double share(std::size_t streams) const {
    const double equal = rate / static_cast<double>(std::max<std::size_t>(1, streams));
    return tcp ? std::min(equal, constants::tcp_stream_rate) : equal;
  }
};

/// Of the physical NICs that are up, by NIC; and by node where it has only one: which of several carries a
/// message is not known from outside.
std::unordered_map<std::int32_t, NicRate> nic_rates(const Judgement& j) {
  std::unordered_map<std::int32_t, NicRate> rates, by_node;
  Numbers known;
  const auto it = j.results.inventory.find("nic");
  if (it == j.results.inventory.end()) return rates;
  // The table holds physical NICs only; a fabric port and the network interface riding on it are one.
  const auto& table = it->second;
  const auto* rate = number_column(table, {results::inventory::rate});
  const auto* state = text_column(table, {"state"});
  const auto* kind = text_column(table, {"kind"});
  const auto* made_up = number_column(table, {"virtual_device"});
  if (rate == nullptr || state == nullptr) return rates;
  const auto riding = riding_interfaces(j);
  for (std::size_t i = 0; i < table.entity.size(); ++i) {
    // A topology file may place NICs without hardware behind them: their rate is made up.
    if (made_up != nullptr && (*made_up)[i] > 0) continue;
    if ((*state)[i] != "up" || riding.contains(j.entities.name(table.entity[i]))) continue;
    const auto node = j.entities.node(table.entity[i]);
    ++known[node];
    if ((*rate)[i] > 0)
      by_node[node] = rates[table.entity[i]] = {(*rate)[i], kind != nullptr && (*kind)[i] == "ethernet"};
  }
  std::erase_if(by_node, [&](const auto& r) { return known[r.first] != 1; });
  rates.merge(by_node);
  return rates;
}

double message_bytes(const results::CaseData& c) {
  for (const char* key : {"bytes", "size", "message_bytes"}) {
    const auto it = c.parameters.find(key);
    if (it != c.parameters.end() && it->is_number()) return it->get<double>();
  }
  return 0;
}

/// Pairs from which what a node sends, or receives, is looked at by itself.
constexpr std::size_t least_one_way = 3;

/// A pair measured once beside all the others may meet traffic: whose NIC is below its floor shows over its
/// partners. Those of which one end is below with even the upper quartile of its pairs (as ratio to the
/// floor), or of what it sends or receives; with one partner that pair is it. Pairs below a switch and across
/// switches are told apart, because a slow uplink is in the latter only; together they tell of a node that
/// has few of either.
std::vector<Below> without_traffic(const Judgement& j, const std::vector<Below>& all) {
  const network::Places places(j);
  enum Way { sends, receives, both };
  enum Kind { below_switch, across_switches, all_pairs };
  using Group = std::tuple<std::int32_t, Way, Kind>;  // of a node
  const auto groups = [&](const Below& b) {
    const auto &from = places.leaf_of(b.row->source), &to = places.leaf_of(b.row->destination);
    const Kind kind = !from.empty() && !to.empty() && from != to ? across_switches : below_switch;
    const auto source = j.entities.node(b.row->source), destination = j.entities.node(b.row->destination);
    return std::array{Group{source, sends, kind},
                      Group{source, both, kind},
                      Group{source, sends, all_pairs},
                      Group{source, both, all_pairs},
                      Group{destination, receives, kind},
                      Group{destination, both, kind},
                      Group{destination, receives, all_pairs},
                      Group{destination, both, all_pairs}};
  };
  std::map<Group, std::vector<double>> ratios;
  for (const auto& b : all)
    for (const auto& group : groups(b)) ratios[group].push_back(b.value / b.reference);
  std::set<Group> below;
  for (const auto& [group, values] : ratios)
    if ((std::get<Way>(group) == both || values.size() >= least_one_way) && network::upper(values) < 1.0)
      below.insert(group);
  std::vector<Below> kept;
  std::copy_if(all.begin(), all.end(), std::back_inserter(kept), [&](const Below& b) {
    const auto own = groups(b);
    return b.value >= b.reference ||
           std::any_of(own.begin(), own.end(), [&](const Group& group) { return below.contains(group); });
  });
  return kept;
}

void judge_nic_pairs(Judgement& j) {
  const auto rates = nic_rates(j);
  if (rates.empty()) return;
  for (auto& s : j.series) {
    if (s.judging.floor != results::Floor::nic_rate || !s.judged) continue;
    if (message_bytes(*s.first) < constants::nic_floor_min_bytes) continue;
    // Pairs of one node may run at the same time and share its NIC: each can claim only its part.
    std::unordered_map<std::int32_t, std::set<std::int32_t>> active;
    for (const auto& row : s.rows) {
      const auto a = j.entities.node(row.source), b = j.entities.node(row.destination);
      if (a == b) continue;
      active[a].insert(row.source);
      active[b].insert(row.destination);
    }
    std::vector<Below> all;
    for (auto& row : s.rows) {
      const auto a = j.entities.node(row.source), b = j.entities.node(row.destination);
      // A link between NICs was measured over these alone.
      const bool alone = j.entities.kind(row.source) == "nic";
      const auto ra = rates.find(alone ? row.source : a), rb = rates.find(alone ? row.destination : b);
      if (a == b || ra == rates.end() || rb == rates.end()) continue;
      const double share = std::min(ra->second.share(alone ? 1 : active[a].size()),
                                    rb->second.share(alone ? 1 : active[b].size()));
      row.reference = std::max<std::uint8_t>(row.reference, Reference::physical);
      all.push_back({&row, row.entity, rows_of(row), row.median, constants::nic_floor_fraction * share,
                     row.claim_error, row.n, true, false});
    }
    settle(j, s, std::move(all), "physical floor",
           [&](const std::vector<Below>& pairs) { return without_traffic(j, pairs); });
  }
}

/// Series whose case stores beside them what bounds each entity: `covariate` is its name, `floor` the
/// fraction of the bound that a series is held against (0: none), `bound` the bound by the medians of rate
/// and covariate.
void judge_by_covariate(Judgement& j, const std::string& covariate,
                        const std::function<double(const Series&)>& floor,
                        const std::function<double(double rate, double covariate)>& bound) {
  std::map<std::pair<std::string, std::string>, const Series*> stored;
  for (const auto& s : j.series)
    if (s.metric == covariate) stored[{s.suite, s.name}] = &s;
  for (auto& s : j.series) {
    const auto beside = stored.find({s.suite, s.name});
    if (beside == stored.end() || !s.judged || s.first == nullptr) continue;
    const double fraction = floor(s);
    if (!(fraction > 0 && fraction < 1)) continue;
    const auto key = [](const SeriesRow& row) { return std::tuple(row.entity, row.source, row.destination); };
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, double> values;
    for (const auto& row : beside->second->rows) values[key(row)] = row.median;
    std::vector<Below> all;
    for (auto& row : s.rows) {
      const auto value = values.find(key(row));
      if (value == values.end() || !(value->second > 0) || !std::isfinite(value->second)) continue;
      row.reference = std::max<std::uint8_t>(row.reference, Reference::physical);
      all.push_back({&row, row.entity, rows_of(row), row.median, fraction * bound(row.median, value->second),
                     row.claim_error, row.n, true, false});
    }
    settle(j, s, all, "physical floor");
  }
}

/// A storage case may store what the links beneath each entity carry.
void judge_storage_links(Judgement& j) {
  const auto floor = [](const Series& s) {
    return s.is_of(results::MetricClass::storage) && s.unit == "B/s" ? constants::storage_floor_fraction
                                                                     : 0.0;
  };
  judge_by_covariate(j, covariate::link_rate, floor, [](double, double link_rate) { return link_rate; });
}

/// The cases of GPUs store which share of their bound each reached.
void judge_gpu_bounds(Judgement& j) {
  const auto floor = [](const Series& s) {
    const auto stated = s.first->parameters.find("bound_floor");
    const bool meant = s.judging.floor == results::Floor::gpu_bound && stated != s.first->parameters.end();
    return meant && stated->is_number() ? stated->get<double>() : 0.0;
  };
  judge_by_covariate(j, covariate::bound_share, floor,
                     [](double rate, double share) { return rate / share; });
}

}  // namespace

void judge_physical(Judgement& j) {
  judge_memory(j);
  judge_storage_links(j);
  judge_nic_pairs(j);
  judge_gpu_bounds(j);
}

}  // namespace assay::verdict
