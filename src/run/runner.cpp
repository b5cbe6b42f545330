// SPDX-License-Identifier: Apache-2.0
#include "run/runner.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "run/confirming.hpp"
#include "run/injector.hpp"

namespace assay {
namespace {

Suite& suite_of(const Case& c, const std::vector<std::unique_ptr<Suite>>& suites) {
  for (const auto& suite : suites)
    if (suite->name() == c.suite) return *suite;
  throw Error(ErrorKind::internal, "no suite of a planned case: " + c.path());
}

/// Counter values of one node before and after a case, as text for the gather.
/// All of them in the first case, which shows what can be read; later only what moved.
std::string counters_text(const CounterSet* counters, const std::string& node, const std::vector<double>& before, bool all) {
  if (counters == nullptr) return "[]";
  const auto after = counters->read();
  Json rows = Json::array();
  if (all)
    for (const auto& family : counters->unsupported_families()) rows.push_back({"node", node, family, Json(), Json()});
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto& source = counters->sources()[i];
    Json a = std::isnan(after[i]) ? Json() : Json(after[i]);
    Json b = std::isnan(before[i]) ? Json() : Json(before[i]);
    if (!all && before[i] == after[i]) continue;
    rows.push_back({source.entity_kind, source.entity_name, source.counter, b, a});
  }
  return rows.dump();
}

}  // namespace

bool Runner::run_all() {
  int number;
  while ((number = parts_.link.next_case()) >= 0) {
    // What the plan does not hold is a confirming case, and comes with its order.
    const auto index = static_cast<std::size_t>(number);
    parts_.link.record(number, to_text(run_case(index < parts_.plan.cases.size()
                                                    ? parts_.plan.cases[index]
                                                    : confirming_case(parts_.plan, confirm_from(parts_.link.step_text()),
                                                                      parts_.topology, parts_.entities))));
  }
  return number == guard::next_segment;
}

CaseRecord Runner::measure(const Case& c) {
  CaseRecord record;
  const double begin = now_s();
  Context context{parts_.config,
                  parts_.topology,
                  parts_.entities,
                  parts_.device,
                  parts_.world,
                  parts_.node,
                  parts_.leaders,
                  case_stream(parts_.config.seed, c.path()),
                  parts_.run_start_s,
                  begin + c.deadline_s,
                  record,
                  parts_.entities.device_of_rank(parts_.world.rank()),
                  parts_.injector,
                  c.confirm.get(),
                  &parts_.link.board()};
  try {
    Suite& suite = suite_of(c, parts_.suites);
    // A stage inside of nodes must not meet the ranks of others: they may be gone.
    Communicator& group = c.stage <= Stage::node_local ? parts_.node : parts_.world;
    if (parts_.injector != nullptr) parts_.injector->begin_case(c, suite.metrics(), group);
    suite.run(c, context);
    if (c.confirm) join_visits(record);
  } catch (const Error& e) {
    record.set_state(results::CaseState::error, e.what());
  } catch (const std::exception& e) {
    record.set_state(results::CaseState::error, fmt::format("unexpected: {}", e.what()));
  }
  if (parts_.injector != nullptr) parts_.injector->end_case(record);
  record.wall_s_ = now_s() - begin;
  return record;
}

CaseReport Runner::run_case(const Case& c) {
  const auto before = parts_.counters != nullptr ? parts_.counters->read() : std::vector<double>{};
  const CaseRecord record = measure(c);
  return {record.serialize(),
          counters_text(parts_.counters, parts_.topology.my_node().hostname, before, !std::exchange(counters_told_, true)),
          parts_.injector != nullptr ? parts_.injector->never_fired() : std::vector<std::string>{}};
}

}  // namespace assay
