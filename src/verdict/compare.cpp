// SPDX-License-Identifier: Apache-2.0
#include "verdict/compare.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/exit_code.hpp"
#include "base/glob.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/compare_parts.hpp"
#include "verdict/compare_shift.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

/// One metric on one side: its units by identity, and where nodes are the units the devices they have.
struct Side {
  const SnapshotSeries* first = nullptr;
  ComparedUnits units, parts, links;
  struct OfRun {
    std::string case_key;
    std::size_t ranks = 0;  ///< that share the value of a collective; 0 of others
  };
  std::map<std::string, OfRun> runs;  ///< by the unit of a collective
  std::size_t left_out = 0;           ///< runs of other numbers of ranks
};

using Sides = std::map<std::string, Side>;  ///< by SnapshotSeries::full

/// What the values of a run are told of.
enum class UnitOf { node, device, link };

/// Of a collective the run is the unit.
std::string unit_of_run(const Snapshot& run, std::size_t number) {
  return "run " + std::to_string(number) + " " + run.source.run_id;
}

/// Median over the parts of each unit in one run, added to the units of the side.
void add_run(const Snapshot& run, std::size_t number, const SnapshotSeries& s, UnitOf of,
             ComparedUnits& units) {
  ComparedUnits now;
  const bool collective = s.shared && !s.by_node;
  for (std::size_t i = 0; i < s.log_rate.size(); ++i) {
    const Part& part = run.part(s.rows->part[i]);
    const Part& node = run.part(part.node);
    // A link counts for the node that sends: every link then belongs to one unit only.
    const bool own = of == UnitOf::link || (of == UnitOf::device && s.kind != "link" && !s.shared);
    const Part& unit = own ? part : node;
    const std::string id = collective ? unit_of_run(run, number) : unit.kind + '\n' + unit.id;
    ComparedUnit& u = now[id];
    u.name = collective ? run.source.file : unit.name;
    u.node = collective ? id : node.id;
    u.stratum = s.strata[static_cast<std::size_t>(s.rows->stratum[i])];
    u.rates.push_back(s.log_rate[i]);
    if (!s.log_clock.empty() && !std::isnan(s.log_clock[i])) u.clocks.push_back(s.log_clock[i]);
  }
  for (auto& [id, u] : now) {
    ComparedUnit& all = units[id];
    all.name = u.name;
    all.node = u.node;
    all.stratum = u.stratum;
    all.rates.push_back(u.rate());
    if (!u.clocks.empty()) all.clocks.push_back(u.clock());
  }
}

/// With the ranks whose value cannot be: they took part.
std::size_t ranks_in_run(const Snapshot& run, const SnapshotSeries& s) {
  const auto of_series = [&](const std::string& value) { return value.ends_with(" in " + s.full()); };
  return s.log_rate.size() + static_cast<std::size_t>(std::ranges::count_if(run.left_out, of_series));
}

Sides sides_of(const std::vector<Snapshot>& runs, const CompareOptions& options) {
  Sides sides;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (const auto& s : runs[r].series) {
      if (!glob_match(options.cases, s.suite + "/" + s.name)) continue;
      Side& side = sides[s.full()];
      if (side.first == nullptr) side.first = &s;
      if (side.first->unit != s.unit || side.first->higher_is_better != s.higher_is_better) continue;
      // Of random groups more or fewer ranks are drawn.
      const bool of_all = s.shared && !s.by_node && s.stage != "groups";
      side.runs[unit_of_run(runs[r], r)] = {s.case_key, of_all ? ranks_in_run(runs[r], s) : 0};
      add_run(runs[r], r, s, options.device_unit ? UnitOf::device : UnitOf::node, side.units);
      if (!options.device_unit && s.kind == "device" && !s.shared)
        add_run(runs[r], r, s, UnitOf::device, side.parts);
      if (s.kind == "link" && !s.shared) add_run(runs[r], r, s, UnitOf::link, side.links);
    }
  }
  return sides;
}

void keep_ranks(Side& side, std::size_t ranks) {
  for (auto it = side.runs.begin(); it != side.runs.end();) {
    if (it->second.ranks == ranks) {
      ++it;
      continue;
    }
    side.units.erase(it->first);
    it = side.runs.erase(it);
    ++side.left_out;
  }
}

/// Of collectives the runs of one number of ranks, of which both sides have most, if these are enough: others
/// are other operations.
void keep_common_ranks(Sides& sides_a, Sides& sides_b) {
  for (auto& [name, a] : sides_a) {
    const auto other = sides_b.find(name);
    if (other == sides_b.end()) continue;
    Side& b = other->second;
    std::map<std::size_t, std::pair<std::size_t, std::size_t>> runs;  // by ranks, of both sides
    for (const auto& [id, run] : a.runs) ++runs[run.ranks].first;
    for (const auto& [id, run] : b.runs) ++runs[run.ranks].second;
    std::size_t kept = 0, most = 0;
    for (const auto& [ranks, of] : runs) {
      const std::size_t both = std::min(of.first, of.second);
      if (both < std::max(most, compare_min_nodes)) continue;
      kept = ranks;
      most = both;
    }
    if (kept == 0) continue;
    keep_ranks(a, kept);
    keep_ranks(b, kept);
  }
}

SideSummary summary_of(const Side& side, bool higher) {
  SideSummary out;
  std::vector<double> rates;
  std::set<std::string> nodes;
  double worst = HUGE_VAL;
  for (const auto& [id, unit] : side.units) {
    const double rate = unit.rate();
    rates.push_back(rate);
    nodes.insert(unit.node);
    if (rate >= worst) continue;
    worst = rate;
    out.worst_name = unit.name;
  }
  out.units = rates.size();
  out.nodes = nodes.size();
  out.median = value_of(median(rates), higher);
  out.worst = value_of(worst, higher);
  if (rates.size() >= 3) out.spread = mad_sigma(rates);
  if (rates.size() >= 20) out.p5 = value_of(quantile(rates, 0.05), higher);
  return out;
}

/// Whether both sides are the same machines: four of five of the larger one, so that one lost node does not
/// change the design. Fewer in common are no pairs: what they have in common then makes the comparison
/// cautious.
bool same_units(std::size_t common, std::size_t a, std::size_t b) {
  return common >= 2 && 5 * common >= 4 * std::max(a, b);
}

struct Values {
  std::vector<double> a, b, differences;  ///< differences in the order of the identities
};

template <class Get>
Values values_of(const Side& a, const Side& b, const Get& get) {
  Values v;
  for (const auto& [id, unit] : a.units) {
    if (std::isnan(get(unit))) continue;
    v.a.push_back(get(unit));
    const auto other = b.units.find(id);
    if (other != b.units.end() && !std::isnan(get(other->second)))
      v.differences.push_back(get(other->second) - get(unit));
  }
  for (const auto& [id, unit] : b.units)
    if (!std::isnan(get(unit))) v.b.push_back(get(unit));
  return v;
}

Shift shift_of(const Values& v, bool paired, double alpha) {
  return paired ? paired_shift(v.differences, alpha) : two_sample_shift(v.a, v.b, alpha);
}

Ratio ratio_of(const Shift& s) { return {std::exp(s.estimate), std::exp(s.low), std::exp(s.high)}; }

void compare_clocks(MetricComparison& m, const Side& a, const Side& b, double alpha) {
  const Values clocks = values_of(a, b, [](const ComparedUnit& u) { return u.clock(); });
  if (clocks.a.size() != a.units.size() || clocks.b.size() != b.units.size()) return;
  m.clock_ratio = std::exp(m.paired ? median(clocks.differences) : median(clocks.b) - median(clocks.a));
  const Values at_clock = values_of(a, b, [](const ComparedUnit& u) { return u.rate() - u.clock(); });
  m.at_clock = ratio_of(shift_of(at_clock, m.paired, alpha));
}

std::set<std::string> keys_of(const Side& side) {
  std::set<std::string> keys;
  for (const auto& [id, run] : side.runs) keys.insert(run.case_key);
  return keys;
}

/// Why two sides measured different operations; empty where they did not.
std::string why_incomparable(const Side& a, const Side& b, bool ignore_case_key) {
  const std::set<std::string> of_a = keys_of(a), of_b = keys_of(b);
  if ((of_a != of_b || of_a.size() > 1) && !ignore_case_key)
    return "case_key " + *of_a.begin() + " against " + *of_b.begin() +
           ": another library, algorithm, size or path";
  std::set<std::size_t> ranks;
  for (const Side* side : {&a, &b})
    for (const auto& [id, run] : side->runs) ranks.insert(run.ranks);
  if (ranks.size() > 1 && std::min(a.units.size(), b.units.size()) >= compare_min_nodes)
    return "an operation of " + std::to_string(*ranks.begin()) + " ranks against one of " +
           std::to_string(*ranks.rbegin());
  return "";
}

/// Runs that `keep_common_ranks` left out; empty without any.
std::string left_out_note(const Side& a, const Side& b) {
  const std::size_t runs = a.left_out + b.left_out;
  if (runs == 0) return "";
  return std::to_string(runs) + (runs == 1 ? " run" : " runs") + " left out (A " +
         std::to_string(a.left_out) + ", B " + std::to_string(b.left_out) + "): not an operation of " +
         std::to_string(a.runs.begin()->second.ranks) + " ranks";
}

/// Units of one identity on both sides.
std::vector<UnitRatio> units_of(const Side& a, const Side& b, bool higher) {
  std::vector<UnitRatio> out;
  for (const auto& [id, unit] : a.units) {
    const auto other = b.units.find(id);
    if (other == b.units.end()) continue;
    const double from = unit.rate(), to = other->second.rate();
    out.push_back({other->second.name, value_of(from, higher), value_of(to, higher), std::exp(to - from)});
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.name < y.name; });
  return out;
}

MetricComparison compare_metric(const Side& a, const Side& b, const CompareOptions& options) {
  const SnapshotSeries& s = *a.first;
  MetricComparison m;
  m.suite = s.suite;
  m.name = s.name;
  m.metric = s.metric;
  m.unit = s.unit;
  m.higher_is_better = s.higher_is_better;
  const bool by_device = options.device_unit && s.kind != "link" && !s.shared;
  m.unit_of = s.shared && !s.by_node ? "run" : by_device ? s.kind : "node";
  if (b.first->unit != s.unit || b.first->higher_is_better != s.higher_is_better) {
    m.relation = Relation::incomparable;
    m.note = "unit " + s.unit + " against " + b.first->unit;
    return m;
  }
  m.a = summary_of(a, m.higher_is_better);
  m.b = summary_of(b, m.higher_is_better);
  m.note = why_incomparable(a, b, options.ignore_case_key);
  if (!m.note.empty()) {
    m.relation = Relation::incomparable;
    return m;
  }
  m.note = left_out_note(a, b);
  if (m.unit_of != "run") m.units = units_of(a, b, m.higher_is_better);
  const Values v = values_of(a, b, [](const ComparedUnit& u) { return u.rate(); });
  m.paired = m.unit_of != "run" && same_units(v.differences.size(), v.a.size(), v.b.size());
  const Shift shift = shift_of(v, m.paired, options.alpha);
  m.ratio = ratio_of(shift);
  if (std::isnan(m.ratio.estimate) && !v.a.empty() && !v.b.empty())
    m.ratio.estimate = std::exp(median(v.b) - median(v.a));
  const std::size_t nodes = std::min(m.a.nodes, m.b.nodes);
  if (nodes < compare_min_nodes) {
    m.ratio.low = m.ratio.high = results::not_taken;
    m.note = "insufficient " + std::string(m.unit_of == "run" ? "runs" : "nodes") + ": " +
             std::to_string(nodes) + " of at least " + std::to_string(compare_min_nodes) + " a side";
    return m;
  }
  m.equivalence = {std::exp(shift.estimate), std::exp(shift.narrow_low), std::exp(shift.narrow_high)};
  m.p = shift.p;
  m.method = shift.method;
  m.relation = Relation::ambiguous;
  compare_clocks(m, a, b, options.alpha);
  return m;
}

/// The p-values of all metrics together.
void adjust(std::vector<MetricComparison>& metrics) {
  std::vector<MetricComparison*> order;
  for (auto& m : metrics)
    if (!std::isnan(m.p)) order.push_back(&m);
  std::vector<double> p;
  for (const auto* m : order) p.push_back(m->p);
  const auto adjusted = holm(p);
  for (std::size_t i = 0; i < order.size(); ++i) order[i]->p_adjusted = adjusted[i];
}

void decide(MetricComparison& m, const CompareOptions& options) {
  if (m.relation != Relation::ambiguous) return;
  const bool inside = m.equivalence.low > 1 - options.margin && m.equivalence.high < 1 / (1 - options.margin);
  if (inside) {
    m.relation = Relation::same;
  } else if (m.p_adjusted < options.alpha) {
    m.relation = m.ratio.estimate > 1 ? Relation::faster : Relation::slower;
  }
}

/// The worst news first: one SLOWER is SLOWER. Metrics without enough units do not decide beside those that
/// have them.
Relation overall(const std::vector<MetricComparison>& metrics) {
  std::set<Relation> seen;
  for (const auto& m : metrics) seen.insert(m.relation);
  for (const auto r :
       {Relation::slower, Relation::ambiguous, Relation::incomparable, Relation::faster, Relation::same})
    if (seen.contains(r)) return r;
  return Relation::insufficient;
}

void note_missing(const Sides& there, const Sides& elsewhere, const char* side,
                  std::vector<std::string>& notes) {
  std::vector<std::string> missing;
  for (const auto& [name, s] : there)
    if (!elsewhere.contains(name)) missing.push_back(name);
  if (missing.empty()) return;
  notes.push_back(counted(missing, std::string("metric has values only in ") + side,
                          std::string("metrics have values only in ") + side));
}

}  // namespace

const char* to_string(Relation r) noexcept {
  switch (r) {
    case Relation::same: return "SAME";
    case Relation::faster: return "FASTER";
    case Relation::slower: return "SLOWER";
    case Relation::ambiguous: return "AMBIGUOUS";
    case Relation::insufficient: return "INSUFFICIENT";
    case Relation::incomparable: return "INCOMPARABLE";
  }
  return "AMBIGUOUS";
}

CompareResult compare(const std::vector<Snapshot>& a, const std::vector<Snapshot>& b,
                      const CompareOptions& options) {
  CompareResult out;
  for (const auto& run : a) out.a.push_back(run.source);
  for (const auto& run : b) out.b.push_back(run.source);
  const auto nodes_a = nodes_of(a), nodes_b = nodes_of(b);
  out.nodes_a = nodes_a.size();
  out.nodes_b = nodes_b.size();
  out.nodes_common = static_cast<std::size_t>(std::count_if(
      nodes_a.begin(), nodes_a.end(), [&](const auto& node) { return nodes_b.contains(node.first); }));
  for (const auto& run : a) note_run(run, out.notes);
  for (const auto& run : b) note_run(run, out.notes);
  note_nodes(nodes_a, nodes_b, "A", out.notes);
  note_nodes(nodes_b, nodes_a, "B", out.notes);
  Sides sides_a = sides_of(a, options), sides_b = sides_of(b, options);
  keep_common_ranks(sides_a, sides_b);
  if (sides_a.empty() && sides_b.empty() && options.cases != "*")
    throw_usage("--cases: no case of A or B matches '" + options.cases + "'");
  note_missing(sides_a, sides_b, "A", out.notes);
  note_missing(sides_b, sides_a, "B", out.notes);
  std::vector<ComparedMetric> compared;
  for (const auto& [name, side] : sides_a) {
    const auto other = sides_b.find(name);
    if (other == sides_b.end()) continue;
    const MetricComparison& m = out.metrics.emplace_back(compare_metric(side, other->second, options));
    if (m.unit_of != "run" && m.relation != Relation::incomparable)
      compared.push_back({name, &side.units, &other->second.units, &side.parts, &other->second.parts,
                          &side.links, &other->second.links});
  }
  note_missing_parts(compared, out.notes);
  const bool odd = note_odd_parts(compared, out.notes);
  adjust(out.metrics);
  double logs = 0;
  std::size_t judged = 0;
  for (auto& m : out.metrics) {
    decide(m, options);
    if (std::isnan(m.p)) continue;
    logs += std::log(m.ratio.estimate);
    ++judged;
  }
  if (judged > 0) out.ratio = std::exp(logs / static_cast<double>(judged));
  out.relation = overall(out.metrics);
  // The fleet is the same, and some of it is not.
  const bool dead = std::ranges::any_of(b, [](const Snapshot& run) { return !run.left_out.empty(); });
  if ((odd || dead) && (out.relation == Relation::same || out.relation == Relation::faster))
    out.relation = Relation::ambiguous;
  const bool good = out.relation == Relation::same || out.relation == Relation::faster;
  out.exit_code = good ? 0 : out.relation == Relation::slower ? 1 : static_cast<int>(ExitCode::inconclusive);
  return out;
}

CompareResult compare(const std::vector<const results::Results*>& a,
                      const std::vector<const results::Results*>& b, const CompareOptions& options) {
  const auto reduced = [](const std::vector<const results::Results*>& runs) {
    std::vector<Snapshot> out;
    for (const auto* r : runs) out.push_back(snapshot_of(*r, r->info.run_id));
    return out;
  };
  return compare(reduced(a), reduced(b), options);
}

}  // namespace assay::verdict
