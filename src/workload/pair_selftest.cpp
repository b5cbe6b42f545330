// SPDX-License-Identifier: Apache-2.0
#include "workload/pair_selftest.hpp"

#include <array>

#include "base/clock.hpp"
#include "device/corrupt.hpp"
#include "kernels/payload.hpp"
#include "suite/together.hpp"
#include "topology/oversubscription.hpp"
#include "workload/exchange.hpp"

namespace assay::workload {

results::MetricSpec selftest_metric() {
  return {"detected",
          "count",
          results::Better::none,
          true,
          results::Role::covariate,
          true,
          "corrupted payload bytes found by the check (one was corrupted)",
          results::Judging{results::MetricClass::link}};
}

Case pair_selftest_case(const std::string& suite, Stage stage, const Topology& topology) {
  constexpr std::size_t bytes = 64 * 1024;
  Case c;
  c.suite = suite;
  c.name = "selftest-pair";
  c.operation = selftest_operation;
  c.stage = stage;
  c.required = true;
  c.entities = topology.size();
  c.bytes = 2 * bytes;
  c.seconds = c.min_seconds = 0.01;
  c.overhead_seconds = 0.005 * oversubscription(topology);
  c.parameters = {{"checker", "pair"}, {"bytes", bytes}};
  return c;
}

void run_pair_selftest(const Case& c, Context& context) {
  const std::size_t bytes = c.parameters.at("bytes");
  Communicator& world = context.world;
  const int me = world.rank();
  const int next = (me + 1) % world.size();
  const int previous = (me + world.size() - 1) % world.size();
  std::byte* out = context.device.arena().data();
  std::byte* in = out + bytes;
  const std::uint64_t key = context.random.key();
  context.record.declare(selftest_metric());

  const double begin = now_s();
  Together together(world);
  together.guarded([&] {
    context.device.payload_fill(kernels::payload_key(key, me, next, 0), out, bytes);
    context.device.synchronize();
  });
  if (together.any(false)) {
    together.rethrow();
    return context.record.set_state(results::CaseState::incomplete, "the device of another rank failed");
  }
  std::array<Request, 2> requests;
  world.irecv(in, bytes, previous, payload_tag, requests[0]);
  world.isend(out, bytes, next, payload_tag, requests[1]);
  world.wait_all(requests);

  const auto expected = kernels::payload_key(key, previous, me, 0);
  const auto before = context.device.payload_check(expected, in, bytes);
  if (before.count != 0) {  // a true fault, not the one made here
    results::Miscompare record;
    record.entity = context.device_entity;
    record.index = before.first_index;
    record.expected = before.expected;
    record.actual = record.reread = before.actual;
    record.t = context.since_start(begin);
    context.record.miscompare(record, before.count);
  }
  const RandomStream stream = context.random.child("corrupt").child(std::to_string(me));
  const std::size_t position = stream.below(0, bytes);
  flip_bit(context.device, in, position, 1, static_cast<unsigned>(stream.below(1, 8)));
  const auto after = context.device.payload_check(expected, in, bytes);
  const double seconds = now_s() - begin;

  results::SelftestRow row;
  row.checker = "pair";
  row.injected = 1;
  row.caught = after.count > before.count ? 1 : 0;
  row.located = row.caught != 0 && after.first_index == position / 8 ? 1 : 0;
  row.counted = after.count == before.count + 1 ? 1 : 0;
  row.entity = context.device_entity;
  context.record.selftest(row);
  if (before.count == 0 && (row.caught == 0 || row.located == 0 || row.counted == 0))
    context.record.set_state(results::CaseState::error, "the payload check missed an injected error");
  auto& reported = context.record.add_row(context.device_entity);
  reported.t = {context.since_start(begin)};
  reported.block = {0};
  reported.values["detected"] = {static_cast<double>(after.count - before.count)};
  context.record.add_time(0, 0, seconds);
}

}  // namespace assay::workload
