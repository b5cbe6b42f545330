// SPDX-License-Identifier: Apache-2.0
#include "suites/allreduce/allreduce_suite.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "device/corrupt.hpp"
#include "suite/gpu_bound.hpp"
#include "suites/allreduce/allreduce_metrics.hpp"
#include "suites/allreduce/allreduce_plan.hpp"
#include "suites/allreduce/groups.hpp"
#include "suites/allreduce/series.hpp"
#include "transport/device_collectives.hpp"
#include "transport/gpu_links.hpp"

namespace assay {
namespace {

using allreduce::Collective;
using allreduce::Division;
using allreduce::Scope;

/// Whose ranks share the clock of an operation: of the leaders there is one group in the cluster.
results::SharedBy shared_by(Scope scope) {
  if (scope == Scope::node) return results::SharedBy::node;
  return scope == Scope::world || scope == Scope::leader ? results::SharedBy::world
                                                         : results::SharedBy::group;
}

void declare_metrics(const std::string& operation, const allreduce::Spec& spec, bool groups,
                     const GpuBound& bound, CaseRecord& record) {
  for (const results::MetricSpec& m : allreduce::metrics().all()) {
    // Who was slow together tells who it was.
    if (m.operation != operation || (m.name == "group" && !groups) || m.name == "bound_share") continue;
    auto& declared = record.declare(m);
    declared.judging->shared_by = shared_by(spec.scope);
    if (m.name == "busbw" && spec.bytes >= allreduce::judged_bytes && *bound.by != 0)
      declared.judging->floor = results::Floor::gpu_bound;
    // What a sample held: as planned, or what a slow group could end in its share of the time.
    if (m.name == "repetitions" || m.name == "message_bytes") declared.per_sample = groups;
  }
  if (*bound.by != 0) declare_bound(allreduce::metrics().of(operation, "bound_share"), bound, record);
}

/// Ranks of the communicator of a scope that this rank is in.
std::vector<int> members_of(Scope scope, const Topology& topology) {
  if (scope == Scope::node) return topology.ranks_of(topology.me().node);
  std::vector<int> ranks;
  for (const RankPlace& place : topology.ranks)
    if (scope == Scope::world || place.local_rank == 0) ranks.push_back(place.rank);
  return ranks;
}

/// What a rank has measured so far; several draws of groups join in one row.
struct RankRow {
  std::vector<double> t, duration, busbw, algbw, arrival, group, repetitions, bytes;
  std::vector<std::int32_t> block;
};

void report(RankRow row, const allreduce::Spec& spec, bool groups, const GpuBound& bound, Context& context) {
  if (row.t.empty()) return;
  auto& out = context.record.add_row(context.device_entity);
  out.t = std::move(row.t);
  out.block = std::move(row.block);
  if (groups) out.values["group"] = std::move(row.group);
  out.values["repetitions"] =
      groups ? std::move(row.repetitions) : std::vector<double>{row.repetitions.front()};
  out.values["message_bytes"] = groups ? std::move(row.bytes) : std::vector<double>{row.bytes.front()};
  out.values["duration"] = std::move(row.duration);
  if (spec.isolated) {
    out.values["arrival_skew"] = std::move(row.arrival);
  } else {
    out.values["busbw"] = std::move(row.busbw);
    out.values["algbw"] = std::move(row.algbw);
  }
  if (*bound.by == 0) return;
  const auto own = collective_bound(context.topology, members_of(spec.scope, context.topology));
  add_bound_share(out, "busbw", part_bound(bound, own));
}

void report_wrong(const std::vector<allreduce::WrongResults>& wrong, Context& context) {
  for (const auto& bad : wrong) {
    results::Miscompare record;
    record.entity = context.device_entity;
    record.index = bad.errors.first_index;
    record.expected = bad.errors.expected;
    record.actual = bad.errors.actual;
    record.reread = bad.reread;
    record.t = context.since_start(now_s());
    context.record.miscompare(record, bad.errors.count);
  }
}

/// How the ranks of a case are divided; nothing where all its communicators stay the same.
std::optional<Division> division_of(const Case& c, Scope scope) {
  if (c.retest && c.retest->variant == "halves") return Division::halves;
  if (scope == Scope::rails) return Division::rails;
  return scope == Scope::groups ? std::optional(Division::groups) : std::nullopt;
}

/// Communicator of a case: borrowed from the context or split for one draw; null where this rank takes no
/// part.
struct CaseCommunicator {
  Communicator* comm = nullptr;
  std::unique_ptr<Communicator> owned;
  int group = -1;  ///< of this draw
  std::string path;
};

/// What carries a scope's collectives: those of the context, or NCCL's; null where this rank takes no part.
Communicator* carrier(const std::string& transport, Scope scope, Context& context) {
  const bool leaders = scope == Scope::leader, node = scope == Scope::node;
  if (transport != "nccl") return node ? &context.node : leaders ? context.leaders : &context.world;
  if (context.gpu_links == nullptr) throw Error(ErrorKind::device, "this assay was built without CUDA");
  if (leaders && context.leaders == nullptr) return nullptr;
  const auto which = leaders ? GpuLinks::Scope::leaders
                     : node  ? GpuLinks::Scope::node
                             : GpuLinks::Scope::world;
  return &context.gpu_links->nccl(which, context.deadline_s);
}

CaseCommunicator communicator(Scope scope, std::optional<Division> division, const Case& c, Context& context,
                              int draw) {
  CaseCommunicator out;
  const std::string transport = c.parameters.at("transport");
  if (division) {
    const auto groups = allreduce::groups_of(*division, context.topology,
                                             allreduce::group_stream(context.config.seed, c.name), draw);
    out.group = groups[static_cast<std::size_t>(context.world.rank())];
    Communicator& all = *carrier(transport, Scope::world, context);
    out.path = all.path();
    out.owned = all.split(out.group, context.world.rank());
    out.comm = out.owned.get();
  } else {
    out.comm = carrier(transport, scope, context);
    if (out.comm != nullptr) out.path = out.comm->path();
  }
  if (out.comm != nullptr && out.comm->size() < 2) out.comm = nullptr;
  return out;
}

/// Where a slow group could do only with less than the size wanted, its rate is that of what it did, and the
/// duration what the size would take at that rate.
void append(RankRow& row, const allreduce::CollectiveSeries& series, const Collective& collective,
            const allreduce::Spec& spec, const CaseCommunicator& scope, int draw, const Context& context) {
  const double factor = allreduce::bus_factor(spec.operation, scope.comm->size());
  const double wanted =
      static_cast<double>(allreduce::counted_bytes(spec.operation, spec.bytes, scope.comm->size()));
  const auto counted = static_cast<double>(collective.counted_bytes());
  const auto k = static_cast<double>(series.samples.repetitions);
  for (std::size_t i = 0; i < series.samples.seconds.size(); ++i) {
    const double rate = counted * k / series.samples.seconds[i];
    row.t.push_back(context.since_start(series.samples.start_s[i]));
    row.block.push_back(draw >= 0 ? draw : series.samples.block[i]);
    // Unique over the draws: a rank left out of a draw has its samples elsewhere in the row.
    row.group.push_back(1e6 * draw + scope.group);
    row.duration.push_back(wanted / rate);
    row.algbw.push_back(rate);
    row.busbw.push_back(rate * factor);
    row.repetitions.push_back(k);
    row.bytes.push_back(counted);
  }
  row.arrival.insert(row.arrival.end(), series.arrival_s.begin(), series.arrival_s.end());
}

/// A group may take longer than others by noise and do with fewer repetitions: all take what the least of
/// them can, so that their results can be compared. One that is slower by far goes by itself.
std::uint64_t common_repetitions(std::uint64_t mine, Communicator& world) {
  constexpr std::uint64_t ordinary = 5;
  const double least =
      world.min(mine >= ordinary ? static_cast<double>(mine) : std::numeric_limits<double>::infinity());
  return mine >= ordinary ? static_cast<std::uint64_t>(least) : mine;
}

/// Memory of the slots of a case. Where NCCL does not register what the case asks for, in any group, the case
/// is skipped and this false.
bool slot_memory(const allreduce::Spec& spec, std::size_t slots, Communicator* comm, Context& context,
                 std::unique_ptr<RegisteredMemory>& registered, std::span<std::byte>& memory) {
  memory = context.device.arena();
  const bool symmetric = spec.variant == allreduce::Variant::symmetric;
  if (!symmetric && spec.variant != allreduce::Variant::registered) return true;
  std::string why;
  if (comm != nullptr)
    registered = comm->device_collectives()->allocate(
        slots * allreduce::slot_bytes(spec.operation, spec.bytes, comm->size()),
        symmetric ? Registration::window : Registration::buffer, why);
  if (registered) memory = registered->bytes();
  if (context.world.max(why.empty() ? 0.0 : 1.0) == 0) return true;
  context.record.set_state(results::CaseState::skip,
                           why.empty() ? "NCCL does not register the buffers of other groups" : why);
  return false;
}

/// One draw (or the only series). Every rank calls it, also those that take no part: they wait without using
/// their core.
void run_series(const Case& c, const allreduce::Spec& spec, std::optional<Division> division, int draw,
                int draws, double seconds, RankRow& row, Context& context) {
  const CaseCommunicator scope = communicator(spec.scope, division, c, context, draw);
  if (!scope.path.empty()) context.record.parameter("path", scope.path);
  const double begin = now_s();
  // What is decided by it must come out alike on all ranks.
  const double time_s = context.world.min(std::max(0.0, std::min(seconds, context.end_s - begin)));
  SamplingPlan plan = context.sampling(time_s);
  // Retests take them from few ranks.
  plan.max_samples = context.retest != nullptr
                         ? allreduce::series_samples(spec.isolated, 1, 1)
                         : allreduce::series_samples(spec.isolated, draws, context.topology.ranks.size());
  const auto slots = c.parameters.at("slots").get<std::size_t>();
  std::unique_ptr<RegisteredMemory> registered;
  std::span<std::byte> memory;
  if (!slot_memory(spec, slots, scope.comm, context, registered, memory)) return;
  const workload::CollectiveMode mode{spec.variant == allreduce::Variant::in_place,
                                      spec.variant == allreduce::Variant::graph};
  // Each has values of its own: what an earlier one left in the slots is wrong for the next.
  std::uint64_t made = 0;
  const auto make = [&](std::size_t bytes) {
    const std::uint64_t number = (static_cast<std::uint64_t>(draw) << 32) + ++made;
    auto collective =
        std::make_unique<Collective>(*scope.comm, spec.operation, bytes, memory, slots,
                                     mix64(context.random.key(), number), &context.device, mode);
    if (context.injector != nullptr)
      collective->set_injection_point([&context](std::span<float> result) {
        context.injection_point("allreduce", result.data(), result.size(), sizeof(float));
      });
    return collective;
  };
  allreduce::Probe probe;
  if (scope.comm != nullptr) {
    probe = allreduce::probe(*scope.comm, spec.bytes, plan.max_seconds / 5, make);
    report_wrong(probe.wrong, context);
  }
  context.world.quiet_barrier();
  plan.max_seconds = std::max(0.0, plan.max_seconds - (now_s() - begin));
  std::uint64_t repetitions =
      spec.isolated ? 1 : allreduce::affordable_repetitions(probe.seconds, plan.max_seconds);
  if (scope.comm != nullptr)
    repetitions = static_cast<std::uint64_t>(scope.comm->min(static_cast<double>(repetitions)));
  if (mode.in_place) repetitions = std::min<std::uint64_t>(repetitions, slots);
  plan.repetitions = common_repetitions(repetitions, context.world);
  if (scope.comm != nullptr) {
    const auto collective = make(probe.bytes);
    const auto series = allreduce::measure(*scope.comm, *collective, plan, spec.isolated, context.clock());
    append(row, series, *collective, spec, scope, division ? draw : -1, context);
    report_wrong(collective->wrong(), context);
    context.record.add_time(series.samples.warmup_s, series.samples.timed_s, series.samples.verify_s);
    if (spec.isolated && context.world.rank() == 0)
      context.record.parameter("clock_error_s", series.clock_error_s);
  }
  context.world.quiet_barrier();
}

void run_collective(const Case& c, Context& context) {
  const allreduce::Spec spec = allreduce::spec_of(c);
  const auto division = division_of(c, spec.scope);
  // Halves and quarters of a retest are other communicators than the case's.
  const GpuBound bound = division ? GpuBound() : allreduce::bound_of(spec, context.topology);
  declare_metrics(c.operation, spec, division.has_value(), bound, context.record);
  const int draws = division ? allreduce::draws_of(*division, context.config.level, context.topology) : 1;
  RankRow row;
  for (int draw = 0; draw < draws; ++draw)
    run_series(c, spec, division, draw, draws, c.seconds / draws, row, context);
  report(std::move(row), spec, division.has_value(), bound, context);
}

/// Corrupts one element of a checked result on purpose; the check must find it, at its place, once.
void run_selftest(const Case& c, Context& context) {
  const double begin = now_s();
  Collective collective(context.world, allreduce::Op::all_reduce, c.parameters.at("bytes"),
                        context.device.arena(), 1, context.random.key(), &context.device);
  collective.prepare(1);
  collective.run(1);
  collective.verify();
  report_wrong(collective.wrong(), context);  // a true fault, not the one made here
  const auto before = collective.check(0);

  const auto result = collective.result(0);
  const RandomStream stream = context.random.child("corrupt").child(std::to_string(context.world.rank()));
  const std::size_t position = stream.below(0, result.size());
  flip_bit(context.device, result.data(), position, sizeof(float),
           static_cast<unsigned>(stream.below(1, 32)));
  const auto after = collective.check(0);

  results::SelftestRow row;
  row.checker = "allreduce";
  row.injected = 1;
  row.caught = after.count > before.count ? 1 : 0;
  row.located = row.caught != 0 && after.first_index == position ? 1 : 0;
  row.counted = after.count == before.count + 1 ? 1 : 0;
  row.entity = context.device_entity;
  context.record.selftest(row);
  if (before.count == 0 && (row.caught == 0 || row.located == 0 || row.counted == 0))
    context.record.set_state(results::CaseState::error, "the all-reduce check missed an injected error");
  context.record.declare(allreduce::metrics().of("selftest", "detected"));
  auto& reported = context.record.add_row(context.device_entity);
  reported.t = {context.since_start(begin)};
  reported.block = {0};
  reported.values["detected"] = {static_cast<double>(after.count - before.count)};
  context.record.add_time(0, 0, now_s() - begin);
}

}  // namespace

std::vector<OptionSpec> AllreduceSuite::options() const {
  std::vector<OptionSpec> specs(5);
  specs[0] = {"allreduce.sizes", OptionKind::list, "", "sizes of the vector (default by level)", {}, "SIZES"};
  specs[1] = {"allreduce.ops",
              OptionKind::choices,
              "allreduce",
              "collectives to measure",
              {"allreduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast"},
              "OPS"};
  specs[2] = {"allreduce.scopes",
              OptionKind::choices,
              "node,leader,groups,rails,world",
              "groups of ranks: all of a node, one per node, random groups of 4 nodes, those by local rank, "
              "all ranks",
              {"node", "leader", "groups", "rails", "world"},
              "SCOPES"};
  specs[3] = {"allreduce.transport",
              OptionKind::choices,
              "",
              "transports; default nccl on GPUs and mpi on hosts",
              {"mpi", "nccl"},
              "NAMES"};
  specs[4] = {
      "allreduce.variants",
      OptionKind::choices,
      "plain",
      "buffers and start of the operations: input and output apart, in place, registered with NCCL by each "
      "rank, in a symmetric window of NCCL, or operations started as a CUDA graph",
      {"plain", "in-place", "registered", "symmetric", "graph"},
      "NAMES"};
  return specs;
}

std::vector<results::MetricSpec> AllreduceSuite::metrics() const { return allreduce::metrics().all(); }

std::vector<Case> AllreduceSuite::plan(const PlanInput& input) const { return allreduce::plan_cases(input); }

void AllreduceSuite::run(const Case& c, Context& context) {
  if (c.operation == "selftest")
    run_selftest(c, context);
  else
    run_collective(c, context);
}

}  // namespace assay
