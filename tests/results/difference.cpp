// SPDX-License-Identifier: Apache-2.0
// Equality of results, field by field, written apart from the columns that the library describes.
#include <cmath>

#include "tests/results/example_results.hpp"

namespace assay::results::example {
namespace {

/// Remembers the first difference.
class Compare {
 public:
  std::string first;

  template <class T>
  void operator()(const std::string& name, const T& a, const T& b) {
    if (first.empty() && !same(a, b)) first = name;
  }
  template <class T, class F>
  void list(const std::string& name, const std::vector<T>& a, const std::vector<T>& b, F&& each) {
    (*this)(name + ".size", a.size(), b.size());
    for (std::size_t i = 0; first.empty() && i < a.size(); ++i)
      each(name + "[" + std::to_string(i) + "].", a[i], b[i]);
  }

 private:
  static bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
  static bool same(const std::optional<double>& a, const std::optional<double>& b) {
    return a.has_value() == b.has_value() && (!a || same(*a, *b));
  }
  static bool same(const std::vector<double>& a, const std::vector<double>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!same(a[i], b[i])) return false;
    }
    return true;
  }
  static bool same(const Values<double>& a, const Values<double>& b) {
    const auto x = a.held(), y = b.held();
    return same(std::vector<double>(x.begin(), x.end()), std::vector<double>(y.begin(), y.end()));
  }
  static bool same(const std::map<std::string, std::vector<double>>& a,
                   const std::map<std::string, std::vector<double>>& b) {
    if (a.size() != b.size()) return false;
    for (const auto& [key, values] : a) {
      if (!b.contains(key) || !same(values, b.at(key))) return false;
    }
    return true;
  }
  template <class T>
  static bool same(const T& a, const T& b) {
    return a == b;
  }
};

void compare_case(Compare& c, const std::string& at, const CaseData& a, const CaseData& b) {
  c(at + "suite", a.suite, b.suite), c(at + "name", a.name, b.name), c(at + "state", a.state, b.state);
  c(at + "reason", a.reason, b.reason), c(at + "required", a.required, b.required),
      c(at + "stage", a.stage, b.stage);
  c(at + "case_key", a.case_key, b.case_key), c(at + "started", a.started, b.started),
      c(at + "ended", a.ended, b.ended);
  c(at + "wall_s", a.shares.wall_s, b.shares.wall_s),
      c(at + "warmup_s", a.shares.warmup_s, b.shares.warmup_s);
  c(at + "timed_s", a.shares.timed_s, b.shares.timed_s),
      c(at + "verify_s", a.shares.verify_s, b.shares.verify_s);
  c(at + "parameters", a.parameters, b.parameters), c(at + "kind", a.kind, b.kind),
      c(at + "entity", a.entity, b.entity);
  c(at + "source", a.source, b.source), c(at + "destination", a.destination, b.destination);
  c(at + "count", a.count, b.count), c(at + "sample", a.sample, b.sample), c(at + "block", a.block, b.block);
  c(at + "t", a.t, b.t);
  c(at + "traits", a.traits.has_value(), b.traits.has_value());
  if (a.traits && b.traits) {
    c(at + "operation", a.traits->operation, b.traits->operation),
        c(at + "takes_turns", a.traits->takes_turns, b.traits->takes_turns);
    c(at + "addresses", a.traits->addresses, b.traits->addresses);
  }
  c.list(at + "metrics", a.metrics, b.metrics, [&](const std::string& m, const Metric& x, const Metric& y) {
    c(m + "name", x.name, y.name), c(m + "unit", x.unit, y.unit), c(m + "better", x.better, y.better);
    c(m + "required", x.required, y.required), c(m + "role", x.role, y.role);
    c(m + "per_sample", x.per_sample, y.per_sample), c(m + "values", x.values, y.values);
    c(m + "judging", x.judging, y.judging), c(m + "title", x.title, y.title);
  });
  c.list(at + "arrays", a.arrays, b.arrays,
         [&](const std::string& m, const IntegerArray& x, const IntegerArray& y) {
           c(m + "name", x.name, y.name), c(m + "dims", x.dims, y.dims), c(m + "shape", x.shape, y.shape);
           c(m + "values", x.values, y.values);
         });
}

void compare_tables(Compare& c, const Results& a, const Results& b) {
  c.list("plan", a.plan, b.plan, [&](const std::string& at, const PlanRow& x, const PlanRow& y) {
    c(at + "suite", x.suite, y.suite), c(at + "name", x.name, y.name), c(at + "state", x.state, y.state);
    c(at + "reason", x.reason, y.reason), c(at + "required", x.required, y.required);
    c(at + "entities", x.entities, y.entities), c(at + "bytes", x.bytes, y.bytes);
    c(at + "seconds", x.seconds, y.seconds), c(at + "deadline_s", x.deadline_s, y.deadline_s);
    c(at + "checkers", x.checkers, y.checkers), c(at + "targets", x.targets, y.targets);
  });
  c.list("environment", a.environment, b.environment,
         [&](const std::string& at, const auto& x, const auto& y) {
           c(at + "node", x.node, y.node), c(at + "key", x.key, y.key), c(at + "value", x.value, y.value);
         });
  c.list("entities", a.entities, b.entities, [&](const std::string& at, const Entity& x, const Entity& y) {
    c(at + "kind", x.kind, y.kind), c(at + "id", x.id, y.id), c(at + "id_source", x.id_source, y.id_source);
    c(at + "name", x.name, y.name), c(at + "parent", x.parent, y.parent), c(at + "rank", x.rank, y.rank);
  });
  c.list("errors", a.errors, b.errors, [&](const std::string& at, const Miscompare& x, const Miscompare& y) {
    c(at + "case", x.case_path, y.case_path), c(at + "entity", x.entity, y.entity),
        c(at + "index", x.index, y.index);
    c(at + "expected", x.expected, y.expected), c(at + "actual", x.actual, y.actual);
    c(at + "reread", x.reread, y.reread), c(at + "t", x.t, y.t);
    c(at + "sm", x.sm, y.sm), c(at + "warp", x.warp, y.warp), c(at + "lane", x.lane, y.lane);
  });
  c.list("counters", a.counters, b.counters,
         [&](const std::string& at, const CounterRow& x, const CounterRow& y) {
           c(at + "case", x.case_path, y.case_path), c(at + "entity", x.entity, y.entity),
               c(at + "counter", x.counter, y.counter);
           c(at + "before", x.before, y.before), c(at + "after", x.after, y.after);
         });
  c("telemetry.entity", a.telemetry.entity, b.telemetry.entity),
      c("telemetry.t", a.telemetry.t, b.telemetry.t);
  c("telemetry.unit", a.telemetry.unit, b.telemetry.unit);
  c("telemetry.number", a.telemetry.number, b.telemetry.number);
  c.list("flags", a.flags, b.flags, [&](const std::string& at, const FlagRow& x, const FlagRow& y) {
    c(at + "t", x.t, y.t), c(at + "entity", x.entity, y.entity), c(at + "flag", x.flag, y.flag),
        c(at + "value", x.value, y.value);
  });
  c.list("events", a.events, b.events, [&](const std::string& at, const EventRow& x, const EventRow& y) {
    c(at + "t", x.t, y.t), c(at + "entity", x.entity, y.entity), c(at + "kind", x.kind, y.kind),
        c(at + "text", x.text, y.text);
  });
  c.list("selftest", a.selftest, b.selftest,
         [&](const std::string& at, const SelftestRow& x, const SelftestRow& y) {
           c(at + "checker", x.checker, y.checker), c(at + "injected", x.injected, y.injected),
               c(at + "caught", x.caught, y.caught);
           c(at + "located", x.located, y.located), c(at + "counted", x.counted, y.counted),
               c(at + "entity", x.entity, y.entity);
         });
}

void compare_verdict(Compare& c, const VerdictData& a, const VerdictData& b) {
  c("verdict.state", a.state, b.state), c("verdict.exit_code", a.exit_code, b.exit_code),
      c("verdict.basis", a.basis, b.basis);
  c("verdict.false_alarm_rate", a.false_alarm_rate, b.false_alarm_rate),
      c("verdict.reasons", a.reasons, b.reasons);
  c("verdict.inputs", a.inputs, b.inputs);
  const Accounting &x = a.accounting, &y = b.accounting;
  c("planned", x.planned, y.planned), c("passed", x.passed, y.passed), c("failed", x.failed, y.failed);
  c("skipped", x.skipped, y.skipped), c("error", x.error, y.error),
      c("incomplete", x.incomplete, y.incomplete);
  c("not_applicable", x.not_applicable, y.not_applicable),
      c("required_missing", x.required_missing, y.required_missing);
  c.list("verdict.entities", a.entities, b.entities,
         [&](const std::string& at, const EntityState& p, const EntityState& q) {
           c(at + "entity", p.entity, q.entity), c(at + "state", p.state, q.state),
               c(at + "reason", p.reason, q.reason);
         });
  c.list("findings", a.findings, b.findings, [&](const std::string& at, const Finding& p, const Finding& q) {
    c(at + "severity", p.severity, q.severity), c(at + "claim", p.claim, q.claim),
        c(at + "level", p.level, q.level);
    c(at + "name", p.name, q.name), c(at + "id", p.id, q.id), c(at + "part", p.part, q.part);
    c(at + "members", p.members, q.members), c(at + "kind", p.kind, q.kind),
        c(at + "suite", p.suite, q.suite);
    c(at + "metric", p.metric, q.metric), c(at + "unit", p.unit, q.unit),
        c(at + "better", p.better, q.better);
    c(at + "value", p.value, q.value), c(at + "reference", p.reference, q.reference);
    c(at + "reference_kind", p.reference_kind, q.reference_kind), c(at + "deficit", p.deficit, q.deficit);
    c(at + "ci_low", p.ci_low, q.ci_low), c(at + "ci_high", p.ci_high, q.ci_high),
        c(at + "samples", p.samples, q.samples);
    c(at + "controls", p.controls, q.controls), c(at + "stratum", p.stratum, q.stratum);
    c(at + "confirmed", p.confirmed, q.confirmed), c(at + "confirmed_by", p.confirmed_by, q.confirmed_by);
    c(at + "p_adjusted", p.p_adjusted, q.p_adjusted), c(at + "uncertainty", p.uncertainty, q.uncertainty);
    c(at + "since", p.since, q.since), c(at + "action", p.action, q.action),
        c(at + "evidence", p.evidence, q.evidence);
    c(at + "text", p.text, q.text);
  });
}

}  // namespace

std::string difference(const Results& a, const Results& b) {
  Compare c;
  const RunInfo &x = a.info, &y = b.info;
  c("run_id", x.run_id, y.run_id), c("state", x.state, y.state), c("started", x.started, y.started),
      c("ended", x.ended, y.ended);
  c("command_line", x.command_line, y.command_line), c("assay_version", x.assay_version, y.assay_version);
  c("level", x.level, y.level), c("seed", x.seed, y.seed), c("plan_hash", x.plan_hash, y.plan_hash);
  c("injected", x.injected, y.injected), c("verdict", x.verdict, y.verdict), c("config", a.config, b.config);
  compare_tables(c, a, b);
  c("inventory.size", a.inventory.size(), b.inventory.size());
  for (const auto& [kind, table] : a.inventory) {
    if (!b.inventory.contains(kind)) return "inventory." + kind;
    const InventoryTable& other = b.inventory.at(kind);
    c(kind + ".entity", table.entity, other.entity), c(kind + ".text", table.text, other.text);
    c(kind + ".number", table.number, other.number), c(kind + ".unit", table.unit, other.unit);
  }
  c.list("cases", a.cases, b.cases,
         [&](const std::string& at, const CaseData& p, const CaseData& q) { compare_case(c, at, p, q); });
  c("has verdict", a.verdict.has_value(), b.verdict.has_value());
  if (c.first.empty() && a.verdict) compare_verdict(c, *a.verdict, *b.verdict);
  return c.first;
}

}  // namespace assay::results::example
