// SPDX-License-Identifier: Apache-2.0
#include "suites/allreduce/allreduce_suite.hpp"

#include <algorithm>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "device/corrupt.hpp"
#include "suites/allreduce/allreduce_plan.hpp"
#include "suites/allreduce/groups.hpp"
#include "suites/allreduce/series.hpp"
#include "transport/gpu_links.hpp"

namespace assay {
namespace {

using allreduce::Collective;
using allreduce::Division;
using allreduce::Scope;
using results::Better;
using results::Role;

void declare_metrics(bool isolated, bool groups, CaseRecord& record) {
  record.declare({"duration", "s", Better::lower, true, Role::metric, true});
  if (isolated) {
    record.declare({"arrival_skew", "s", Better::lower, true, Role::covariate, true});
  } else {
    record.declare({"busbw", "B/s", Better::higher, true, Role::metric, true});
    record.declare({"algbw", "B/s", Better::higher, true, Role::covariate, true});
  }
  // Who was slow together tells who it was.
  if (groups) record.declare({"group", "count", Better::none, false, Role::covariate, true});
}

/// What a rank has measured so far; several draws of groups join in one row.
struct RankRow {
  std::vector<double> t, duration, busbw, algbw, arrival, group;
  std::vector<std::int32_t> block;
};

void append(RankRow& row, const allreduce::CollectiveSeries& series, const Collective& collective,
            double factor, int draw, int group, const Context& context) {
  const auto k = static_cast<double>(series.samples.repetitions);
  for (std::size_t i = 0; i < series.samples.seconds.size(); ++i) {
    const double seconds = series.samples.seconds[i] / k;
    const double rate = static_cast<double>(collective.counted_bytes()) / seconds;
    row.t.push_back(context.since_start(series.samples.start_s[i]));
    row.block.push_back(draw >= 0 ? draw : series.samples.block[i]);
    // Unique over the draws: who is left out of a draw has its samples elsewhere in the row.
    row.group.push_back(1e6 * draw + group);
    row.duration.push_back(seconds);
    row.algbw.push_back(rate);
    row.busbw.push_back(rate * factor);
  }
  row.arrival.insert(row.arrival.end(), series.arrival_s.begin(), series.arrival_s.end());
}

void report(RankRow row, bool isolated, bool groups, Context& context) {
  if (row.t.empty()) return;
  auto& out = context.record.add_row(context.device_entity);
  out.t = std::move(row.t);
  out.block = std::move(row.block);
  if (groups) out.values["group"] = std::move(row.group);
  out.values["duration"] = std::move(row.duration);
  if (isolated) {
    out.values["arrival_skew"] = std::move(row.arrival);
  } else {
    out.values["busbw"] = std::move(row.busbw);
    out.values["algbw"] = std::move(row.algbw);
  }
}

void report_wrong(const std::vector<allreduce::WrongElements>& wrong, Context& context) {
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
  if (c.confirm && c.confirm->variant == "halves") return Division::halves;
  if (scope == Scope::rails) return Division::rails;
  return scope == Scope::groups ? std::optional(Division::groups) : std::nullopt;
}

/// Communicator of a case: borrowed from the context or split for one draw; null where this rank takes no part.
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
  const auto which = leaders ? GpuLinks::Scope::leaders : node ? GpuLinks::Scope::node : GpuLinks::Scope::world;
  return &context.gpu_links->nccl(which, context.deadline_s);
}

CaseCommunicator communicator(Scope scope, std::optional<Division> division, const Case& c, Context& context, int draw) {
  CaseCommunicator out;
  const std::string transport = c.parameters.at("transport");
  if (division) {
    const auto groups = allreduce::groups_of(*division, context.topology, allreduce::group_stream(context.config.seed, c.name), draw);
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

/// One draw (or the only series). Every rank calls it, also those that take no part: they wait without using
/// their core.
void run_series(const Case& c, const allreduce::Spec& spec, std::optional<Division> division, int draw, double seconds, RankRow& row,
                Context& context) {
  const CaseCommunicator scope = communicator(spec.scope, division, c, context, draw);
  if (!scope.path.empty()) context.record.parameter("path", scope.path);
  std::unique_ptr<Collective> collective;
  const double begin = now_s();
  double operation_s = 0;
  if (scope.comm != nullptr) {
    collective =
        std::make_unique<Collective>(*scope.comm, spec.operation, spec.bytes, context.device.arena(),
                                     c.parameters.at("slots").get<std::size_t>(), context.random.key(), &context.device);
    if (context.injector != nullptr)
      collective->offer_to([&context](std::span<float> result) {
        context.offer("allreduce", result.data(), result.size(), sizeof(float));
      });
    operation_s = allreduce::probe(*scope.comm, *collective);
  }
  // One k for all communicators of the case, so that their results can be compared.
  context.world.quiet_barrier();
  operation_s = context.world.max(operation_s);
  SamplingPlan plan = context.sampling(std::min(seconds, context.deadline_s - begin));
  plan.max_seconds = std::max(0.0, plan.max_seconds - (now_s() - begin));
  plan.repetitions = spec.isolated ? 1 : allreduce::affordable_repetitions(operation_s, plan.max_seconds);
  plan.repetitions = static_cast<std::uint64_t>(context.world.min(static_cast<double>(plan.repetitions)));
  plan.max_samples = spec.isolated ? 500 : 100;
  context.record.parameter("repetitions", plan.repetitions);
  if (scope.comm != nullptr) {
    const auto series = allreduce::measure(*scope.comm, *collective, plan, spec.isolated, context.clock());
    const double factor = allreduce::bus_factor(spec.operation, scope.comm->size());
    append(row, series, *collective, factor, division ? draw : -1, scope.group, context);
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
  declare_metrics(spec.isolated, division.has_value(), context.record);
  const int draws = division ? allreduce::draws_of(*division, context.config.level, context.topology) : 1;
  RankRow row;
  for (int draw = 0; draw < draws; ++draw) run_series(c, spec, division, draw, c.seconds / draws, row, context);
  report(std::move(row), spec.isolated, division.has_value(), context);
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
    context.record.set_state(results::CaseState::error,
                             "the all-reduce check missed an element corrupted on purpose");
  context.record.declare({"detected", "count", Better::none, true, Role::covariate, true});
  auto& reported = context.record.add_row(context.device_entity);
  reported.t = {context.since_start(begin)};
  reported.block = {0};
  reported.values["detected"] = {static_cast<double>(after.count - before.count)};
  context.record.add_time(0, 0, now_s() - begin);
}

}  // namespace

std::vector<OptionSpec> AllreduceSuite::options() const {
  std::vector<OptionSpec> specs(4);
  specs[0] = {"allreduce.sizes", OptionKind::list, "", "sizes of the vector (default by level)", {}, "SIZES"};
  specs[1] = {"allreduce.ops",
              OptionKind::choices,
              "allreduce",
              "which collectives",
              {"allreduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast"},
              "OPS"};
  specs[2] = {"allreduce.scopes",
              OptionKind::choices,
              "node,leader,groups,rails,world",
              "among whom: the ranks of a node, one rank per node, random groups of 4 nodes, of those each local rank by itself, all",
              {"node", "leader", "groups", "rails", "world"},
              "SCOPES"};
  specs[3] = {"allreduce.transport", OptionKind::choices, "", "what carries them; nccl on GPUs and mpi on hosts if not given", {"mpi", "nccl"}, "NAMES"};
  return specs;
}

std::vector<MetricInfo> AllreduceSuite::metrics() const {
  return {
      {"allreduce", "busbw", "B/s", "higher", "algbw x 2(n-1)/n: comparable between rank counts"},
      {"allreduce", "algbw", "B/s", "higher", "size over time"},
      {"allreduce", "duration", "s", "lower", "one operation, as this rank saw it"},
      {"allreduce-isolated", "arrival_skew", "s", "lower", "how much later than the first this rank entered"},
      {"selftest-allreduce", "detected", "count", "none",
       "corrupted elements found by the check (one was corrupted)"}};
}

std::vector<Case> AllreduceSuite::plan(const PlanInput& input) const { return allreduce::plan_cases(input); }

void AllreduceSuite::run(const Case& c, Context& context) {
  if (c.parameters.contains("checker"))
    run_selftest(c, context);
  else
    run_collective(c, context);
}

}  // namespace assay
