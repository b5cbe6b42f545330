// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/p2p_suite.hpp"

#include <algorithm>
#include <set>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "kernels/chase.hpp"
#include "suite/gpu_bound.hpp"
#include "suites/p2p/carrier.hpp"
#include "suites/p2p/p2p_metrics.hpp"
#include "suites/p2p/p2p_plan.hpp"
#include "suites/p2p/star.hpp"
#include "workload/pair_selftest.hpp"
#include "workload/payload_error.hpp"

namespace assay {
namespace {

using p2p::Mode;

const char* metric_of(Mode mode) {
  return mode == Mode::latency || mode == Mode::chase ? "latency"
         : mode == Mode::rate                         ? "message_rate"
                                                      : "bandwidth";
}

/// `repeated`: a link may be in several rounds, then each sample says in which it was taken.
void declare_metric(const p2p::Spec& spec, bool repeated, const GpuBound& bound, CaseRecord& record) {
  const char* operation = p2p::to_string(spec.mode);
  auto& metric = record.declare(p2p::metrics().of(operation, metric_of(spec.mode)));
  // What a NIC sends to itself never leaves it.
  if (spec.scope == p2p::Scope::loopback) metric.judging->floor = results::Floor::none;
  if (*bound.by != 0) {
    if (spec.bytes >= p2p::judged_bytes) metric.judging->floor = results::Floor::gpu_bound;
    declare_bound(p2p::metrics().of(operation, "bound_share"), bound, record);
  }
  for (const char* name : {"round", "repetitions", "message_bytes"})
    record.declare(p2p::metrics().of(operation, name)).per_sample = repeated;
  record.declare(p2p::metrics().of(operation, "payload"));
}

/// What a link of this case ends at on a rank's side: its device, or the NIC that is measured by itself.
int end_of(const p2p::Spec& spec, int rank, const Topology& topology, const EntityTable& entities) {
  if (spec.nic.empty()) return entities.device_of_rank(rank);
  const int node = topology.ranks[static_cast<std::size_t>(rank)].node;
  return entities.nic(node, spec.nic_of(node));
}

/// A NIC measured with itself has a row of its own; what is between two ends is a link.
CaseRecord::Row& row_of(const p2p::Spec& spec, int peer, Context& context) {
  const int source = end_of(spec, context.world.rank(), context.topology, context.entities);
  if (spec.scope == p2p::Scope::loopback)
    return context.record.rows_.empty() ? context.record.add_row(source) : context.record.rows_.front();
  const int destination = end_of(spec, peer, context.topology, context.entities);
  for (auto& row : context.record.rows_)
    if (row.source == source && row.destination == destination) return row;
  return context.record.add_link(source, destination);
}

/// What a batch of `seconds` says.
double value_of(Mode mode, const Portion& batch, double seconds) {
  const auto k = static_cast<double>(batch.repetitions);
  if (mode == Mode::latency) return seconds / (2 * k);
  if (mode == Mode::chase)
    return seconds / (k * static_cast<double>(batch.bytes / kernels::chase_node_bytes));
  return mode == Mode::rate ? k / seconds : k * static_cast<double>(batch.bytes) / seconds;
}

void report_series(const p2p::Spec& spec, const p2p::Shape& shape, const p2p::Series& series, int peer,
                   std::size_t round, Context& context) {
  if (series.batch_s.empty()) return;
  // Both directions of a loopback are the same NIC's: one of them stands for it.
  if (spec.scope == p2p::Scope::loopback && context.world.rank() > peer) return;
  auto& row = row_of(spec, peer, context);
  auto& values = row.values[metric_of(shape.mode)];
  for (const double seconds : series.batch_s) values.push_back(value_of(shape.mode, series.batch, seconds));
  if (const GpuBound bound = p2p::bound_of(spec, context.topology); *bound.by != 0) {
    const GpuBound link = pair_bound(context.topology, p2p::use_of(spec), context.world.rank(), peer);
    add_bound_share(row, metric_of(shape.mode), part_bound(bound, link));
  }
  // A link that is measured again may be in several rounds.
  const auto note = [&](const char* name, double value) {
    row.values[name].resize(context.retest != nullptr ? values.size() : 1, value);
  };
  note("round", static_cast<double>(round));
  note("repetitions", static_cast<double>(series.batch.repetitions));
  note("message_bytes", static_cast<double>(series.batch.bytes));
  auto& payload = row.values["payload"];
  payload.resize(1, 0.0);
  payload.front() += series.payload;
  for (const double start : series.start_s) row.t.push_back(context.since_start(start));
  row.block.insert(row.block.end(), series.block.begin(), series.block.end());
}

/// What of a path is not on the NICs of a case: "tcp/eth1" of "tcp/eth0+tcp/eth1" for eth0. Nothing where the
/// transport does not tell.
std::string beside(const p2p::Spec& spec, const std::string& path) {
  if (spec.nic.empty() || path.find("requested:") != std::string::npos) return {};
  for (const std::string& part : p2p::parts_of(path, ",+"))
    if (!part.ends_with("/" + spec.nic) && (spec.far.empty() || !part.ends_with("/" + spec.far))) return part;
  return {};
}

/// A case that was ended keeps its samples, and is valid if every rank has met two partners of the `planned`
/// first rounds, or all of these: enough to tell an end from a link.
void tell_cut_short(p2p::Scope scope, const p2p::Schedule& schedule, std::size_t planned, std::size_t done,
                    Context& context) {
  static constexpr int enough = 2;
  std::map<int, std::pair<int, int>> met;  // done and planned, by rank
  for (std::size_t round = 0; round < planned; ++round)
    for (const p2p::Pair& pair : schedule[round])
      for (const int rank : {pair.a, pair.b}) {
        met[rank].first += round < done ? 1 : 0;
        ++met[rank].second;
      }
  const bool stands = std::all_of(met.begin(), met.end(), [](const auto& m) {
    return m.second.first >= std::min(int{enough}, m.second.second);
  });
  const std::string text = "cut short: " + std::to_string(done) + " of " + std::to_string(schedule.size()) +
                           " rounds in the time there was";
  if (!stands)
    context.record.set_state(results::CaseState::incomplete, text);
  else if (scope == p2p::Scope::node ? context.topology.me().local_rank == 0 : context.world.rank() == 0)
    context.record.event("cut-short", text);  // each node ends its rounds by itself
}

/// Rounds of pairs that all ranks go through together.
class Rounds {
 public:
  using Take = std::function<void(std::size_t round, int peer, const p2p::Series&)>;
  Rounds(const p2p::Spec& spec, const p2p::Carrier& carrier, p2p::Exchange& exchange, Communicator& comm,
         Context& context)
      : spec_(spec),
        on_device_(carrier.payload_buffer().on_device()),
        exchange_(exchange),
        comm_(comm),
        context_(context) {}

  /// How many of `count` rounds were begun before `end_s`. `partner`: whom this rank meets in a round, or -1.
  std::size_t run(std::size_t count, double end_s, const p2p::Limits& limits,
                  const std::function<int(std::size_t)>& partner, const Take& take) {
    std::size_t done = 0;
    for (; done < count; ++done) {
      // A rank without a partner waits here without using the core; the vote keeps a late round from being
      // begun by half of them.
      comm_.quiet_barrier();
      if (comm_.max(now_s() > end_s ? 1.0 : 0.0) > 0) break;
      if (const int peer = partner(done); peer >= 0) meet(done, peer, limits, take);
    }
    comm_.quiet_barrier();
    return done;
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void meet(std::size_t round, int peer, const p2p::Limits& limits, const Take& take) {
    try {
      take(round, peer, exchange_.run(peer, context_.world.rank() < peer, limits));
    } catch (...) {
      // Without this rank the others would wait here, and its next partners for it.
      if (!on_device_) throw;
      failure_ = std::current_exception();
    }
    if (exchange_.peer_end() == p2p::Exchange::End::device_failed)
      context_.record.event("pair-not-measured", "the device at the other end failed",
                            end_of(spec_, peer, context_.topology, context_.entities));
  }

  const p2p::Spec& spec_;
  bool on_device_;
  p2p::Exchange& exchange_;
  Communicator& comm_;
  Context& context_;
  std::exception_ptr failure_;
};

/// Each tells those that it met how fast it reached them, so that all know how fast they are reached.
void tell_rates(std::vector<p2p::Met>& met, Communicator& world) {
  constexpr int tag = 1;
  std::vector<Request> requests(2 * met.size());
  for (std::size_t i = 0; i < met.size(); ++i) {
    world.irecv(&met[i].back, sizeof met[i].back, met[i].peer, tag, requests[2 * i]);
    world.isend(&met[i].to, sizeof met[i].to, met[i].peer, tag, requests[2 * i + 1]);
  }
  world.wait_all(requests);
}

/// Rounds of the pairs that seem slow when those exchange a few messages that the schedule leaves out.
/// `seconds`: planned for it; it goes on while `end_s` is not reached.
p2p::Schedule sweep(const p2p::Sweep& all, double seconds, double end_s, Rounds& rounds, Context& context) {
  p2p::Limits limits;
  limits.samples = p2p::sweep_samples;
  limits.blocks = 1;
  limits.repetitions = p2p::sweep_messages;
  limits.seconds = seconds / static_cast<double>(std::max<std::size_t>(1, all.rounds()));
  limits.deadline_s = context.end_s;
  const int me = context.world.rank();
  std::vector<p2p::Met> met;  // also those with whom the exchange failed: the other end tells its rate, too
  const std::size_t done = rounds.run(
      all.rounds(), end_s, limits,
      [&](std::size_t i) {
        const int peer = all.partner_of(i, me);
        if (peer >= 0) met.push_back({peer});
        return peer;
      },
      [&](std::size_t, int, const p2p::Series& series) {
        if (series.batch_s.empty()) return;
        const double best = *std::min_element(series.batch_s.begin(), series.batch_s.end());
        met.back().to = value_of(Mode::uni, series.batch, best);
      });
  tell_rates(met, context.world);
  std::vector<p2p::Usual> of_ranks(static_cast<std::size_t>(context.world.size()));
  const p2p::Usual mine = p2p::usual_rate(met);
  context.world.all_gather(&mine, of_ranks.data(), sizeof mine);
  const std::vector<p2p::Usual> usual = p2p::usual_rates(of_ranks);
  std::vector<p2p::Suspect> suspects;
  for (const auto& text : context.world.gather_text(p2p::text_of(p2p::suspects_of(me, met, usual)), 0))
    for (const p2p::Suspect& one : p2p::suspects_from(text)) suspects.push_back(one);
  p2p::Schedule found = p2p::schedule_from(
      context.world.broadcast_text(p2p::text_of(p2p::rounds_of(std::move(suspects), context.topology)), 0));
  context.record.parameter("swept_rounds", done);
  context.record.parameter("swept_pairs_measured", p2p::pair_count(found));
  if (done < all.rounds() && me == 0)
    context.record.event("cut-short", "sweep of pairs: " + std::to_string(done) + " of " +
                                          std::to_string(all.rounds()) + " rounds in the time there was");
  p2p::fill(found, all, context.topology);
  return found;
}

void run_pairs(const Case& c, Context& context) {
  const p2p::Spec spec = p2p::spec_of(c);
  const p2p::Shape shape = p2p::shape_of(c);
  const p2p::Timing timing = p2p::make_timing(spec, shape, context.config, context.topology);
  const auto stream = p2p::schedule_stream(context.config.seed, c.name, spec, context.topology);
  auto schedule = context.retest != nullptr && !context.retest->rounds.empty()
                      ? p2p::retest_schedule(spec, *context.retest, context.topology, context.entities)
                      : p2p::schedule_of(spec, context.topology, stream, timing);
  Communicator& comm = spec.scope == p2p::Scope::cross ? context.world : context.node;
  declare_metric(spec, context.retest != nullptr, p2p::bound_of(spec, context.topology), context.record);
  const p2p::Carrier carrier(spec, shape, schedule, comm, context);
  if (spec.mode == Mode::chase && carrier.remote() == nullptr)
    return context.record.set_state(results::CaseState::skip, "no access between the GPUs of a node");

  p2p::Exchange exchange(carrier.comm(), carrier.payload_buffer(), context.random.key(), shape,
                         context.sampling(c.seconds).fault, carrier.remote());
  Rounds rounds(spec, carrier, exchange, comm, context);
  double seconds = c.seconds;
  const std::size_t planned = schedule.size();
  if (timing.swept > 0 && context.retest == nullptr) {
    const double sweep_s = timing.sweep_s * std::min(1.0, c.seconds / timing.min_seconds);
    seconds -= sweep_s;
    // Slow pairs may take half of what the plan leaves.
    const double now = now_s();
    const double end_s = now + sweep_s + std::max(0.0, (context.end_s - now - c.seconds) / 2);
    const p2p::Sweep pairs(context.topology, stream, schedule.size(), timing.swept);
    for (p2p::Round& round : sweep(pairs, sweep_s, end_s, rounds, context))
      schedule.push_back(std::move(round));
  }
  p2p::Limits limits;
  limits.samples = context.retest != nullptr ? timing.retest_samples : timing.samples;
  limits.seconds = seconds / static_cast<double>(std::max<std::size_t>(1, schedule.size()));
  limits.deadline_s = context.end_s;
  const int me = context.world.rank();
  const std::size_t done = rounds.run(
      schedule.size(), context.end_s, limits,
      [&](std::size_t round) { return p2p::partner_of(schedule[round], me); },
      [&](std::size_t round, int peer, const p2p::Series& series) {
        report_series(spec, shape, series, peer, round, context);
      });
  const std::string path = carrier.path();
  // A rank without a pair, as one alone on its node, knows none.
  if (!path.empty()) context.record.parameter("path", path);
  if (const std::string astray = beside(spec, path); !astray.empty())
    context.record.set_state(results::CaseState::error,
                             "messages that " + spec.nic + " alone should carry took " + astray);
  p2p::report_wrong(exchange.wrong(), context);
  const p2p::Times& times = exchange.times();
  context.record.add_time(times.warmup_s, times.timed_s, times.verify_s);
  if (done < schedule.size()) tell_cut_short(spec.scope, schedule, planned, done, context);
  rounds.rethrow();
}

}  // namespace

std::vector<OptionSpec> P2pSuite::options() const {
  std::vector<OptionSpec> specs(9);
  specs[0] = {"p2p.sizes", OptionKind::list, "", "message sizes of the bandwidth cases (default by level)",
              {},          "SIZES"};
  specs[1] = {
      "p2p.modes",
      OptionKind::choices,
      "latency,rate,uni,bi,put,get,put-bi,get-bi,chase,one-to-all,all-to-one",
      "what to measure (put and get: one-sided, over UCX and between GPUs; put-bi, get-bi: both GPUs "
      "at once; chase: dependent loads of the other GPU's memory)",
      {"latency", "rate", "uni", "bi", "put", "get", "put-bi", "get-bi", "chase", "one-to-all", "all-to-one"},
      "MODES"};
  specs[2] = {"p2p.scopes",
              OptionKind::choices,
              "node,cross,loopback",
              "pairs inside nodes, across nodes, each NIC with itself",
              {"node", "cross", "loopback"},
              "SCOPES"};
  specs[3] = {"p2p.rounds",
              OptionKind::integer,
              "0",
              "rounds of disjoint pairs per case (0: by level); above 64 nodes at most those in which all "
              "pairs of nodes meet once",
              {},
              "N"};
  specs[4] = {"p2p.transport",
              OptionKind::choices,
              "",
              "transports; default mpi, from standard up also ucx if built in; on GPUs nccl, from quick up "
              "cuda (copies between peers), from standard up cuda-sm (by a kernel) and mpi",
              {"mpi", "ucx", "nccl", "cuda", "cuda-sm"},
              "NAMES"};
  specs[5] = {"p2p.nics", OptionKind::list,
              "",         "NICs to measure one by one, over UCX: names, all or none (all from standard up)",
              {},         "NICS"};
  specs[6] = {"p2p.cross-rails",
              OptionKind::flag,
              "",
              "also measure each NIC with the next one of other nodes; needs a network that joins the rails",
              {},
              ""};
  specs[7] = {"p2p.gpu-direct",
              OptionKind::choice,
              "auto",
              "GPU memory in MPI calls; auto: if MPI reports support and a test passes; on: if a test passes",
              {"auto", "on", "off"},
              "WHEN"};
  specs[8] = {
      "p2p.links",
      OptionKind::integer,
      "",
      "most links of a case across nodes. Case of all pairs of nodes (from standard up; above 64 nodes, or "
      "if this is given): default 200000, and of the other pairs suspects are measured. Other cases (above "
      "64 nodes): default 400000 (extended: 1000000)",
      {},
      "N"};
  return specs;
}

std::vector<results::MetricSpec> P2pSuite::metrics() const { return p2p::metrics().all(); }

std::vector<Case> P2pSuite::plan(const PlanInput& input) const { return p2p::plan_cases(input); }

std::vector<Pairing> P2pSuite::pairings(const Case& c, const PlanInput& input,
                                        const EntityTable& entities) const {
  std::vector<Pairing> all;
  if (c.operation == p2p::selftest_operation || p2p::is_star(c)) return all;
  const p2p::Spec spec = p2p::spec_of(c);
  const p2p::Timing timing = p2p::make_timing(spec, p2p::shape_of(c), input.config, input.topology);
  const auto schedule = p2p::schedule_of(
      spec, input.topology, p2p::schedule_stream(input.seed, c.name, spec, input.topology), timing);
  for (std::size_t round = 0; round < schedule.size(); ++round)
    for (const p2p::Pair& pair : schedule[round])
      all.push_back({round + 1, end_of(spec, pair.a, input.topology, entities),
                     end_of(spec, pair.b, input.topology, entities)});
  return all;
}

void P2pSuite::run(const Case& c, Context& context) {
  if (c.operation == p2p::selftest_operation)
    p2p::run_pair_selftest(c, context);
  else if (p2p::is_star(c))
    p2p::run_star(c, context);
  else
    run_pairs(c, context);
}

}  // namespace assay
