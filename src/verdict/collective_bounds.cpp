// SPDX-License-Identifier: Apache-2.0
// Collectives that are slower than anything plausible, where nothing else compares them: beside the links of
// the same run, and over the sizes of the same operation. A collective does not tell which of its ranks is at
// fault, so the verdict is open.
#include <algorithm>
#include <cmath>
#include <map>
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

constexpr double unknown_latency_s = 2e-5;    ///< of a message over TCP
constexpr double step_latencies = 4;          ///< latencies of a message that a step of an operation takes
constexpr double decided_by_links = 1 << 20;  ///< bytes of a vector from which on the rates of links count
constexpr double least_message = 1 << 16;     ///< of a link whose rate is no latency

/// The ranks of one communicator: those of a node, or all.
struct Together {
  std::vector<double> medians, best;  ///< of the samples of each rank
  std::int64_t samples = 0;           ///< of a rank
  std::set<std::int32_t> nodes;
};

bool is_rate(const Series& s) { return s.unit == "B/s"; }

bool is_bounded(const Series& s) {
  return s.is_of(results::MetricClass::collective) && s.judged && s.is_shared() && s.first != nullptr &&
         !s.is_imported() && (is_rate(s) || s.unit == "s");
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
  return of;
}

/// What messages between two ranks reach, of the slowest kind of message.
struct Wire {
  double rate = 0, latency = 0;  ///< 0: not measured
  double step() const { return step_latencies * (latency > 0 ? latency : unknown_latency_s); }
};

/// Inside nodes and across nodes.
std::map<bool, Wire> wires_of(const Judgement& j) {
  std::map<bool, Wire> wires;
  for (const auto& s : j.series) {
    const bool latency = s.unit == "s" && s.metric == "latency";
    if (s.kind != "link" || !s.judged || !s.is_of(results::MetricClass::link) || s.is_imported() ||
        s.first == nullptr || !(latency || (is_rate(s) && message_bytes(s) >= least_message)))
      continue;
    std::map<bool, std::vector<double>> values;
    for (const auto& row : s.rows)
      if (row.median > 0 && std::isfinite(row.median) && j.entities.kind(row.source) == "device")
        values[j.entities.node(row.source) != j.entities.node(row.destination)].push_back(row.median);
    for (const auto& [across, of] : values) {
      auto& wire = wires[across];
      if (latency)
        wire.latency = std::max(wire.latency, median(of));
      else
        wire.rate = wire.rate > 0 ? std::min(wire.rate, median(of)) : median(of);
    }
  }
  std::erase_if(wires, [](const auto& w) { return !(w.second.rate > 0); });
  return wires;
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

/// A ring sends 2 (n-1) messages of 1/n of the vector from rank to rank: busbw is the rate of the links less
/// the latencies of these steps.
void hold_against_links(const Judgement& j, std::vector<Implausible>& found) {
  const auto wires = wires_of(j);
  for (const auto& s : j.series) {
    const double bytes = is_bounded(s) ? message_bytes(s) : 0;
    if (bytes < decided_by_links || !is_rate(s)) continue;
    for (const auto& [node, c] : communicators(j, s)) {
      const auto wire = wires.find(c.nodes.size() > 1);
      if (wire == wires.end() || c.medians.size() < 2) continue;
      const double rate = wire->second.rate, ranks = static_cast<double>(c.medians.size());
      const double expected = rate / (1 + wire->second.step() * rate * ranks / bytes), best = median(c.best);
      if (best * constants::collective_implausible < expected)
        found.push_back({&s, node, median(c.medians), best, c.samples, expected, expected / best,
                         "the links of this run would allow " + format_quantity(expected, s.unit)});
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
    waits = waits || waits_for_a_core(j, *one->series, one->node);
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
  if (!open) f.text += waits ? "; others used the cores of its ranks" : "; too few samples to tell";
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
