// SPDX-License-Identifier: Apache-2.0
#include "suites/selftest/selftest_suite.hpp"

#include <stdexcept>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace assay {

std::vector<OptionSpec> SelftestSuite::options() const {
  OptionSpec cases;
  cases.name = "selftest.cases";
  cases.kind = OptionKind::choices;
  cases.default_text = "pass";
  cases.help = "what to do on purpose";
  cases.allowed = {"pass", "fail", "skip", "throw", "throw-unknown"};
  cases.value_name = "CASES";
  cases.hidden = true;
  return {cases};
}

std::vector<results::MetricSpec> SelftestSuite::metrics() const {
  return {{"duration", "s", results::Better::lower, true, results::Role::metric, true,
           "a short loop of additions", results::Judging{}, "loop", "pass"}};
}

std::vector<Case> SelftestSuite::plan(const PlanInput& input) const {
  std::vector<Case> cases;
  for (const std::string& what : input.config.options.list("selftest.cases")) {
    Case c;
    c.suite = "selftest";
    c.name = what;
    c.operation = "loop";
    c.required = true;
    c.entities = input.topology.size();
    c.seconds = c.min_seconds = 0.01;
    c.parameters = {{"what", what}};
    cases.push_back(c);
  }
  return cases;
}

void SelftestSuite::run(const Case& c, Context& context) {
  const std::string what = c.parameters.at("what");
  if (what == "throw") throw Error(ErrorKind::device, "selftest: thrown on purpose");
  if (what == "throw-unknown") throw std::runtime_error("selftest: thrown on purpose, of no known kind");
  if (what == "skip") {
    context.record.set_state(results::CaseState::skip, "selftest: skipped on purpose");
    return;
  }
  context.record.declare(metrics().front());
  auto& row = context.record.add_row(context.device_entity);
  double timed_s = 0;
  for (std::int32_t sample = 0; sample < 5; ++sample) {
    const double begin = now_s();
    volatile std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 10000; ++i) sum = sum + mix64(i);
    context.apply_injected_delay(begin, 1);
    const double seconds = now_s() - begin;
    row.t.push_back(context.since_start(begin));
    row.block.push_back(0);
    row.values["duration"].push_back(seconds);
    timed_s += seconds;
  }
  context.record.add_time(0, timed_s, 0);
  if (what == "fail") context.record.set_state(results::CaseState::fail, "selftest: failed on purpose");
}

}  // namespace assay
