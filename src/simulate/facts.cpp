// SPDX-License-Identifier: Apache-2.0
#include "simulate/facts.hpp"

#include "simulate/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace assay::simulate {
namespace {

using results::Better;
using results::CaseData;
using results::CaseState;
using results::Results;
using results::Role;

/// A case with one value per entity that is not timed.
CaseData plain_case(const char* suite, const char* name, const char* stage, const char* kind,
                    std::vector<std::int32_t> rows) {
  CaseData c;
  c.suite = suite;
  c.name = name;
  c.stage = stage;
  c.kind = kind;
  c.required = true;
  c.case_key = fmt::format("{:016x}", hash_text(std::string("simulated ") + suite + "/" + name));
  c.sample = c.block = {0};
  c.count.assign(rows.size(), 1);
  c.t.assign(rows.size(), 0);
  c.entity = std::move(rows);
  return c;
}

void store(Results& r, CaseData c) {
  results::PlanRow row;
  row.suite = c.suite;
  row.name = c.name;
  row.required = c.required;
  row.entities = static_cast<std::int64_t>(c.entities());
  row.deadline_s = 10;
  r.plan.push_back(std::move(row));
  r.cases.push_back(std::move(c));
}

void add_inventory_case(Results& r, const Machine& machine) {
  std::vector<std::int32_t> rows;
  for (std::int64_t n = 0; n < machine.nodes(); ++n) rows.push_back(machine.node_row(n));
  CaseData c = plain_case("inventory", "node", "inventory", "node", std::move(rows));
  const auto& table = r.inventory.at("node");
  for (const char* name : {"memory_bytes", "nics", "gpus"})
    c.metrics.push_back(
        {name, table.unit.at(name), Better::none, false, Role::metric, false, table.number.at(name)});
  store(r, std::move(c));
}

/// Devices that a fault hits, as numbers over the whole cluster.
std::vector<std::int64_t> devices_of(const Machine& machine, const Fault& fault) {
  std::vector<std::int64_t> hit;
  const std::int64_t per_node = machine.spec().devices_per_node;
  for (std::int64_t n = 0; n < machine.nodes(); ++n) {
    const std::string name = machine.node_name(n);
    for (std::int64_t d = 0; d < per_node; ++d)
      if (fault.hits_device(n, name, d)) hit.push_back(n * per_node + d);
  }
  return hit;
}

void add_check(Results& r, const Machine& machine, const Check& check) {
  std::vector<std::int32_t> rows;
  for (std::int64_t d = 0; d < machine.devices(); ++d) rows.push_back(machine.device_row(d));
  CaseData c = plain_case(check.suite, check.name, check.stage, "device", std::move(rows));
  results::Metric errors{"errors", "count", Better::lower, true, Role::metric, false, {}};
  errors.values.assign(c.entities(), 0);
  const RandomStream stream = machine.run_stream("bitflip");
  for (const Fault& fault : machine.spec().faults) {
    if (fault.kind != Kind::bitflip || fault.target != check.target) continue;
    for (const std::int64_t d : devices_of(machine, fault)) {
      const auto at = static_cast<std::uint64_t>(d);
      errors.values[static_cast<std::size_t>(d)] += 1;
      results::Miscompare wrong;
      wrong.case_path = c.path();
      wrong.entity = machine.device_row(d);
      wrong.index = stream.below(4 * at, 512 * 512);
      wrong.expected = stream.bits(4 * at + 1);
      wrong.actual = wrong.reread = wrong.expected ^ (std::uint64_t{1} << stream.below(4 * at + 2, 64));
      r.errors.push_back(std::move(wrong));
      c.state = CaseState::fail;
      c.reason = "wrong values";
    }
  }
  c.metrics.push_back(std::move(errors));
  store(r, std::move(c));
}

/// Takes the rows of entities out of a case.
void drop_rows(CaseData& c, const std::set<std::int32_t>& gone) {
  std::vector<std::size_t> kept;
  for (std::size_t e = 0; e < c.entities(); ++e) {
    const bool link = !c.source.empty();
    if (!gone.contains(c.entity[e]) &&
        !(link && (gone.contains(c.source[e]) || gone.contains(c.destination[e]))))
      kept.push_back(e);
  }
  const auto pick = [&](auto& values, std::size_t width) {
    auto out = values;
    out.clear();
    for (const std::size_t e : kept)
      for (std::size_t i = 0; i < width && !values.empty(); ++i) out.push_back(values[e * width + i]);
    values = std::move(out);
  };
  const std::size_t samples = c.samples();
  for (auto& m : c.metrics) pick(m.values.own(), m.per_sample ? samples : 1);
  pick(c.t.own(), samples);
  for (auto* rows : {&c.source, &c.destination, &c.count, &c.entity}) pick(*rows, 1);
}

/// The ranks of a fault leave in the middle of the run. Inside nodes the others go on, also with the case in
/// flight; across nodes that one is incomplete. So is what no part is left for.
void lose(Results& r, const Machine& machine, const Fault& fault) {
  std::set<std::int32_t> gone;
  const std::size_t middle = r.cases.size() / 2;
  const std::string what = fault.kind == Kind::hang ? "hang" : "lost";
  const std::string where = r.cases.empty() ? "" : r.cases[middle].path();
  for (const std::int64_t d : devices_of(machine, fault)) {
    const std::int32_t row = machine.device_row(d);
    gone.insert(row);
    const auto& entity = r.entities[static_cast<std::size_t>(row)];
    const double t = r.cases.empty() || r.cases[middle].t.empty() ? 0 : r.cases[middle].t[0];
    r.events.push_back({t, row, what,
                        fmt::format("{} (rank {}) {} in {}", entity.name, entity.rank,
                                    what == "hang" ? "hung" : "was lost", where)});
  }
  if (r.cases.empty()) return;
  for (std::size_t i = middle; i < r.cases.size(); ++i) {
    CaseData& c = r.cases[i];
    const bool alone = c.entity.empty();
    drop_rows(c, gone);
    const bool nobody = c.entity.empty() && !alone;
    if (!nobody && (i > middle || c.stage == "node-local")) continue;
    c.state = CaseState::incomplete;
    c.reason = what == "hang" ? "a rank hung" : "a rank was lost";
  }
}

/// A device that is not there was never measured.
void leave_out(Results& r, const Machine& machine, const Fault& fault) {
  if (fault.what != "device") return;
  std::set<std::int32_t> gone;
  const std::int64_t per_node = machine.spec().devices_per_node;
  for (std::int64_t n = 0; n < machine.nodes(); ++n)
    if (fault.nodes.contains(n, machine.node_name(n)))
      gone.insert(machine.device_row((n + 1) * per_node - 1));
  for (auto& c : r.cases) drop_rows(c, gone);
  for (auto& row : r.plan)
    for (const auto& c : r.cases)
      if (c.suite == row.suite && c.name == row.name) row.entities = static_cast<std::int64_t>(c.entities());
}

}  // namespace

void add_facts(Results& r, const Machine& machine) {
  std::set<std::string> suites;
  for (const auto& c : r.cases) suites.insert(c.suite);
  std::set<std::string> checkers;
  for (const Check& check : checks()) {
    if (!suites.contains(check.suite)) continue;
    checkers.insert(check.checker);
    if (check.name[0] != 0) add_check(r, machine, check);
  }
  for (const MetricModel& m : machine.spec().metrics) checkers.insert(m.checkers.begin(), m.checkers.end());
  for (const std::string& checker : checkers)
    r.selftest.push_back({checker, 1, 1, 1, 1, machine.node_row(0)});
  add_inventory_case(r, machine);
  for (const Fault& fault : machine.spec().faults) {
    if (fault.kind == Kind::hang || fault.kind == Kind::lost) lose(r, machine, fault);
    if (fault.kind == Kind::missing) leave_out(r, machine, fault);
  }
}

}  // namespace assay::simulate
