// SPDX-License-Identifier: Apache-2.0
// Collectives that are slower than anything plausible, where nothing else compares them: beside the links of
// the same run, and over the sizes of the same operation. A collective does not tell which of its ranks is at
// fault, so the verdict is open.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/agreement.hpp"
#include "verdict/collective_groups.hpp"
#include "verdict/collectives.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/peer_findings.hpp"

namespace assay::verdict {
namespace {

constexpr double unknown_latency_s = 2e-5;  ///< of a message over TCP
constexpr double start_s = 1e-5;            ///< of an operation, as of one on a GPU
constexpr double least_message = 1 << 16;   ///< of a link whose rate is no latency
/// Vectors from this size on may be sent in a ring, and with a handshake for each message: latencies of a
/// step. Smaller ones have one.
constexpr double ring_bytes = 1 << 13, long_bytes = 1 << 20, handshake_latencies = 4;
/// Times that a ring, the slower way among many ranks, may take; `collective_implausible` is of the faster.
constexpr double ring_implausible = 3;

/// The ranks of one communicator: those of a node, or all. Groups stand for one of them.
struct Together {
  double ranks = 0;                   ///< of one communicator
  std::vector<double> medians, best;  ///< of the samples of each rank
  std::int64_t samples = 0;           ///< of a rank
  std::set<std::int32_t> nodes;
};

bool is_rate(const Series& s) { return s.unit == "B/s"; }

bool is_bounded(const Series& s) {
  return s.is_of(results::MetricClass::collective) && s.judged && s.is_shared() && s.first != nullptr &&
         !s.is_imported() && (is_rate(s) || s.unit == "s");
}

/// Ranks of the largest group of the first sample.
double ranks_of_group(const Series& s) {
  const auto* group = s.first->find("group");
  const std::size_t width = s.first->samples();
  if (group == nullptr || !group->per_sample || group->values.size() < s.first->entities() * width) return 0;
  const auto numbers = group->values.held();
  std::map<double, double> ranks;
  for (std::size_t r = 0; width > 0 && r < s.first->entities(); ++r)
    if (numbers[r * width] >= 0) ++ranks[numbers[r * width]];
  double most = 0;
  for (const auto& [number, count] : ranks) most = std::max(most, count);
  return most;
}

/// By the node that has a communicator of its own, -1 where nodes have one together.
std::map<std::int32_t, Together> communicators(const Judgement& j, const Series& s) {
  std::map<std::int32_t, Together> of;
  for (const auto& row : s.rows) {
    if (!(row.median > 0) || !std::isfinite(row.median)) continue;
    const auto node = j.entities.node(row.entity);
    auto& c = of[s.judging.shared_by == results::SharedBy::node ? node : -1];
    c.medians.push_back(row.median);
    c.best.push_back(is_rate(s) ? row.highest : row.lowest);
    c.samples = std::max<std::int64_t>(c.samples, row.n);
    c.nodes.insert(node);
  }
  const bool groups = s.judging.shared_by == results::SharedBy::group;
  for (auto& [node, c] : of) c.ranks = groups ? ranks_of_group(s) : static_cast<double>(c.medians.size());
  return of;
}

/// What messages between two ranks reach, of the slowest kind of message.
struct Wire {
  double rate = 0, latency = 0;  ///< 0: not measured
  void take(double value, bool is_latency) {
    if (is_latency)
      latency = std::max(latency, value);
    else
      rate = rate > 0 ? std::min(rate, value) : value;
  }
};

bool is_latency(const Series& s) { return s.unit == "s" && s.metric == "latency"; }

/// Links whose rate or latency bounds collectives.
bool is_wire(const Series& s) {
  return s.kind == "link" && s.judged && s.is_of(results::MetricClass::link) && !s.is_imported() &&
         s.first != nullptr && (is_latency(s) || (is_rate(s) && message_bytes(s) >= least_message));
}

/// The part of its link that a rank has while all ranks of a node send: those share NICs.
double share_of_rank(const Judgement& j, const Series& s) {
  std::set<std::int32_t> nics, nodes;
  for (const auto& row : s.rows) {
    if (j.entities.kind(row.source) != "nic") return 1;  // pairs of ranks are measured all at once
    nics.insert(row.source);
    nodes.insert(j.entities.node(row.source));
  }
  const auto ranks = static_cast<double>(
      std::ranges::count_if(j.results.entities, [](const auto& e) { return e.kind == "device"; }));
  const double all_nics = static_cast<double>(nics.size() * j.entities.nodes().size()),
               measured = static_cast<double>(nodes.size());
  return ranks > 0 && measured > 0 ? std::min(1.0, all_nics / measured / ranks) : 1;
}

/// Inside nodes and across nodes. A part that is named as slow holds up all: its links are the bound.
std::map<bool, Wire> wires_of(const Judgement& j) {
  std::map<bool, Wire> wires;
  std::map<const Series*, std::set<bool>> kinds;
  for (const auto& s : j.series) {
    if (!is_wire(s)) continue;
    std::map<bool, std::vector<double>> values;
    for (const auto& row : s.rows) {
      const bool across = j.entities.node(row.source) != j.entities.node(row.destination);
      // Ranks of a node use no NIC among themselves.
      if (row.median > 0 && std::isfinite(row.median) && (across || j.entities.kind(row.source) == "device"))
        values[across].push_back(row.median);
    }
    const double share = is_latency(s) ? 1 : share_of_rank(j, s);
    for (const auto& [across, of] : values) {
      wires[across].take(share * median(of), is_latency(s));
      kinds[&s].insert(across);
    }
  }
  std::erase_if(wires, [](const auto& w) { return !(w.second.rate > 0); });
  for (const auto& f : j.found) {
    const Series* s = f.finding.severity == "INFO" || !f.finding.value ? nullptr : series_of(j, f.finding);
    if (s == nullptr || !is_wire(*s)) continue;
    for (const bool across : kinds[s])
      if (*f.finding.value > 0)
        wires[across].take((is_latency(*s) ? 1 : share_of_rank(j, *s)) * *f.finding.value, is_latency(*s));
      else
        wires.erase(across);
  }
  std::erase_if(wires, [](const auto& w) { return !(w.second.rate > 0); });
  return wires;
}

/// The slowest of what a communicator uses.
std::optional<Wire> wire_of(const std::map<bool, Wire>& wires, const Together& c) {
  const bool across = c.nodes.size() > 1;
  const auto it = wires.find(across);
  if (it == wires.end()) return std::nullopt;
  Wire wire = it->second;
  const auto inside = wires.find(false);
  if (across && inside != wires.end() && c.medians.size() > c.nodes.size()) {
    wire.take(inside->second.rate, false);
    wire.take(inside->second.latency, true);
  }
  return wire;
}

/// What an operation sends: `passes` over all ranks, each with this share of the vector.
struct Cost {
  double passes = 1;
  bool whole = false;  ///< each rank sends the whole vector, else all but the own share
  double bytes(double ranks, double vector) const {
    return passes * vector * (whole ? 1 : (ranks - 1) / ranks);
  }
};

/// All-reduce takes two passes, and so may what is not known here.
Cost cost_of(const std::string& operation) {
  if (operation == "broadcast") return {1, true};
  const bool one = operation == "reduce-scatter" || operation == "all-gather" || operation == "all-to-all";
  return {one ? 1.0 : 2.0};
}

/// Seconds that are plausible, divided by `collective_implausible`: by halving and doubling a pass takes log2
/// of the ranks steps, in a ring all but one. Both send the same bytes.
double allowed_s(const Cost& cost, double ranks, double vector, const Wire& wire) {
  const double latency = wire.latency > 0 ? wire.latency : unknown_latency_s,
               step = latency * (vector >= long_bytes ? handshake_latencies : 1),
               sent = cost.bytes(ranks, vector) / wire.rate;
  const double halving = start_s + sent + cost.passes * std::ceil(std::log2(ranks)) * step,
               ring = start_s + sent + cost.passes * (ranks - 1) * step;
  if (vector < ring_bytes) return halving;
  return std::max(halving, ring * ring_implausible / constants::collective_implausible);
}

/// A communicator beside what bounds it.
struct Implausible {
  const Series* series = nullptr;
  std::int32_t node = -1;
  double value = 0, best = 0;  ///< median; of the best samples
  std::int64_t samples = 0;
  double reference = 0, times = 0;
  std::string why;
};

void hold_against_links(const Judgement& j, std::vector<Implausible>& found) {
  const auto wires = wires_of(j);
  for (const auto& s : j.series) {
    const double bytes = is_bounded(s) ? message_bytes(s) : 0;
    if (!(bytes > 0) || s.metric == "algbw") continue;  // which is busbw by another factor
    const std::string operation = text_parameter(*s.first, "operation");
    if (operation.empty()) continue;  // not one whose cost is known
    const Cost cost = cost_of(operation);
    for (const auto& [node, c] : communicators(j, s)) {
      const auto wire = wire_of(wires, c);
      if (!wire || c.ranks < 2) continue;
      const double sent = cost.bytes(c.ranks, bytes), best = median(c.best);
      const double allowed = allowed_s(cost, c.ranks, bytes, *wire), own = is_rate(s) ? sent / best : best;
      if (own <= constants::collective_implausible * allowed) continue;
      const double reference = is_rate(s) ? sent / allowed : allowed;
      found.push_back({&s, node, median(c.medians), best, c.samples, reference, own / allowed,
                       "the links of this run would allow " + format_quantity(reference, s.unit)});
    }
  }
}

using Curve = std::tuple<std::string, std::string, std::string, std::string>;

Curve curve_of(const Series& s) {
  std::string rest;
  for (const char* key : {"operation", "scope", "transport", "variant", "series"})
    rest += text_parameter(*s.first, key) + '\n';
  return {s.suite, s.metric, s.unit, rest};
}

/// No size takes so much longer than a larger one, and no size has so little of the rate of a smaller one.
void hold_against_sizes(const Judgement& j, std::vector<Implausible>& found) {
  std::map<std::pair<Curve, std::int32_t>, std::vector<std::pair<double, Implausible>>> curves;
  for (const auto& s : j.series) {
    const double bytes = is_bounded(s) ? message_bytes(s) : 0;
    if (!(bytes > 0)) continue;
    for (const auto& [node, c] : communicators(j, s))
      curves[{curve_of(s), node}].push_back(
          {bytes, {&s, node, median(c.medians), median(c.best), c.samples, 0, 0, ""}});
  }
  for (auto& [key, curve] : curves)
    for (auto& [bytes, own] : curve) {
      for (const auto& [others_bytes, other] : curve) {
        const bool rate = is_rate(*own.series);
        if (rate ? others_bytes >= bytes : others_bytes <= bytes) continue;
        const double times = rate ? other.value / own.best : own.best / other.value;
        if (times < constants::collective_implausible || times <= own.times) continue;
        own.times = times;
        own.reference = other.value;
        own.why = format_bytes(static_cast<std::uint64_t>(others_bytes)) + (rate ? " reach " : " take ") +
                  format_quantity(other.value, own.series->unit);
      }
      if (own.times > 0) found.push_back(own);
    }
}

/// One finding of some communicators of a suite: the worst, by its rate where that is known.
void tell_implausible(Judgement& j, const std::vector<const Implausible*>& of) {
  const auto& worst = **std::max_element(of.begin(), of.end(), [](const auto* a, const auto* b) {
    return std::pair(is_rate(*a->series), a->times) < std::pair(is_rate(*b->series), b->times);
  });
  const Series& s = *worst.series;
  std::set<std::int32_t> nodes;
  for (const auto* one : of)
    if (one->node >= 0) nodes.insert(one->node);
  std::int64_t samples = 0;
  bool waits = false;
  for (const auto* one : of) {
    samples += one->samples;
    waits = waits || waits_for_a_core(j, *one->series, one->node) ||
            std::any_of(one->series->rows.begin(), one->series->rows.end(),
                        [&](const SeriesRow& row) { return j.entities.shares_cores(row.entity); });
  }
  // A neighbour on the machine slows a few samples, and those of a rank without its core.
  const bool open = !waits && samples >= static_cast<std::int64_t>(constants::peers_small_samples);
  auto f = j.about(s, nodes.size() == 1 ? worst.node : -1, open ? "WARN" : "INFO", "magnitude", "slow");
  f.samples = samples;
  f.value = worst.value;
  f.reference = worst.reference;
  f.reference_kind = "peers";
  f.deficit = 1 - 1 / worst.times;
  f.action = "TRIAGE";
  std::set<std::string> metrics;
  for (const auto* other : of) metrics.insert(other->series->full());
  f.text = f.name + ": " + s.full() + " " + format_quantity(worst.value, s.unit) + ", " + worst.why;
  if (metrics.size() > 1)
    f.text += "; as implausible in " +
              count(static_cast<std::int64_t>(metrics.size()) - 1, "other metric", "other metrics") + " of " +
              s.suite;
  if (nodes.size() > 1) {
    for (const auto node : nodes) f.members.push_back(j.entities.name(node));
    f.text += "; so are " + std::to_string(nodes.size()) + " nodes (" + first_of(f.members) + ")";
  }
  f.text += std::string("; which ") + (nodes.empty() ? "node" : "rank") + " is at fault is not known";
  if (!open) f.text += waits ? "; its ranks shared their cores" : "; too few samples to tell";
  j.add(std::move(f), {nodes.begin(), nodes.end()}, open);
}

/// Whether an earlier rule said of this metric, or of the whole suite, that it is slow.
bool told_before(const Judgement& j, const Implausible& i) {
  return std::any_of(j.found.begin(), j.found.end(), [&](const Found& f) {
    const bool says = f.finding.severity == "FAIL" || f.inconclusive;
    return says && f.finding.suite == i.series->suite &&
           (f.finding.kind == "slow" || f.finding.kind == "drift") &&
           (f.rows.empty() || (f.rows.size() == 1 && f.rows.front() == i.node));
  });
}

}  // namespace

bool waits_for_a_core(const Judgement& j, const Series& s, std::int32_t node) {
  return std::any_of(s.rows.begin(), s.rows.end(), [&](const SeriesRow& row) {
    return (node < 0 || j.entities.node(row.entity) == node) && lacks_core(j, s, row.entity);
  });
}

void judge_collective_bounds(Judgement& j) {
  std::vector<Implausible> found;
  hold_against_links(j, found);
  hold_against_sizes(j, found);
  std::erase_if(found, [&](const Implausible& i) { return told_before(j, i); });
  std::map<std::string, std::map<std::int32_t, std::vector<const Implausible*>>> suites;
  for (const auto& i : found) suites[i.series->suite][i.node].push_back(&i);
  for (auto& [suite, parts] : suites) {
    if (const auto all = parts.find(-1); all != parts.end()) {
      tell_implausible(j, all->second);
      parts.erase(all);
    }
    if (parts.size() <= constants::list_members) {
      for (const auto& [node, of] : parts) tell_implausible(j, of);
      continue;
    }
    std::vector<const Implausible*> every;
    for (const auto& [node, of] : parts) every.insert(every.end(), of.begin(), of.end());
    tell_implausible(j, every);
  }
}

}  // namespace assay::verdict
