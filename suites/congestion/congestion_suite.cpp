// SPDX-License-Identifier: Apache-2.0
#include "suites/congestion/congestion_suite.hpp"

#include <algorithm>
#include <optional>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "suites/congestion/canaries.hpp"
#include "suites/congestion/congestion_metrics.hpp"
#include "suites/congestion/congestors.hpp"
#include "workload/pair_selftest.hpp"
#include "workload/payload_error.hpp"

namespace assay {
namespace {

using congestion::Canary;
using congestion::Samples;

const char* metric_of(Canary canary) {
  return canary == Canary::latency ? "latency" : canary == Canary::bandwidth ? "bandwidth" : "duration";
}

/// The samples say what was measured, the two impacts what it means. No rank is compared with another: how
/// much of the others' traffic crosses its way is chance, and none of its doing.
void declare(Canary canary, CaseRecord& record) {
  for (const char* name : {metric_of(canary), "congested", "impact_mean", "impact_p99"})
    record.declare(congestion::metrics().of(congestion::operation_of(canary), name));
}

/// A ping-pong is there and back.
double value_of(Canary canary, double seconds) {
  if (canary == Canary::latency) return seconds / 2;
  return canary == Canary::bandwidth ? static_cast<double>(congestion::bandwidth_bytes) / seconds : seconds;
}

/// All draws of a rank.
struct Watched {
  CaseRecord::Row row;
  std::vector<double> alone, congested;
};

void add(Watched& watched, const Samples& samples, Canary canary, int draw, bool congested,
         Context& context) {
  for (std::size_t i = 0; i < samples.seconds.size(); ++i) {
    watched.row.t.push_back(context.since_start(samples.start_s[i]));
    watched.row.block.push_back(draw);
    watched.row.values[metric_of(canary)].push_back(value_of(canary, samples.seconds[i]));
    watched.row.values["congested"].push_back(congested ? 1 : 0);
    (congested ? watched.congested : watched.alone).push_back(samples.seconds[i]);
  }
  for (const auto& bad : samples.wrong) workload::record_payload_error(bad, context);
}

void wrong_words(std::uint64_t count, const char* where, Context& context) {
  if (count == 0) return;
  results::Miscompare record;
  record.entity = context.device_entity;
  record.t = context.since_start(now_s());
  context.record.miscompare(record, count);
  context.record.event("miscompare", std::to_string(count) + " wrong in " + where, context.device_entity);
}

/// Canaries, and when they are not alone the others, for one part of a draw.
void run_part(const Case& c, const congestion::Roles& roles, Communicator& group, bool congested,
              double seconds, int draw, Watched& watched, Context& context) {
  const Canary canary = congestion::canary_of(c);
  const int me = context.world.rank();
  const auto most = congestion::part_samples(context.config.level, context.topology.ranks.size());
  const bool is_canary = roles.canary[static_cast<std::size_t>(context.topology.me().node)];
  std::optional<congestion::Flood> flood;
  if (!is_canary && congested) {
    const auto planned = c.parameters.at("load_bytes").get<std::size_t>();
    flood.emplace(group, congestion::congestor_of(c), context.device, planned,
                  congestion::exchange_s(seconds),
                  mix64(context.random.key(), static_cast<std::uint64_t>(draw)));
    if (flood->block_bytes() < planned) context.record.parameter("fitted_load_bytes", flood->block_bytes());
  }
  context.world.quiet_barrier();
  const double begin = now_s();
  if (!is_canary) {
    // Longer than the canaries look, so that none of their samples is without traffic.
    if (flood) wrong_words(flood->run(begin + 1.2 * seconds), "the traffic of the others", context);
  } else if (canary == Canary::all_reduce) {
    const Samples samples = congestion::watch_sum(group, seconds, most);
    wrong_words(samples.wrong_sums, "sums", context);
    add(watched, samples, canary, draw, congested, context);
  } else if (const int peer = workload::partner_of(roles.pairs, me); peer >= 0) {
    add(watched,
        congestion::watch_pair(context.world, peer, canary, context.device,
                               context.random.key() + static_cast<std::uint64_t>(2 * draw + congested),
                               seconds, most, context.end_s),
        canary, draw, congested, context);
  }
  context.record.add_time(0, now_s() - begin, 0);
  context.world.quiet_barrier();
}

void run_case(const Case& c, Context& context) {
  const Canary canary = congestion::canary_of(c);
  declare(canary, context.record);
  context.record.parameter("path", context.world.path());
  const congestion::Timing timing = congestion::timing_of(context.config.level);
  Watched watched;
  int done = 0;
  for (; done < timing.draws; ++done) {
    // Canaries stop before the traffic does.
    if (context.world.max(now_s() + congestion::draw_parts * timing.part_s > context.end_s ? 1.0 : 0.0) > 0)
      break;
    const auto roles =
        congestion::draw_roles(context.topology, congestion::role_stream(context.config.seed, c.name), done);
    const bool is_canary = roles.canary[static_cast<std::size_t>(context.topology.me().node)];
    const auto group = context.world.split(is_canary ? 0 : 1, context.world.rank());
    for (const bool congested : {false, true})
      run_part(c, roles, *group, congested, timing.part_s, done, watched, context);
  }
  if (done < timing.draws)
    context.record.set_state(results::CaseState::incomplete, "cut short: " + std::to_string(done) + " of " +
                                                                 std::to_string(timing.draws) +
                                                                 " draws in the time there was");
  if (watched.alone.empty() || watched.congested.empty()) return;
  const congestion::Impact impact = congestion::impact_of(watched.alone, watched.congested);
  auto& row = context.record.add_row(context.device_entity);
  row.t = std::move(watched.row.t);
  row.block = std::move(watched.row.block);
  row.values = std::move(watched.row.values);
  row.values["impact_mean"] = {impact.mean};
  row.values["impact_p99"] = {impact.p99};
}

}  // namespace

std::vector<results::MetricSpec> CongestionSuite::metrics() const { return congestion::metrics().all(); }

std::vector<Case> CongestionSuite::plan(const PlanInput& input) const {
  return congestion::plan_cases(input);
}

void CongestionSuite::run(const Case& c, Context& context) {
  if (c.operation == workload::selftest_operation)
    workload::run_pair_selftest(c, context);
  else
    run_case(c, context);
}

}  // namespace assay
