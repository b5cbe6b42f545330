// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/p2p_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/units.hpp"
#include "run/retest.hpp"
#include "suites/p2p/choice.hpp"
#include "suites/p2p/pair_counts.hpp"
#include "suites/p2p/star.hpp"
#include "topology/oversubscription.hpp"
#include "transport/ucx_communicator.hpp"
#include "workload/pair_selftest.hpp"

namespace assay::p2p {
namespace {

constexpr std::size_t arena_limit = 512 * mib;
constexpr std::size_t most_rate_messages = 64;  ///< on their way at once where messages are counted
/// What a pair fills, sends and checks per second on one core, low on purpose: it decides how many rounds are
/// planned.
constexpr double assumed_bytes_per_s = 2e9;
/// A batch of small messages with its handshake, and a barrier between rounds.
constexpr double assumed_round_s = 3e-3;

struct LevelNumbers {
  double round_latency_s, round_bandwidth_s;  ///< wanted per round
  double case_s;                              ///< hard cap of a case
  std::size_t latency_samples, bandwidth_samples, isolated_samples;
  std::size_t most_samples;  ///< of a link in a cluster of many
};

LevelNumbers numbers(Level level) {
  switch (level) {
    case Level::smoke: return {0.1, 0.15, 0.5, 20, 9, 50, 50};
    case Level::quick: return {0.4, 0.6, 3.0, 60, 21, 200, 60};
    case Level::standard: return {0.5, 1.0, 8.0, 99, 30, 500, 60};
    case Level::extended:
    case Level::soak: return {1.0, 2.0, 60.0, 200, 60, 1000, 1000};
  }
  return {};
}

constexpr std::size_t usual_rounds = sampled_rounds + sampled_near_rounds;

/// All that are wanted where a part has few links. Else rules judge it by all its links: it has at least as
/// many samples of a case as in the rounds of a cluster of more than 64 nodes. Fewer than 60 of a link would
/// leave out the rule for dips.
std::size_t samples_of_link(std::size_t wanted, std::size_t most, std::size_t rounds, bool sampled,
                            std::size_t nodes) {
  constexpr std::size_t least = 60;
  if (rounds > usual_rounds)
    return std::max(std::min(wanted, least), std::min(wanted, most) * usual_rounds / rounds);
  if (sampled) return std::min(wanted, most);
  return nodes > usual_rounds + 1 ? std::min(wanted, most * usual_rounds / rounds) : wanted;
}

/// What --p2p.rounds can ask for: all meetings of nodes, while their links are under a million.
std::size_t most_rounds(const Spec& spec, const Topology& topology, std::size_t usual) {
  constexpr std::size_t most_links = 1'000'000;
  const std::size_t nodes = topology.nodes.size(), ranks = topology.ranks.size();
  if (spec.scope != Scope::cross || !spec.nic.empty() || !spec.far.empty() || nodes <= max_full_nodes)
    return usual;
  return std::max(usual, std::min(nodes + nodes % 2 - 1, most_links / ranks));
}

bool moves_little(const Spec& spec) {
  return spec.mode == Mode::latency || spec.mode == Mode::rate || spec.mode == Mode::chase;
}

/// The draw of partners that a case across many nodes shares with others, so that they have the same links:
/// each takes memory and a row of /entities. Empty: the case draws for itself, or all nodes meet.
std::string draw_of(const Spec& spec, const Topology& topology) {
  if (spec.scope != Scope::cross || topology.nodes.size() <= max_full_nodes || spec.meetings) return "";
  return moves_little(spec) ? "small messages" : "large messages";
}

/// Names the links of a case.
std::string link_set_of(const Spec& spec, const Topology& topology) {
  return fmt::format("{} {} {} {}", to_string(spec.scope), spec.nic, spec.far,
                     spec.meetings ? "meetings" : draw_of(spec, topology));
}

constexpr double meetings_s = 20, most_sweep_s = 120;
constexpr std::size_t meeting_samples = 6;  ///< of a link: two in each block, one more than a rule asks for

/// A warm-up batch and some samples in each direction, and the handshakes.
double round_s(std::size_t samples, double batch_s) {
  return assumed_round_s + 2.0 * static_cast<double>(samples + 1) * batch_s;
}

/// All ranks of two nodes exchange, or, where those are too many links, one of each. Pairs of nodes that are
/// too many even so are swept. `slow`: ranks that share a core; `message_s`: of one message.
void plan_meetings(const Config& config, const Topology& topology, double slow, double least_round_s,
                   double message_s, Timing& timing) {
  const std::size_t nodes = topology.nodes.size(), all = nodes + nodes % 2 - 1;
  const auto most_links = static_cast<std::size_t>(
      config.options.has("p2p.links") ? config.options.integer("p2p.links") : default_meeting_links);
  const auto in_time = static_cast<std::size_t>(meetings_s / least_round_s);
  if (all * topology.ranks.size() > most_links) timing.lanes = Lanes::in_turn;
  const std::size_t links = timing.lanes == Lanes::all ? topology.ranks.size() : nodes;
  const std::size_t least = nodes > max_full_nodes ? usual_rounds : 1;
  timing.rounds = std::max(least, std::min({all, in_time, most_links / links}));
  timing.samples = meeting_samples;
  const double swept_round_s = slow * round_s(sweep_samples, static_cast<double>(sweep_messages) * message_s);
  timing.swept = std::min(all - timing.rounds, static_cast<std::size_t>(most_sweep_s / swept_round_s));
  timing.sweep_s = static_cast<double>(timing.swept) * swept_round_s;
}

}  // namespace

std::size_t Timing::shares() const {
  if (swept == 0) return rounds;
  const double round_s = (seconds - sweep_s) / static_cast<double>(rounds + suspect_rounds);
  return static_cast<std::size_t>(seconds / round_s);
}

std::string why_not(Scope scope, const std::string& transport, const Topology& topology) {
  if (!topology.measures_gpus()) {
    if (transport == "nccl") return "NCCL is for GPUs, and none is measured";
    if (copies_between_peers(transport)) return "copies between GPUs need some, and none is measured";
  }
  if (topology.size() == 1) return "one rank has no partner";
  if (scope != Scope::cross && topology.max_local_size() < 2) return "no node has two ranks";
  if (scope == Scope::cross && topology.nodes.size() < 2) return "one node has no other node to measure with";
  return "";
}

Schedule schedule_of(const Spec& spec, const Topology& topology, const RandomStream& random,
                     const Timing& timing) {
  return schedule_of(spec, topology, spec.nic.empty() ? std::vector<Rail>() : rails(topology), random,
                     timing);
}

Schedule schedule_of(const Spec& spec, const Topology& topology, const std::vector<Rail>& all,
                     const RandomStream& random, const Timing& timing) {
  if (spec.nic.empty())
    return make_schedule(spec.scope, topology, random, timing.rounds, timing.lanes, spec.meetings);
  const Rail rail = rail_of(spec, all);
  if (!spec.far.empty()) return across_schedule(rail, random, timing.rounds);
  return spec.scope == Scope::loopback ? loopback_schedule(rail) : rail_schedule(rail, random, timing.rounds);
}

double link_rate_of(const Spec& spec, const Topology& topology) {
  const bool linked = spec.scope == Scope::node && *bound_of(spec, topology).by != 0;
  return linked ? fastest_nvlinks(topology) : 0;
}

Shape make_shape(const Spec& spec, std::uint64_t memory_bytes, double link_rate) {
  Shape shape;
  shape.mode = spec.mode;
  shape.bytes = spec.bytes;
  shape.slots = 0;
  for (const std::size_t slots : {most_rate_messages, std::size_t{20}, std::size_t{10}, std::size_t{5},
                                  std::size_t{2}, std::size_t{1}}) {
    if (slots == most_rate_messages && spec.mode != Mode::rate) continue;
    Shape trial = shape;
    trial.slots = slots;
    if (trial.arena_bytes() > memory_bytes || (trial.arena_bytes() > arena_limit && slots > 1)) continue;
    shape.slots = slots;
    break;
  }
  // To start and end a batch takes a GPU some 50 us (an estimate): less than a hundredth of it.
  constexpr double batch_s = 5e-3;
  constexpr std::size_t most_bytes = 4096 * mib, most_messages = 128;
  const auto bytes = static_cast<double>(spec.bytes);
  const bool single = spec.isolated || spec.mode == Mode::chase;
  const double wanted = single ? 0
                               : std::min({std::ceil(batch_s * link_rate / bytes),
                                           std::floor(most_bytes / bytes), 1.0 * most_messages});
  for (auto slots = static_cast<std::size_t>(wanted); shape.slots > 0 && slots > shape.slots; --slots) {
    Shape longer = shape;
    longer.slots = slots;
    if (longer.arena_bytes() <= memory_bytes) shape = longer;
  }
  shape.repetitions = single ? std::min<std::size_t>(1, shape.slots) : shape.slots;
  return shape;
}

Timing make_timing(const Spec& spec, const Shape& shape, const Config& config, const Topology& topology) {
  return make_timing(spec, shape, config, topology, round_count(spec.scope, topology));
}

Timing make_timing(const Spec& spec, const Shape& shape, const Config& config, const Topology& topology,
                   std::size_t all_rounds) {
  const LevelNumbers level = numbers(config.level);
  const double slow = oversubscription(topology);
  const std::int64_t wanted_rounds =
      config.options.has("p2p.rounds") ? config.options.integer("p2p.rounds") : 0;
  const double batch_s = static_cast<double>(shape.bytes * shape.repetitions) /
                         std::max(assumed_bytes_per_s, link_rate_of(spec, topology) / 8);
  const double least_round_s = slow * round_s(2, batch_s);
  const double wanted_round_s =
      std::max(least_round_s, moves_little(spec) ? level.round_latency_s : level.round_bandwidth_s);

  Timing timing;
  timing.rounds = all_rounds;
  bool sampled = topology.nodes.size() > max_full_nodes;
  if (wanted_rounds > 0) {
    timing.rounds =
        std::min(most_rounds(spec, topology, all_rounds), static_cast<std::size_t>(wanted_rounds));
  } else {
    // Single messages show what a part drops now and then, which needs no more partners than these.
    if (spec.isolated && spec.scope == Scope::cross && timing.rounds > usual_rounds)
      timing.rounds = usual_rounds, sampled = true;
    timing.rounds = std::min(
        timing.rounds, static_cast<std::size_t>(std::max(1.0, std::floor(level.case_s / least_round_s))));
  }
  if (spec.meetings)
    plan_meetings(config, topology, slow, least_round_s, batch_s / static_cast<double>(shape.repetitions),
                  timing);
  const auto rounds = static_cast<double>(timing.rounds + (timing.swept > 0 ? suspect_rounds : 0));
  timing.min_seconds = rounds * least_round_s + timing.sweep_s;
  timing.seconds = std::max(
      timing.min_seconds,
      timing.sweep_s + std::min(spec.meetings ? meetings_s / 2 : level.case_s, rounds * wanted_round_s));
  timing.overhead_seconds = 0.02 + (rounds + static_cast<double>(timing.swept)) * 1e-3 * slow;
  timing.retest_samples = spec.isolated                ? level.isolated_samples
                          : spec.mode == Mode::latency ? level.latency_samples
                                                       : level.bandwidth_samples;
  if (!spec.meetings)
    timing.samples = samples_of_link(timing.retest_samples, level.most_samples, timing.rounds, sampled,
                                     topology.nodes.size());
  return timing;
}

RandomStream schedule_stream(std::uint64_t seed, const std::string& case_name, const Spec& spec,
                             const Topology& topology) {
  const std::string drawn = draw_of(spec, topology);
  return RandomStream(seed, "p2p/schedule").child(drawn.empty() ? case_name : drawn);
}

namespace {

/// Two nodes that use the same of two rails.
bool same_rail(const Topology& topology, const Pair& pair) {
  const auto far = [&](int rank) {
    return is_far(static_cast<std::size_t>(topology.ranks[static_cast<std::size_t>(rank)].node));
  };
  return far(pair.a) == far(pair.b);
}

}  // namespace

Schedule retest_schedule(const Spec& spec, const RetestOrder& retest, const Topology& topology,
                         const EntityTable& entities) {
  Schedule schedule;
  const std::vector<int> drivers = spec.nic.empty() ? std::vector<int>() : rail_of(spec, topology).ranks;
  const auto rank_of = [&](int row) {
    const int rank = rank_for(row, topology, entities);
    if (rank < 0 || drivers.empty()) return rank;
    return drivers[static_cast<std::size_t>(topology.ranks[static_cast<std::size_t>(rank)].node)];
  };
  for (const auto& links : retest.rounds) {
    Round round;
    std::set<int> busy;
    for (const auto& [source, destination] : links) {
      const Pair pair{rank_of(source), rank_of(destination)};
      if (pair.a < 0 || pair.b < 0 || pair.a == pair.b || (!spec.far.empty() && same_rail(topology, pair)) ||
          busy.contains(pair.a) || busy.contains(pair.b))
        continue;
      busy.insert({pair.a, pair.b});
      round.push_back(pair);
    }
    schedule.push_back(std::move(round));
  }
  return schedule;
}

namespace {

/// "latency of 8 B inside nodes, mpi".
std::string title_of(const Spec& spec) {
  const auto what = [&]() -> std::string {
    switch (spec.mode) {
      case Mode::latency: return "latency";
      case Mode::rate: return "message rate";
      case Mode::uni: return "bandwidth one way";
      case Mode::bi: return "bandwidth both ways";
      case Mode::put_bi: return "bandwidth by put, both ways";
      case Mode::get_bi: return "bandwidth by get, both ways";
      case Mode::chase: return "latency of dependent loads";
      default: return std::string("bandwidth by ") + to_string(spec.mode);
    }
  };
  const char* where = spec.scope == Scope::node    ? "inside nodes"
                      : spec.scope == Scope::cross ? "between nodes"
                                                   : "of every NIC";
  const std::string nics =
      (spec.nic.empty() ? "" : " " + spec.nic) + (spec.far.empty() ? "" : " to " + spec.far);
  return fmt::format("{}, {}, {}, {}{}{}", what(), format_bytes(spec.bytes), where, spec.transport, nics,
                     spec.isolated ? ", one by one" : "");
}

}  // namespace

LinkUse use_of(const Spec& spec) {
  return copies_between_peers(spec.transport) ? LinkUse::copy : LinkUse::message;
}

GpuBound bound_of(const Spec& spec, const Topology& topology) {
  constexpr std::size_t least = 4 * mib;
  const bool counted = spec.mode != Mode::latency && spec.mode != Mode::rate && spec.mode != Mode::chase &&
                       spec.bytes >= least;
  const bool cross = spec.scope == Scope::cross;
  const bool from_gpu =
      spec.transport == "nccl" || copies_between_peers(spec.transport) || (cross && spec.transport == "mpi");
  if (!topology.measures_gpus() || !counted || !from_gpu) return {};
  return link_bound_of_case(topology, use_of(spec), cross);
}

std::vector<Case> plan_cases(const PlanInput& input) {
  const auto at_least = [&](const char* option, std::int64_t least, const char* wrong) {
    const auto& options = input.config.options;
    if (options.has(option) && options.integer(option) < least)
      throw_usage(fmt::format("--{}: {} is {}", option, options.integer(option), wrong));
  };
  at_least("p2p.rounds", 0, "negative");
  at_least("p2p.links", 1, "less than 1");
  std::vector<Case> cases{pair_selftest_case("p2p", Stage::pairs, input.topology)};
  PairCounts pairs(input.topology);
  std::map<Scope, std::size_t> rounds;
  for (const Scope scope : {Scope::node, Scope::cross, Scope::loopback})
    rounds[scope] = round_count(scope, input.topology);
  for (const Spec& spec : specs(input.config, input.topology)) {
    Case c;
    c.suite = "p2p";
    c.name = spec.name();
    c.operation = to_string(spec.mode);
    c.title = title_of(spec);
    c.stage = Stage::pairs;
    c.required = spec.required;
    c.entity_kind = spec.scope == Scope::loopback ? "nic" : "link";
    c.in_every_pass = !spec.isolated && !spec.meetings;
    const Shape shape = make_shape(spec, input.memory_per_rank_bytes, link_rate_of(spec, input.topology));
    if (shape.slots == 0 && input.config.options.has("p2p.sizes"))
      throw_usage("--p2p.sizes: " + format_bytes(spec.bytes) + " does not fit the " +
                  format_bytes(input.memory_per_rank_bytes) + " that a rank may use here");
    c.not_applicable = shape.slots == 0 ? "more memory than a rank may use"
                                        : why_not(spec.scope, spec.transport, input.topology);
    c.parameters = {{"mode", to_string(spec.mode)},
                    {"bytes", spec.bytes},
                    {"scope", to_string(spec.scope)},
                    {"transport", spec.transport},
                    {"series", spec.isolated ? "isolated" : "pipelined"},
                    {"repetitions", shape.repetitions},
                    {"slots", shape.slots}};
    if (const GpuBound bound = bound_of(spec, input.topology); *bound.by != 0)
      c.share = std::string("bound_share of ") + bound.by;
    if (!spec.nic.empty()) c.parameters["nic"] = spec.nic;
    if (!spec.far.empty()) c.parameters["far_nic"] = spec.far;
    if (spec.meetings) c.parameters["meetings"] = true;
    if (c.not_applicable.empty()) {
      const Timing timing = make_timing(spec, shape, input.config, input.topology, rounds.at(spec.scope));
      c.seconds = timing.seconds;
      c.min_seconds = timing.min_seconds;
      c.overhead_seconds = timing.overhead_seconds;
      c.bytes = shape.arena_bytes();
      c.samples = timing.samples;
      c.rounds =
          spec.far.empty() ? timing.shares() : across_rounds(input.topology.nodes.size(), timing.rounds);
      c.links = link_set_of(spec, input.topology);
      const auto stream = schedule_stream(input.seed, c.name, spec, input.topology);
      const std::int64_t rows = spec.scope == Scope::loopback ? 1 : 2;  // of a pair
      c.entities = rows * static_cast<std::int64_t>(pairs.of(spec, stream, timing));
    }
    cases.push_back(std::move(c));
  }
  for (Case& c : plan_stars(input)) cases.push_back(std::move(c));
  return cases;
}

Shape shape_of(const Case& c) {
  const Spec spec = spec_of(c);
  return {spec.mode, spec.bytes, c.parameters.at("repetitions"), c.parameters.at("slots")};
}

}  // namespace assay::p2p
