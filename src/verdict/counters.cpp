// SPDX-License-Identifier: Apache-2.0
// Error counters before and after every case, and what --require asked for by name.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "verdict/counter_totals.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

enum class CounterClass { uncorrectable, correctable, throttle, traffic };

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// What an increase means, from the names the counter probe gives. Bytes, packets and drops are traffic: the
/// kernel drops frames it has no use for, so a drop alone tells nothing about the hardware.
CounterClass class_of(const std::string& counter) {
  // Drivers have words of their own: the probe has sorted them.
  if (counter.starts_with("driver_"))
    return counter.starts_with("driver_errors:") ? CounterClass::correctable : CounterClass::traffic;
  if (is_throttling(counter)) return CounterClass::throttle;
  // What is left of the times are limits of power and sync: they rise on any loaded GPU.
  if (counter == "nvml_energy_j" || counter.starts_with("nvml_violation_")) return CounterClass::traffic;
  if (contains(counter, "bytes") || contains(counter, "packets") || contains(counter, "drop") ||
      contains(counter, "port_xmit_wait") || ends_with(counter, "_data")) {
    return CounterClass::traffic;
  }
  // MCE exceptions and deferred errors are machine checks that hardware could not correct; the threshold
  // interrupt counts corrected ones.
  if (counter == "mce" || counter == "mce_deferred" || contains(counter, "edac_ue") ||
      contains(counter, "ue_count") || contains(counter, "ue_noinfo") ||
      (contains(counter, "fatal") && !contains(counter, "nonfatal")) || contains(counter, "uncorrect")) {
    return CounterClass::uncorrectable;
  }
  return CounterClass::correctable;
}

void report(Judgement& j, std::int32_t row, const std::string& counter, const Total& t) {
  const CounterClass kind = class_of(counter);
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
  for (const auto& row : j.results.counters) {
    const std::string& counter = row.counter;
    if (!glob(what, counter) && !counter.starts_with(what + "_")) continue;
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

}  // namespace

bool is_traffic(const std::string& counter) { return class_of(counter) == CounterClass::traffic; }

Totals total_by_counter(const results::Results& results) {
  Totals totals;
  for (const auto& row : results.counters) {
    auto& t = totals[{row.entity, row.counter}];
    const bool before = !std::isnan(row.before), after = !std::isnan(row.after);
    if (!before && !after) t.unsupported = true;
    if (before) t.readable = true;
    if (before && !after && !t.unreadable) {
      t.unreadable = true;
      if (t.delta == 0) t.first_case = row.case_path;
    }
    if (!before || !after) continue;
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
      const bool open = class_of(counter) == CounterClass::uncorrectable && t.since_reset > 0;
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
