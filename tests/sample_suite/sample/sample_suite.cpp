// SPDX-License-Identifier: Apache-2.0
#include "sample_suite.hpp"

#include <numeric>

#include "base/clock.hpp"
#include "suite/together.hpp"

namespace assay {
namespace {

using results::Better;
using results::Role;

constexpr std::size_t numbers = std::size_t{1} << 20;

const Metrics& declared() {
  static const Metrics all = [] {
    const results::Judging memory{results::MetricClass::memory, 0.04, 2, results::Floor::memory_channels};
    results::MetricSpec bandwidth{
        "bandwidth", "B/s", Better::higher, true, Role::metric, true, "bytes summed in a second"};
    bandwidth.typical = 2e10;
    const results::MetricSpec errors{"errors",     "count", Better::lower,         true,
                                     Role::metric, false,   "sums that were wrong"};
    return Metrics{{"sum", "sum", memory, {bandwidth, errors}}};
  }();
  return all;
}

/// The place where `values` are not what they were made, -1 if nowhere.
std::int64_t wrong_at(const std::vector<std::uint64_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != mix64(i)) return static_cast<std::int64_t>(i);
  return -1;
}

std::uint64_t sum_of(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

/// One value is made wrong, and the check must see it, where it is, once.
void self_test(std::vector<std::uint64_t> values, std::uint64_t expected, Context& context) {
  const std::size_t at = context.random.child("self-test").below(0, values.size());
  values[at] ^= 4;
  const bool caught = sum_of(values) != expected;
  const bool located = wrong_at(values) == static_cast<std::int64_t>(at);
  context.record.selftest({"sums", 1, caught, located, caught, context.device_entity});
}

}  // namespace

std::vector<OptionSpec> SampleSuite::options() const {
  OptionSpec unproven;
  unproven.name = "sample.unproven";
  unproven.kind = OptionKind::flag;
  unproven.help = "leave the self-test out";
  return {unproven};
}

std::vector<results::MetricSpec> SampleSuite::metrics() const { return declared().all(); }

std::vector<Case> SampleSuite::plan(const PlanInput& input) const {
  Case c;
  c.suite = "sample";
  c.name = "sum-together";
  c.operation = "sum";
  c.required = true;
  c.entities = input.topology.size();
  c.seconds = 0.3;
  c.min_seconds = 0.1;
  c.parameters = {{"numbers", numbers}};
  return {c};
}

void SampleSuite::run(const Case& c, Context& context) {
  for (const results::MetricSpec& m : declared().all()) context.record.declare(m);
  std::vector<std::uint64_t> values(numbers);
  for (std::size_t i = 0; i < numbers; ++i) values[i] = mix64(i);
  const std::uint64_t expected = sum_of(values);
  if (!context.config.options.flag("sample.unproven")) self_test(values, expected, context);

  std::uint64_t sum = 0, errors = 0;
  Together together(context.world);
  Operation operation;
  operation.run = [&](std::uint64_t k) {
    for (std::uint64_t i = 0; i < k; ++i) sum = sum_of(values);
  };
  operation.verify = [&](std::size_t) {
    context.injection_point("sum", &sum, 1, sizeof sum);
    if (sum == expected) return;
    ++errors;
    context.record.miscompare(
        {"", context.device_entity, 0, expected, sum, sum, context.since_start(now_s())});
  };
  SamplingPlan plan = context.sampling(c.seconds);
  plan.repetitions = 1;
  const SampleSeries series = sample(together.wrap(operation), together.wrap(plan));
  together.rethrow();
  auto& row = context.record.add_row(context.device_entity);
  for (std::size_t i = 0; i < series.seconds.size(); ++i) {
    row.t.push_back(context.since_start(series.start_s[i]));
    row.values["bandwidth"].push_back(static_cast<double>(numbers * sizeof(std::uint64_t)) /
                                      series.seconds[i]);
  }
  row.block = series.block;
  row.values["errors"] = {static_cast<double>(errors)};
  context.record.add_time(series.warmup_s, series.timed_s, series.verify_s);
}

}  // namespace assay
