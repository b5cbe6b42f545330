// SPDX-License-Identifier: Apache-2.0
// What another tool measured and the rules for rates do not judge: counts, and values without any reference.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

/// Whether a metric says better or worse; wrong values have rules of their own.
bool has_direction(const Series& s) {
  const auto* m = s.first->find(s.metric);
  return m != nullptr && m->role == results::Role::metric && s.better != results::Better::none &&
         s.metric != "errors" && !s.rows.empty();
}

/// More than chance adds to a count that is equal everywhere, and more than twice as many.
bool is_high(double count, double usual) { return count > 2 * usual + 6 * std::sqrt(std::max(usual, 1.0)); }

std::string plain(double count) { return format_quantity(count, "count"); }

/// Parts that count far more than the others, of a metric that is better lower. Samples may be readings of
/// one counter: the highest is what it came to.
void judge_count(Judgement& j, Series& s) {
  if (s.rows.size() < constants::peers_min_population) return;
  std::vector<double> counts;
  for (auto& row : s.rows) {
    counts.push_back(row.highest);
    row.reference = std::max<std::uint8_t>(row.reference, Reference::peers);
  }
  std::ranges::sort(counts);
  double usual = median(counts);
  // Where half of them or more are high, the lower quarter tells what is usual. Low counts of a lifetime may
  // differ by that much.
  constexpr double least_of_half = 100;
  const double quarter = counts[(counts.size() - 1) / 4];
  const bool by_quarter = usual >= least_of_half && is_high(usual, quarter);
  if (by_quarter) usual = quarter;
  // A limit says more of a part than its peers do.
  const SeriesRow* worst = nullptr;
  for (const auto& row : s.rows)
    if (row.reference < Reference::limit && (worst == nullptr || row.highest > worst->highest)) worst = &row;
  if (worst == nullptr || !(worst->highest > usual)) return;
  std::vector<std::int32_t> high, rows;
  std::int64_t samples = 0;
  for (const auto& row : s.rows)
    if (is_high(row.highest, usual) && row.reference < Reference::limit) {
      high.push_back(row.entity);
      const auto of = rows_of(row);
      rows.insert(rows.end(), of.begin(), of.end());
      samples += row.n;
    }
  // Where many are high, what is usual is in doubt: that makes it no milder.
  const bool named = !high.empty(), many = 4 * high.size() > s.rows.size();
  auto f =
      j.about(s, named && high.size() > 1 ? -1 : worst->entity, named ? "WARN" : "INFO", "fact", "counter");
  f.value = worst->highest;
  f.reference = usual;
  f.reference_kind = "peers";
  f.samples = named ? samples : worst->n;
  f.controls = static_cast<std::int64_t>(s.rows.size() - std::max<std::size_t>(1, high.size()));
  f.action = "MONITOR";
  if (named && high.size() > 1)
    for (const auto row : high) f.members.push_back(j.entities.name(row));
  f.text = name_of(j, *worst) + ": " + s.full() + " " + plain(worst->highest) + ", of all " +
           std::to_string(s.rows.size()) + " parts the " + (by_quarter ? "lower quartile" : "median") +
           " is " + plain(usual) + (f.members.empty() ? "" : "; members " + first_of(f.members)) +
           (!named ? ", not judged without a limit"
            : many ? "; so many that a limit has to tell what is usual"
                   : "");
  j.add(std::move(f), named ? rows : std::vector<std::int32_t>{});
}

/// Cases of which nothing was compared, so that a PASS does not cover them.
void note_uncompared(Judgement& j) {
  std::map<std::string, bool> compared;  // by case
  for (const auto& s : j.series) {
    if (!s.is_imported() || !has_direction(s)) continue;
    bool& any = compared.try_emplace(s.suite + "/" + s.name, false).first->second;
    any = any || std::ranges::any_of(s.rows, [](const auto& r) { return r.reference != Reference::none; });
  }
  std::vector<std::string> names;
  for (const auto& [name, any] : compared)
    if (!any) names.push_back(name);
  if (names.empty()) return;
  auto f = j.about(-1, "INFO", "fact", "uncovered");
  f.action = "MONITOR";
  f.evidence = "/cases";
  f.text = std::to_string(names.size()) + (names.size() == 1 ? " case was" : " cases were") +
           " compared with nothing, for lack of peers, limits, a baseline or a history: " + first_of(names);
  j.add(std::move(f), {});
}

/// One finding of these parts; `what` says what they lack.
void warn_uncovered(Judgement& j, const std::vector<std::int32_t>& rows, const std::string& what) {
  auto f = j.about(rows.size() == 1 ? rows[0] : -1, "WARN", "fact", "uncovered");
  std::vector<std::string> names;
  for (const auto row : rows) names.push_back(j.entities.name(row));
  if (names.size() > 1) f.members = names;
  f.action = "MONITOR";
  f.evidence = "/cases";
  f.text = first_of(names) + ": " + what;
  j.add(std::move(f), rows);
}

/// Parts without a metric that most parts of their kind and model have: nothing says that it was planned for
/// them. Tools list counts where there are such only.
void warn_of_unmeasured(Judgement& j) {
  using Peers = std::pair<std::string, std::string>;  // kind and stratum
  std::map<Peers, std::set<std::int32_t>> parts;
  std::map<std::pair<Peers, std::string>, std::set<std::int32_t>> measured;  // by metric
  for (const auto& s : j.series) {
    if (!s.is_imported() || !has_direction(s) || !is_population(s) || s.unit == "count") continue;
    std::set<decltype(SeriesRow::stratum)> strata;
    for (const auto& row : s.rows) {
      const Peers peers(s.kind, s.strata[static_cast<std::size_t>(row.stratum)]);
      parts[peers].insert(row.entity);
      measured[{peers, s.full()}].insert(row.entity);
      strata.insert(row.stratum);
    }
    // Those in the case without a value are a gap.
    for (const auto stratum : strata) {
      const Peers peers(s.kind, s.strata[static_cast<std::size_t>(stratum)]);
      measured[{peers, s.full()}].insert(s.first->entity.begin(), s.first->entity.end());
    }
  }
  std::map<std::vector<std::int32_t>, std::vector<std::string>> metrics_without;  // by these parts
  for (const auto& [metric, have] : measured) {
    const auto& all = parts.at(metric.first);
    std::vector<std::int32_t> missing;
    std::ranges::set_difference(all, have, std::back_inserter(missing));
    if (!missing.empty() && 2 * missing.size() < all.size())
      metrics_without[missing].push_back(metric.second);
  }
  for (const auto& [missing, metrics] : metrics_without) {
    warn_uncovered(j, missing, "no value of " + first_of(metrics) + ", which most parts of this kind have");
  }
}

/// Nodes with fewer devices than most nodes with devices of this kind and model have: a device that was never
/// measured is in no case. Where many nodes have fewer, they are another kind of node.
void warn_of_fewer_devices(Judgement& j) {
  using Nodes = std::map<std::int32_t, std::set<std::int32_t>>;  // the devices of each
  std::map<std::pair<std::string, std::string>, Nodes> peers;    // by kind and stratum
  for (const auto& s : j.series) {
    if (!s.is_imported() || !has_direction(s) || !is_population(s) || s.unit == "count") continue;
    for (const auto& row : s.rows) {
      const auto node = j.entities.node(row.entity);
      if (node >= 0 && node != row.entity)
        peers[{s.kind, s.strata[static_cast<std::size_t>(row.stratum)]}][node].insert(row.entity);
    }
  }
  for (const auto& [of, nodes] : peers) {
    std::map<std::size_t, std::size_t> nodes_with;  // by number of devices
    for (const auto& [node, devices] : nodes) ++nodes_with[devices.size()];
    const auto usual =
        std::ranges::max_element(nodes_with, {}, [](const auto& n) { return n.second; })->first;
    std::vector<std::int32_t> fewer;
    std::size_t missing = 0;
    for (const auto& [node, devices] : nodes)
      if (devices.size() < usual) {
        fewer.push_back(node);
        missing += usual - devices.size();
      }
    if (fewer.empty() || nodes.size() < constants::peers_min_population || 4 * fewer.size() > nodes.size() ||
        2 * nodes_with[usual] <= nodes.size())
      continue;
    warn_uncovered(j, fewer,
                   std::to_string(missing) + " " + of.first + (missing == 1 ? "" : "s") +
                       " without a value: most nodes have " + std::to_string(usual));
  }
}

}  // namespace

void judge_imported(Judgement& j) {
  for (auto& s : j.series)
    if (s.is_imported() && s.unit == "count" && s.kind != "link" && s.better == results::Better::lower &&
        has_direction(s))
      judge_count(j, s);
  note_uncompared(j);
  warn_of_unmeasured(j);
  warn_of_fewer_devices(j);
}

}  // namespace assay::verdict
