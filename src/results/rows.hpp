// SPDX-License-Identifier: Apache-2.0
// Which member of a row is which column, said once: tables in HDF5 and JSON are both read and written through
// `describe`. Private to src/results.
#pragma once

#include <type_traits>

#include "results/model.hpp"

namespace assay::results {

template <class Row>
using Of = std::type_identity<Row>;

template <class V>
void describe(Of<PlanRow>, V&& v) {
  v("suite", &PlanRow::suite);
  v("case", &PlanRow::name);
  v("state", &PlanRow::state);
  v("reason", &PlanRow::reason);
  v("required", &PlanRow::required);
  v("entities", &PlanRow::entities);
  v("bytes", &PlanRow::bytes);
  v("seconds", &PlanRow::seconds);
  v("deadline_s", &PlanRow::deadline_s);
  v("checkers", &PlanRow::checkers);
  v("targets", &PlanRow::targets);
}

template <class V>
void describe(Of<EnvironmentRow>, V&& v) {
  v("node", &EnvironmentRow::node);
  v("key", &EnvironmentRow::key);
  v("value", &EnvironmentRow::value);
}

template <class V>
void describe(Of<Entity>, V&& v) {
  v("kind", &Entity::kind);
  v("id", &Entity::id);
  v("id_source", &Entity::id_source);
  v("name", &Entity::name);
  v("parent", &Entity::parent);
  v("rank", &Entity::rank);
}

template <class V>
void describe(Of<Miscompare>, V&& v) {
  v("case", &Miscompare::case_path);
  v("entity", &Miscompare::entity);
  v("index", &Miscompare::index);
  v("expected", &Miscompare::expected);
  v("actual", &Miscompare::actual);
  v("reread", &Miscompare::reread);
  v("t", &Miscompare::t);
  v("sm", &Miscompare::sm);
  v("warp", &Miscompare::warp);
  v("lane", &Miscompare::lane);
}

template <class V>
void describe(Of<CounterRow>, V&& v) {
  v("case", &CounterRow::case_path);
  v("entity", &CounterRow::entity);
  v("counter", &CounterRow::counter);
  v("before", &CounterRow::before);
  v("after", &CounterRow::after);
}

template <class V>
void describe(Of<EventRow>, V&& v) {
  v("t", &EventRow::t);
  v("entity", &EventRow::entity);
  v("kind", &EventRow::kind);
  v("text", &EventRow::text);
  v("finding", &EventRow::finding);
  v("case", &EventRow::case_path);
}

template <class V>
void describe(Of<FlagRow>, V&& v) {
  v("t", &FlagRow::t);
  v("entity", &FlagRow::entity);
  v("flag", &FlagRow::flag);
  v("value", &FlagRow::value);
}

template <class V>
void describe(Of<SelftestRow>, V&& v) {
  v("checker", &SelftestRow::checker);
  v("injected", &SelftestRow::injected);
  v("caught", &SelftestRow::caught);
  v("located", &SelftestRow::located);
  v("counted", &SelftestRow::counted);
  v("entity", &SelftestRow::entity);
}

template <class V>
void describe(Of<Finding>, V&& v) {
  v("severity", &Finding::severity);
  v("claim", &Finding::claim);
  v("level", &Finding::level);
  v("name", &Finding::name);
  v("id", &Finding::id);
  v("part", &Finding::part);
  v("members", &Finding::members);
  v("kind", &Finding::kind);
  v("suite", &Finding::suite);
  v("metric", &Finding::metric);
  v("unit", &Finding::unit);
  v("better", &Finding::better);
  v("value", &Finding::value);
  v("reference", &Finding::reference);
  v("reference_kind", &Finding::reference_kind);
  v("deficit", &Finding::deficit);
  v("ci_low", &Finding::ci_low);
  v("ci_high", &Finding::ci_high);
  v("samples", &Finding::samples);
  v("controls", &Finding::controls);
  v("stratum", &Finding::stratum);
  v("confirmed", &Finding::confirmed);
  v("confirmed_by", &Finding::confirmed_by);
  v("p_adjusted", &Finding::p_adjusted);
  v("uncertainty", &Finding::uncertainty);
  v("since", &Finding::since);
  v("action", &Finding::action);
  v("evidence", &Finding::evidence);
  v("text", &Finding::text);
}

template <class V>
void describe(Of<EntityState>, V&& v) {
  v("entity", &EntityState::entity);
  v("state", &EntityState::state);
  v("reason", &EntityState::reason);
}

template <class V>
void describe(Of<Accounting>, V&& v) {
  v("planned", &Accounting::planned);
  v("passed", &Accounting::passed);
  v("failed", &Accounting::failed);
  v("skipped", &Accounting::skipped);
  v("error", &Accounting::error);
  v("incomplete", &Accounting::incomplete);
  v("not_applicable", &Accounting::not_applicable);
  v("required_missing", &Accounting::required_missing);
}

/// The root attributes that are part of RunInfo; @format and @schema_version come from the schema.
template <class V>
void describe(Of<RunInfo>, V&& v) {
  v("run_id", &RunInfo::run_id);
  v("state", &RunInfo::state);
  v("started", &RunInfo::started);
  v("ended", &RunInfo::ended);
  v("command_line", &RunInfo::command_line);
  v("assay_version", &RunInfo::assay_version);
  v("level", &RunInfo::level);
  v("seed", &RunInfo::seed);
  v("plan_hash", &RunInfo::plan_hash);
  v("injected", &RunInfo::injected);
  v("verdict", &RunInfo::verdict);
}

}  // namespace assay::results
