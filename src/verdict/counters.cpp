// SPDX-License-Identifier: Apache-2.0
// Error counters before and after every case, and what --require asked for by name.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <unordered_map>

#include "results/counter_class.hpp"
#include "verdict/counter_totals.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

using results::CounterClass;

void report(Judgement& j, std::int32_t row, const std::string& counter, const Total& t) {
  const CounterClass kind = results::counter_class(counter);
  const bool fail = kind == CounterClass::uncorrectable;
  auto f =
      j.about(row, fail ? "FAIL" : "WARN", "fact", kind == CounterClass::throttle ? "throttled" : "counter");
  f.metric = counter;
  f.unit = "count";
  f.better = "lower";
  f.value = t.delta;
  f.reference = 0.0;
  f.suite = t.first_case.substr(0, t.first_case.find('/'));
  f.action = fail ? "REPLACE" : kind == CounterClass::throttle ? "TRIAGE" : "MONITOR";
  f.evidence = "/counters";
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "rose by %.0f (%.0f to %.0f)", t.delta, t.before, t.after);
  f.text = j.entities.name(row) + ": " + counter + " " + numbers + ", first in " + t.first_case;
  j.add(std::move(f), {row});
}

/// Whether `what` is a name of a counter, its first word, or its family.
bool names_counter_of(const std::string& what, const std::string& counter) {
  if (glob(what, counter) || counter.starts_with(what + "_") || counter.starts_with(what + ":")) return true;
  // Each Xid has a counter from its first event on; each GPU has one of all Xids, which may be unsupported.
  if (counter == "nvml_xid") return glob(what, "xid") || what.starts_with("xid_");
  // Families without a word that is common to their counters.
  static const std::map<std::string, const char*> families{{"throttle_core", "thermal_throttle"},
                                                           {"throttle_package", "thermal_throttle"},
                                                           {"rx_bytes", "nic"},
                                                           {"tx_bytes", "nic"},
                                                           {"rx_errors", "nic"},
                                                           {"tx_errors", "nic"},
                                                           {"rx_crc_errors", "nic"},
                                                           {"carrier_changes", "nic"},
                                                           {"port_rcv_errors", "infiniband"},
                                                           {"symbol_error", "infiniband"},
                                                           {"link_downed", "infiniband"},
                                                           {"link_error_recovery", "infiniband"},
                                                           {"local_link_integrity_errors", "infiniband"}};
  const auto family = families.find(counter);
  return family != families.end() && glob(what, family->second);
}

/// `what` names a suite, a case, a metric, a counter or a family of counters; returns whether anything has
/// that name.
bool require_one(Judgement& j, const std::string& what) {
  bool known = false;
  for (const auto& row : j.results.plan) {
    if (!glob(what, row.suite) && !glob(what, row.suite + "/" + row.name)) continue;
    known = true;
    if (row.state == "not_applicable")
      j.gap("required " + what + ": " + row.suite + "/" + row.name + " is not applicable");
  }
  for (const auto& c : j.results.cases) {
    if (!glob(what, c.suite) && !glob(what, c.path())) continue;
    known = true;
    if (c.state == results::CaseState::skip)
      j.gap("required " + what + ": " + c.path() + " was skipped: " + c.reason);
  }
  std::set<std::string> silent;
  std::unordered_map<const std::string*, bool> named;
  for (const auto& row : j.results.counters) {
    const std::string& counter = row.counter;
    const auto [at, added] = named.try_emplace(&counter);  // equal texts are one text
    if (added) at->second = names_counter_of(what, counter);
    if (!at->second) continue;
    known = true;
    if (std::isnan(row.before) && silent.insert(counter + std::to_string(row.entity)).second) {
      j.gap("required " + what + ": counter " + counter + " of " + j.entities.name(row.entity) +
                " is unsupported",
            {row.entity});
    }
  }
  for (const auto& s : j.series) {
    if (!glob(what, s.metric) && !glob(what, s.full())) continue;
    known = true;
    if (s.rows.empty()) j.gap("required " + what + ": " + s.full() + " has no samples");
  }
  return known;
}

/// Whether rows of a counter matter that neither rose, fell nor became unreadable.
bool is_state(const std::string& counter) {
  return counter == hardware_thermal || counter == "nvml_remap_failure" || counter == "nvml_remap_pending";
}

/// Which rows of the counters matter. Most are of counters that stood still or of traffic: of a large run,
/// tens of millions.
class NotableRows {
 public:
  bool contain(const results::CounterRow& row) {
    const bool before = !std::isnan(row.before), after = !std::isnan(row.after);
    if (before && !after) return true;  // it could not be read any more
    if (!before || !after) return false;
    const Kind& kind = kind_of(row.counter);
    return kind.state || (row.after != row.before && !kind.traffic);
  }

 private:
  struct Kind {
    bool state = false, traffic = false;
  };
  const Kind& kind_of(const std::string& counter) {
    const auto [at, added] = kinds_.try_emplace(&counter);  // equal texts are one text
    if (added) at->second = {is_state(counter), is_traffic(counter)};
    return at->second;
  }
  std::unordered_map<const std::string*, Kind> kinds_;
};

}  // namespace

bool is_traffic(const std::string& counter) {
  return results::counter_class(counter) == CounterClass::traffic;
}

Totals total_by_counter(const results::Results& results) {
  Totals totals;
  NotableRows notable;
  for (const auto& row : results.counters) {
    if (!notable.contain(row)) continue;
    auto& t = totals[{row.entity, row.counter}];
    t.readable = true;
    if (std::isnan(row.after)) {
      if (!t.unreadable && t.delta == 0) t.first_case = row.case_path;
      t.unreadable = true;
      continue;
    }
    if (std::isnan(t.before)) t.before = row.before;
    t.after = row.after;
    if (row.after < row.before) {
      t.reset = true;
      t.since_reset += row.after;
    }
    if (row.after > row.before) {
      if (t.delta == 0) t.first_case = row.case_path;
      t.delta += row.after - row.before;
      if (row.after - row.before > t.worst) t.worst_case = row.case_path;
      t.worst = std::max(t.worst, row.after - row.before);
      ++t.cases;
    }
  }
  return totals;
}

PassingInterfaces::PassingInterfaces(const Judgement& j) : j_(j) {
  const auto table = j.results.inventory.find("nic");
  if (table == j.results.inventory.end()) return;
  for (const auto row : table->second.entity) {
    listed_.insert(row);
    nodes_.insert(j.entities.node(row));
  }
}

bool PassingInterfaces::contains(std::int32_t row) const {
  return j_.entities.kind(row) == "nic" && !listed_.contains(row) && nodes_.contains(j_.entities.node(row));
}

void judge_counters(Judgement& j) {
  const Totals totals = total_by_counter(j.results);
  const PassingInterfaces passing(j);
  for (const auto& [key, t] : totals) {
    const auto& [row, counter] = key;
    if (t.delta > 0 && !is_gpu_counter(counter) && !is_traffic(counter)) report(j, row, counter, t);
    if (t.unreadable && !(is_traffic(counter) && passing.contains(row))) {
      j.gap("unreadable: counter " + counter + " of " + j.entities.name(row) + " could not be read after " +
                t.first_case,
            {row});
    }
    if (t.reset && !is_traffic(counter)) {
      // A sum may hold what other parts of it had before the run: no fault by itself.
      const bool open = results::counter_class(counter) == CounterClass::uncorrectable && t.since_reset > 0;
      auto f = j.about(row, open ? "WARN" : "INFO", "fact", "counter");
      f.metric = counter;
      f.action = "MONITOR";
      f.evidence = "/counters";
      f.text = j.entities.name(row) + ": " + counter + " decreased: reset or wrapped during the run";
      if (t.since_reset > 0) {
        char since[48];
        std::snprintf(since, sizeof since, ", up to %.0f since", t.since_reset);
        f.text += since;
      }
      j.add(std::move(f), {row});
    }
  }
  judge_gpu_counters(j, totals);
}

bool requires_coverage(const Judgement& j) {
  return std::ranges::find(j.options.require, coverage_name) != j.options.require.end();
}

void judge_required(Judgement& j) {
  for (const auto& what : j.options.require) {
    if (what == coverage_name) continue;  // judged with the events of the launch
    if (!require_one(j, what))
      j.gap("required " + what + ": no planned case, metric or counter has that name");
  }
}

}  // namespace assay::verdict
