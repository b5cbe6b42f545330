// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/p2p_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/units.hpp"
#include "run/retest.hpp"
#include "suites/p2p/choice.hpp"
#include "suites/p2p/pair_counts.hpp"
#include "suites/p2p/star.hpp"
#include "transport/ucx_communicator.hpp"
#include "workload/pair_selftest.hpp"

namespace assay::p2p {
namespace {

constexpr std::size_t arena_limit = 512 * mib;
constexpr std::size_t most_rate_messages = 64;  ///< on their way at once where messages are counted

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

}  // namespace

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
  shape.repetitions = 0;
  if (shape.slot_bytes() > memory_bytes) return shape;  // several slots of that may be more than 2^64 bytes
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
