// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/p2p_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/units.hpp"
#include "run/retest.hpp"
#include "suites/p2p/choice.hpp"
#include "topology/fabric.hpp"
#include "topology/oversubscription.hpp"
#include "transport/ucx_communicator.hpp"
#include "workload/pair_selftest.hpp"

namespace assay::p2p {
namespace {

constexpr std::size_t arena_limit = 512 * mib;
constexpr std::size_t most_rate_messages = 64;   ///< on their way at once where messages are counted
constexpr std::size_t most_nic_bytes = 4 * mib;  ///< of a message whose bandwidth over one NIC is measured
/// What a pair fills, sends and checks per second on one core, low on purpose: it decides how many rounds are
/// planned.
constexpr double assumed_bytes_per_s = 2e9;
/// A batch of small messages with its handshake, and a barrier between rounds.
constexpr double assumed_round_s = 3e-3;

struct LevelNumbers {
  double round_latency_s, round_bandwidth_s;  ///< wanted per round
  double case_s;                              ///< hard cap of a case
  std::size_t latency_samples, bandwidth_samples, isolated_samples;
};

LevelNumbers numbers(Level level) {
  switch (level) {
    case Level::smoke: return {0.1, 0.15, 0.5, 20, 9, 50};
    case Level::quick: return {0.4, 0.6, 3.0, 60, 21, 200};
    case Level::standard: return {0.5, 1.0, 8.0, 99, 30, 500};
    case Level::extended:
    case Level::soak: return {1.0, 2.0, 60.0, 200, 60, 1000};
  }
  return {};
}

/// As it may stand in the name of a case: "mlx5_0:1" is "mlx5_0.1".
std::string in_name(std::string nic) {
  for (char& c : nic) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-') c = '.';
  }
  return nic;
}

bool required_size(Level level, Mode mode, std::size_t bytes) {
  if (level == Level::smoke) return mode == Mode::uni && bytes == mib;
  return mode == Mode::uni && bytes == 4 * mib;
}

/// The isolated series of a measurement: none in smoke, of the latency in quick, of all from standard up.
bool has_isolated(Level level, Mode mode) {
  return level == Level::quick ? mode == Mode::latency : level >= Level::standard;
}

std::string why_not(Scope scope, const std::string& transport, const Topology& topology) {
  if (!topology.measures_gpus()) {
    if (transport == "nccl") return "NCCL is for GPUs, and none is measured";
    if (copies_between_peers(transport)) return "copies between GPUs need some, and none is measured";
  }
  if (topology.size() == 1) return "one rank has no partner";
  if (scope != Scope::cross && topology.max_local_size() < 2) return "no node has two ranks";
  if (scope == Scope::cross && topology.nodes.size() < 2) return "one node has no other node to talk to";
  return "";
}

}  // namespace

const char* to_string(Mode mode) noexcept {
  switch (mode) {
    case Mode::latency: return "latency";
    case Mode::uni: return "uni";
    case Mode::bi: return "bi";
    case Mode::rate: return "rate";
    case Mode::put: return "put";
    case Mode::get: return "get";
  }
  return "";
}
const char* to_string(Scope scope) noexcept {
  return scope == Scope::node ? "node" : scope == Scope::cross ? "cross" : "loopback";
}

Mode mode_from(const std::string& text) {
  for (const Mode mode : {Mode::latency, Mode::uni, Mode::bi, Mode::rate, Mode::put, Mode::get})
    if (text == to_string(mode)) return mode;
  throw Error(ErrorKind::internal, "p2p: no mode '" + text + "'");
}

Scope scope_from(const std::string& text) {
  for (const Scope scope : {Scope::node, Scope::cross, Scope::loopback})
    if (text == to_string(scope)) return scope;
  throw Error(ErrorKind::internal, "p2p: no scope '" + text + "'");
}

std::string Spec::name() const {
  const std::string operation = mode == Mode::latency || mode == Mode::rate
                                    ? to_string(mode)
                                    : std::string("bandwidth-") + to_string(mode);
  return operation + "-" + std::to_string(bytes) + "-" + to_string(scope) + "-" + transport +
         (nic.empty() ? "" : "-" + in_name(nic)) + (far.empty() ? "" : "-" + in_name(far)) +
         (isolated ? "-isolated" : "");
}

std::vector<Spec> specs(const Config& config, const Topology& topology) {
  const auto sizes = wanted_sizes(config, topology);
  const auto modes = config.options.list("p2p.modes");
  const auto transports = wanted_transports(config, topology);
  std::vector<Spec> all;
  const auto scopes = config.options.list("p2p.scopes");
  const auto in_scope = [&](Scope scope) {
    return std::find(scopes.begin(), scopes.end(), to_string(scope)) != scopes.end();
  };
  const auto add = [&](Mode mode, std::size_t bytes, bool required) {
    for (const Scope scope : {Scope::node, Scope::cross}) {
      if (!in_scope(scope)) continue;
      for (const std::string& transport : transports) {
        if (copies_between_peers(transport)) continue;
        all.push_back({mode, scope, transport, bytes, false, required && transport == transports.front()});
        if (has_isolated(config.level, mode)) all.push_back({mode, scope, transport, bytes, true, false});
      }
    }
  };
  const auto wants = [&](Mode mode) {
    return std::find(modes.begin(), modes.end(), to_string(mode)) != modes.end();
  };
  if (wants(Mode::latency)) add(Mode::latency, 8, true);
  if (wants(Mode::rate) && (config.level > Level::smoke || config.options.has("p2p.modes")))
    add(Mode::rate, 8, false);
  for (const Mode mode : {Mode::uni, Mode::bi}) {
    if (!wants(mode) ||
        (mode == Mode::bi && config.level == Level::smoke && !config.options.has("p2p.sizes")))
      continue;
    for (const std::size_t bytes : sizes) add(mode, bytes, required_size(config.level, mode, bytes));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Spec& a, const Spec& b) { return a.required > b.required; });
  std::size_t nic_bytes = sizes.front();
  for (const std::size_t bytes : sizes)
    if (bytes <= most_nic_bytes) nic_bytes = bytes;
  const bool one_sided = config.level >= Level::standard || config.options.has("p2p.modes");
  for (const Mode mode : {Mode::put, Mode::get})
    for (const Scope scope : {Scope::node, Scope::cross})
      if (one_sided && wants(mode) && in_scope(scope) &&
          std::find(transports.begin(), transports.end(), "ucx") != transports.end())
        all.push_back({mode, scope, "ucx", nic_bytes, false, false});
  for (const std::string& transport : transports)
    for (const Mode mode : {Mode::put, Mode::get})
      if (copies_between_peers(transport) && wants(mode) && in_scope(Scope::node))
        all.push_back({mode, Scope::node, transport, sizes.back(), false, false});
  const auto add_nic = [&](const std::string& nic, Scope scope, std::initializer_list<Mode> of) {
    if (!in_scope(scope)) return;
    for (const Mode mode : of) {
      const bool small = mode == Mode::latency || mode == Mode::rate;
      if (wants(mode)) all.push_back({mode, scope, "ucx", small ? 8 : nic_bytes, false, false, nic});
    }
  };
  const auto nics = wanted_nics(config, topology);
  for (const std::string& nic : nics) {
    add_nic(nic, Scope::loopback, {Mode::latency, Mode::uni});
    add_nic(nic, Scope::cross, {Mode::latency, Mode::rate, Mode::uni, Mode::bi, Mode::put, Mode::get});
  }
  if (!config.options.flag("p2p.cross-rails")) return all;
  if (nics.size() < 2)
    throw_usage(
        "--p2p.cross-rails: needs two NICs that all nodes have up, and --p2p.nics below level standard");
  // Each rail with the next one is a sample of all; an InfiniBand port has nothing to say to an Ethernet one.
  const auto transports_of = [&](const std::string& nic) {
    return rail_of({.nic = nic}, topology).transports;
  };
  for (std::size_t k = 0; k < nics.size() && in_scope(Scope::cross); ++k) {
    const std::string& far = nics[(k + 1) % nics.size()];
    if (transports_of(nics[k]) != transports_of(far)) continue;
    for (const Mode mode : {Mode::latency, Mode::uni})
      if (wants(mode))
        all.push_back(
            {mode, Scope::cross, "ucx", mode == Mode::latency ? 8 : nic_bytes, false, false, nics[k], far});
  }
  return all;
}

namespace {

Rail rail_among(const std::vector<Rail>& all, const Spec& spec) {
  const auto named = [&](const std::string& nic) -> const Rail& {
    const auto at = std::find_if(all.begin(), all.end(), [&](const Rail& rail) { return rail.nic == nic; });
    if (at == all.end()) throw Error(ErrorKind::internal, "p2p: no NIC " + nic + " on every node");
    return *at;
  };
  return spec.far.empty() ? named(spec.nic) : across(named(spec.nic), named(spec.far));
}

}  // namespace

Rail rail_of(const Spec& spec, const Topology& topology) { return rail_among(rails(topology), spec); }

Schedule schedule_of(const Spec& spec, const Topology& topology, const RandomStream& random,
                     std::size_t max_rounds) {
  return schedule_of(spec, topology, spec.nic.empty() ? std::vector<Rail>() : rails(topology), random,
                     max_rounds);
}

Schedule schedule_of(const Spec& spec, const Topology& topology, const std::vector<Rail>& all,
                     const RandomStream& random, std::size_t max_rounds) {
  if (spec.nic.empty()) return make_schedule(spec.scope, topology, random, max_rounds);
  const Rail rail = rail_among(all, spec);
  if (!spec.far.empty()) return across_schedule(rail, random, max_rounds);
  return spec.scope == Scope::loopback ? loopback_schedule(rail) : rail_schedule(rail, random, max_rounds);
}

Shape make_shape(const Spec& spec, std::uint64_t memory_bytes) {
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
  shape.repetitions = spec.isolated ? 1 : shape.slots;
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
  const double batch_s = static_cast<double>(shape.bytes * shape.repetitions) / assumed_bytes_per_s;
  // A warm-up batch and two samples in each direction.
  const double least_round_s = slow * (assumed_round_s + 2 * 3 * batch_s);
  const double wanted_round_s = std::max(least_round_s, spec.mode == Mode::latency || spec.mode == Mode::rate
                                                            ? level.round_latency_s
                                                            : level.round_bandwidth_s);

  Timing timing;
  timing.rounds = all_rounds;
  if (wanted_rounds > 0)
    timing.rounds = std::min(timing.rounds, static_cast<std::size_t>(wanted_rounds));
  else
    timing.rounds = std::min(
        timing.rounds, static_cast<std::size_t>(std::max(1.0, std::floor(level.case_s / least_round_s))));
  const auto rounds = static_cast<double>(timing.rounds);
  timing.min_seconds = rounds * least_round_s;
  timing.seconds = std::max(timing.min_seconds, std::min(level.case_s, rounds * wanted_round_s));
  timing.overhead_seconds = 0.02 + rounds * 1e-3 * slow;
  timing.samples = spec.isolated                ? level.isolated_samples
                   : spec.mode == Mode::latency ? level.latency_samples
                                                : level.bandwidth_samples;
  return timing;
}

RandomStream schedule_stream(std::uint64_t seed, const std::string& case_name) {
  return RandomStream(seed, "p2p/schedule").child(case_name);
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
      default: return std::string("bandwidth by ") + to_string(spec.mode);
    }
  };
  const char* where = spec.scope == Scope::node    ? "inside nodes"
                      : spec.scope == Scope::cross ? "between nodes"
                                                   : "of every NIC";
  return fmt::format("{}, {}, {}, {}{}", what(), format_bytes(spec.bytes), where, spec.transport,
                     spec.isolated ? ", one by one" : "");
}

}  // namespace

std::vector<Case> plan_cases(const PlanInput& input) {
  if (input.config.options.has("p2p.rounds") && input.config.options.integer("p2p.rounds") < 0)
    throw_usage("--p2p.rounds: " + std::to_string(input.config.options.integer("p2p.rounds")) +
                " is negative");
  std::vector<Case> cases{pair_selftest_case("p2p", Stage::pairs, input.topology)};
  const std::vector<Rail> all_rails = rails(input.topology);
  const std::vector<int> leaves = leaf_of_nodes(input.topology);
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
    c.in_every_pass = !spec.isolated;
    const Shape shape = make_shape(spec, input.memory_per_rank_bytes);
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
    if (!spec.nic.empty()) c.parameters["nic"] = spec.nic;
    if (!spec.far.empty()) c.parameters["far_nic"] = spec.far;
    if (c.not_applicable.empty()) {
      const Timing timing = make_timing(spec, shape, input.config, input.topology, rounds.at(spec.scope));
      c.seconds = timing.seconds;
      c.min_seconds = timing.min_seconds;
      c.overhead_seconds = timing.overhead_seconds;
      c.bytes = shape.arena_bytes();
      c.samples = timing.samples;
      const auto stream = schedule_stream(input.seed, c.name);
      const std::int64_t rows = spec.scope == Scope::loopback ? 1 : 2;  // of a pair
      const std::size_t pairs =
          spec.nic.empty() ? pair_count(spec.scope, input.topology, stream, timing.rounds, leaves)
                           : pair_count(schedule_of(spec, input.topology, all_rails, stream, timing.rounds));
      c.entities = rows * static_cast<std::int64_t>(pairs);
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

Spec spec_of(const Case& c) {
  Spec spec;
  spec.mode = mode_from(c.parameters.at("mode"));
  spec.scope = scope_from(c.parameters.at("scope"));
  spec.transport = c.parameters.at("transport");
  spec.bytes = c.parameters.at("bytes");
  spec.isolated = c.parameters.at("series") == "isolated";
  spec.nic = c.parameters.value("nic", "");
  spec.far = c.parameters.value("far_nic", "");
  return spec;
}

Shape shape_of(const Case& c) {
  const Spec spec = spec_of(c);
  return {spec.mode, spec.bytes, c.parameters.at("repetitions"), c.parameters.at("slots")};
}

}  // namespace assay::p2p
