// SPDX-License-Identifier: Apache-2.0
#include "suites/congestion/congestion_plan.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/units.hpp"
#include "topology/oversubscription.hpp"
#include "workload/exchange.hpp"
#include "workload/pair_selftest.hpp"

namespace assay::congestion {
namespace {

constexpr Canary all_canaries[] = {Canary::latency, Canary::bandwidth, Canary::all_reduce};
constexpr Congestor all_congestors[] = {Congestor::all_to_all, Congestor::incast};

std::size_t bytes_of(Canary canary) { return canary == Canary::bandwidth ? bandwidth_bytes : latency_bytes; }

/// Ranks that report: the leaders of pairs, both ways, or all canaries of the all-reduce.
std::int64_t reporting(const PlanInput& input, const std::string& name, int draws) {
  std::vector<bool> reports(input.topology.ranks.size(), false);
  for (int draw = 0; draw < draws; ++draw) {
    const Roles roles = draw_roles(input.topology, role_stream(input.seed, name), draw);
    for (const workload::Pair& pair : roles.pairs)
      reports[static_cast<std::size_t>(pair.a)] = reports[static_cast<std::size_t>(pair.b)] = true;
  }
  return std::count(reports.begin(), reports.end(), true);
}

Case make_case(Canary canary, Congestor congestor, const PlanInput& input) {
  const Topology& topology = input.topology;
  Case c;
  c.suite = "congestion";
  c.name = std::string(to_string(canary)) + "-" + std::to_string(bytes_of(canary)) + "-under-" +
           to_string(congestor) + "-mpi";
  c.operation = operation_of(canary);
  c.title = std::string(to_string(canary)) + ", " + format_bytes(bytes_of(canary)) + ", under " +
            to_string(congestor);
  c.stage = Stage::world;
  const Timing timing = timing_of(input.config.level);
  const Load load = load_of(congestor, topology.ranks.size(), input.memory_per_rank_bytes);
  c.parameters = {
      {"canary", to_string(canary)},    {"bytes", bytes_of(canary)}, {"congestor", to_string(congestor)},
      {"load_bytes", load.block_bytes}, {"draws", timing.draws},     {"transport", "mpi"}};
  workload::Shape shape;
  shape.mode = canary == Canary::latency ? workload::Mode::latency : workload::Mode::uni;
  shape.bytes = bytes_of(canary);
  c.bytes = std::max(load.arena_bytes, shape.arena_bytes());
  if (topology.nodes.size() < least_nodes)
    c.not_applicable = "fewer than " + std::to_string(least_nodes) + " nodes";
  else if (load.block_bytes == 0 || c.bytes > input.memory_per_rank_bytes)
    c.not_applicable = "more memory than a rank may use";
  if (!c.not_applicable.empty()) return c;
  c.seconds = 2 * timing.draws * timing.part_s;
  c.min_seconds = c.seconds;  // shorter parts have no 99th percentile
  c.overhead_seconds =
      timing.draws * (0.05 + (draw_parts - 2) * timing.part_s + 0.01 * oversubscription(topology));
  c.samples =
      2 * static_cast<std::size_t>(timing.draws) * part_samples(input.config.level, topology.ranks.size());
  c.entities = reporting(input, c.name, timing.draws);
  return c;
}

template <class T, std::size_t N>
T named(const T (&all)[N], const Case& c, const char* key) {
  for (const T one : all)
    if (c.parameters.at(key) == to_string(one)) return one;
  throw Error(ErrorKind::internal, "congestion: no such " + std::string(key));
}

}  // namespace

const char* to_string(Canary canary) noexcept {
  return canary == Canary::latency ? "latency" : canary == Canary::bandwidth ? "bandwidth" : "allreduce";
}
const char* operation_of(Canary canary) noexcept {
  return canary == Canary::all_reduce ? "reduction" : to_string(canary);
}
const char* to_string(Congestor congestor) noexcept {
  return congestor == Congestor::incast ? "incast" : "all-to-all";
}

RandomStream role_stream(std::uint64_t seed, const std::string& case_name) {
  return RandomStream(seed, "congestion/roles").child(case_name);
}

Roles draw_roles(const Topology& topology, const RandomStream& random, int draw) {
  const std::size_t nodes = topology.nodes.size();
  const std::size_t canaries = std::max<std::size_t>(2, nodes / 5 / 2 * 2);
  const auto order = random.child(std::to_string(draw)).permutation(nodes);
  Roles roles;
  roles.canary.assign(nodes, false);
  for (std::size_t i = 0; i + 1 < canaries; i += 2) {
    roles.canary[order[i]] = roles.canary[order[i + 1]] = true;
    const auto a = topology.ranks_of(static_cast<int>(order[i])),
               b = topology.ranks_of(static_cast<int>(order[i + 1]));
    for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k)
      roles.pairs.push_back({std::min(a[k], b[k]), std::max(a[k], b[k])});
  }
  return roles;
}

Timing timing_of(Level level) noexcept {
  switch (level) {
    case Level::smoke: return {2, 0.15};
    case Level::quick: return {2, 0.3};
    case Level::standard: return {4, 0.5};
    case Level::extended:
    case Level::soak: return {8, 1.0};
  }
  return {};
}

std::size_t part_samples(Level level, std::size_t ranks) noexcept {
  constexpr std::size_t least = 100, of_rank = 4 * most_samples / 2, of_case = 16'000'000;
  const std::size_t parts = 2 * static_cast<std::size_t>(timing_of(level).draws);
  return std::clamp(std::min(of_rank, of_case / std::max<std::size_t>(1, ranks)) / parts, least,
                    most_samples);
}

Load load_of(Congestor congestor, std::size_t ranks, std::uint64_t memory_bytes) noexcept {
  const std::size_t slots = 2 * std::max<std::size_t>(1, ranks);  // sent and received
  for (std::size_t block = congestor == Congestor::incast ? 256 * 1024 : 32 * 1024; block >= 1024; block /= 2)
    if (slots * block <= memory_bytes) return {block, slots * block};
  return {};
}

Canary canary_of(const Case& c) { return named(all_canaries, c, "canary"); }
Congestor congestor_of(const Case& c) { return named(all_congestors, c, "congestor"); }

std::vector<Case> plan_cases(const PlanInput& input) {
  // A run of everything reaches the network's limits only where there is the time for it.
  if (input.config.level < Level::extended && !input.config.options.has("suites")) return {};
  std::vector<Case> cases{workload::pair_selftest_case("congestion", Stage::world, input.topology)};
  for (const Congestor congestor : all_congestors)
    for (const Canary canary : all_canaries) cases.push_back(make_case(canary, congestor, input));
  return cases;
}

}  // namespace assay::congestion
