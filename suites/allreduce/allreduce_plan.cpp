// SPDX-License-Identifier: Apache-2.0
#include "suites/allreduce/allreduce_plan.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/units.hpp"
#include "suites/allreduce/groups.hpp"
#include "topology/oversubscription.hpp"

namespace assay::allreduce {
namespace {

constexpr std::size_t kib = 1024, mib = 1024 * 1024;
constexpr std::size_t arena_limit = 256 * mib;

/// Links between GPUs are as fast as they get only from some hundred MiB on.
std::vector<std::size_t> level_sizes(Level level, bool gpus) {
  if (level == Level::smoke) return {8, mib};
  if (level == Level::quick && gpus) return {8, 64 * kib, mib, 16 * mib, 256 * mib};
  if (level == Level::quick) return {8, 64 * kib, mib, 16 * mib};
  std::vector<std::size_t> sizes{8};
  const std::size_t largest = (level == Level::standard ? 64 * mib : 256 * mib) * (gpus ? 16 : 1);
  for (std::size_t size = 16; size <= largest; size *= 4) sizes.push_back(size);
  return sizes;
}

std::vector<std::size_t> wanted_sizes(const Config& config, const Topology& topology) {
  if (!config.options.has("allreduce.sizes")) return level_sizes(config.level, topology.measures_gpus());
  std::set<std::size_t> sizes;
  for (const std::string& text : config.options.list("allreduce.sizes")) {
    std::uint64_t bytes = 0;
    try {
      bytes = parse_bytes(text);
    } catch (const Error& e) {
      throw_usage("--allreduce.sizes: " + std::string(e.what()));
    }
    if (bytes == 0 || bytes % sizeof(float) != 0)
      throw_usage("--allreduce.sizes: '" + text + "' is no multiple of the 4 bytes of an element");
    sizes.insert(bytes);
  }
  return {sizes.begin(), sizes.end()};
}

double level_seconds(Level level, bool isolated) {
  switch (level) {
    case Level::smoke: return 0.25;
    case Level::quick: return isolated ? 1.0 : 1.5;
    case Level::standard: return isolated ? 1.5 : 2.5;
    case Level::extended:
    case Level::soak: return isolated ? 5.0 : 8.0;
  }
  return 1;
}

bool required_spec(Op operation, Scope scope, std::size_t bytes) {
  return operation == Op::all_reduce && (scope == Scope::world || scope == Scope::node) &&
         (bytes == 8 || bytes == mib);
}

/// Isolated series: none in smoke, of 1 MiB in quick, of all sizes from standard up.
bool has_isolated(Level level, std::size_t bytes) {
  return level == Level::quick ? bytes == mib : level >= Level::standard;
}

std::size_t slots_for(std::size_t slot_bytes, std::uint64_t memory_bytes) {
  if (slot_bytes > memory_bytes) return 0;  // several of that may be more than 2^64 bytes
  for (const std::size_t slots :
       {std::size_t{20}, std::size_t{10}, std::size_t{5}, std::size_t{2}, std::size_t{1}})
    if (slots * slot_bytes <= memory_bytes && (slots == 1 || slots * slot_bytes <= arena_limit)) return slots;
  return 0;
}

std::string why_no_variant(const Spec& spec) {
  const bool nccl = spec.transport == "nccl";
  switch (spec.variant) {
    case Variant::plain: return "";
    case Variant::in_place:
      if (spec.operation == Op::broadcast) return "a broadcast is always in place";
      if (!has_in_place_form(spec.operation)) return "the operation has no in-place form";
      return nccl || spec.operation == Op::all_reduce ? "" : "over MPI only allreduce is measured in place";
    case Variant::registered:
    case Variant::symmetric: return nccl ? "" : "only NCCL registers buffers";
    case Variant::graph: return nccl ? "" : "only NCCL's operations go into a CUDA graph";
  }
  return "";
}

std::string why_not(const Spec& spec, const Config& config, const Topology& topology) {
  const std::size_t nodes = topology.nodes.size();
  const Scope scope = spec.scope;
  if (spec.transport == "nccl" && !topology.measures_gpus()) return "NCCL is for GPUs, and none is measured";
  if (const std::string why = why_no_variant(spec); !why.empty()) return why;
  if (topology.size() == 1) return "a collective needs two ranks";
  if (scope == Scope::node && topology.max_local_size() < 2) return "no node has two ranks";
  if (scope == Scope::leader && nodes < 2) return "one node has one leader";
  const bool drawn = scope == Scope::groups || scope == Scope::rails;
  if (drawn && nodes < least_group_nodes) return "fewer than " + std::to_string(least_group_nodes) + " nodes";
  if (drawn && config.level < Level::standard) return "from level standard up";
  if (scope == Scope::rails && rails(topology) < 2) return "no two ranks on every node";
  return "";
}

std::vector<std::pair<std::size_t, std::string>> product(const std::vector<std::size_t>& sizes,
                                                         const std::vector<std::string>& transports) {
  std::vector<std::pair<std::size_t, std::string>> all;
  for (const std::size_t bytes : sizes)
    for (const std::string& transport : transports) all.emplace_back(bytes, transport);
  return all;
}

/// Of random groups; 1 where the groups are always the same.
int draws_of_scope(Scope scope, const PlanInput& input) {
  if (scope != Scope::groups && scope != Scope::rails) return 1;
  const Division division = scope == Scope::rails ? Division::rails : Division::groups;
  return draws_of(division, input.config.level, input.topology);
}

std::int64_t count_ranks(const Spec& spec, const std::string& name, const PlanInput& input) {
  const Topology& topology = input.topology;
  if (spec.scope == Scope::world) return topology.size();
  if (spec.scope == Scope::leader) return static_cast<std::int64_t>(topology.nodes.size());
  if (spec.scope == Scope::node)
    return std::count_if(topology.ranks.begin(), topology.ranks.end(),
                         [](const RankPlace& place) { return place.local_size > 1; });
  std::vector<bool> takes_part(topology.ranks.size(), false);
  const Division division = spec.scope == Scope::rails ? Division::rails : Division::groups;
  for (int draw = 0; draw < draws_of_scope(spec.scope, input); ++draw) {
    const auto groups = groups_of(division, topology, group_stream(input.seed, name), draw);
    for (std::size_t rank = 0; rank < groups.size(); ++rank)
      takes_part[rank] = takes_part[rank] || groups[rank] >= 0;
  }
  return std::count(takes_part.begin(), takes_part.end(), true);
}

Case selftest_case(const Topology& topology) {
  Case c;
  c.suite = "allreduce";
  c.name = "selftest-allreduce";
  c.operation = "selftest";
  c.stage = Stage::groups;
  c.required = true;
  c.entities = topology.size();
  c.bytes = slot_bytes(Op::all_reduce, 16 * kib, topology.size());
  c.seconds = c.min_seconds = 0.01;
  c.overhead_seconds = 0.005 * oversubscription(topology);
  c.parameters = {{"checker", "allreduce"}, {"bytes", 16 * kib}};
  return c;
}

/// "allreduce of 1 MiB, all ranks, mpi".
std::string title_of(const Spec& spec) {
  const auto who = [&]() -> std::string {
    switch (spec.scope) {
      case Scope::world: return "all ranks";
      case Scope::node: return "inside nodes";
      case Scope::leader: return "one rank per node";
      case Scope::groups: return "groups of nodes";
      case Scope::rails: return "rails";
    }
    return to_string(spec.scope);
  };
  const auto how = [&] {
    switch (spec.variant) {
      case Variant::plain: return "";
      case Variant::in_place: return ", in place";
      case Variant::registered: return ", registered buffers";
      case Variant::symmetric: return ", symmetric windows";
      case Variant::graph: return ", as a CUDA graph";
    }
    return "";
  };
  return std::string(to_string(spec.operation)) + ", " + format_bytes(spec.bytes) + ", " + who() + ", " +
         spec.transport + how() + (spec.isolated ? ", one by one" : "");
}

Case make_case(const Spec& spec, const PlanInput& input) {
  Case c;
  c.suite = "allreduce";
  c.name = spec.name();
  c.operation = spec.isolated ? "isolated" : "pipelined";
  c.title = title_of(spec);
  c.stage = spec.scope == Scope::world ? Stage::world : Stage::groups;
  c.required = spec.required;
  c.in_every_pass = !spec.isolated;
  const int ranks = scope_ranks(spec.scope, input.topology);
  const bool in_place = spec.variant == Variant::in_place;
  const std::size_t slot = slot_bytes(spec.operation, spec.bytes, std::max(1, ranks), in_place);
  const std::size_t slots = slots_for(slot, input.memory_per_rank_bytes);
  if (slots == 0 && input.config.options.has("allreduce.sizes"))
    throw_usage("--allreduce.sizes: " + format_bytes(spec.bytes) + " needs " + format_bytes(slot) +
                " a rank, and " + format_bytes(input.memory_per_rank_bytes) + " may be used here");
  c.not_applicable = why_not(spec, input.config, input.topology);
  if (c.not_applicable.empty() && slots == 0) c.not_applicable = "more memory than a rank may use";
  c.parameters = {{"operation", to_string(spec.operation)},
                  {"scope", to_string(spec.scope)},
                  {"bytes", spec.bytes},
                  {"type", "fp32"},
                  {"transport", spec.transport},
                  {"variant", to_string(spec.variant)},
                  {"series", spec.isolated ? "isolated" : "pipelined"},
                  {"repetitions", spec.isolated ? 1 : 20},
                  {"slots", slots},
                  {"ranks", ranks}};
  if (const GpuBound bound = bound_of(spec, input.topology); *bound.by != 0)
    c.share = std::string("bound_share of ") + bound.by;
  if (spec.scope == Scope::rails) c.parameters["rails"] = rails(input.topology);
  if (!c.not_applicable.empty()) return c;
  // One operation as slow as it may well be, and four of them as the least that a case can do.
  const double operation_s =
      oversubscription(input.topology) *
      (50e-6 + static_cast<double>(spec.bytes) / (spec.transport == "nccl" ? 5e9 : 1e9));
  c.min_seconds = std::max(0.05, 4 * operation_s);
  c.seconds = std::max(level_seconds(input.config.level, spec.isolated), c.min_seconds);
  c.overhead_seconds = 0.02 + 2e-3 * oversubscription(input.topology);
  c.bytes = slots * slot;
  c.entities = count_ranks(spec, c.name, input);
  const int draws = draws_of_scope(spec.scope, input);
  c.samples =
      static_cast<std::size_t>(draws) * series_samples(spec.isolated, draws, input.topology.ranks.size());
  return c;
}

}  // namespace

std::size_t series_samples(bool isolated, int draws, std::size_t ranks) noexcept {
  constexpr std::size_t least = 20, of_rank = 1000, of_case = 16'000'000;
  const std::size_t most = isolated ? 500 : 100;
  const std::size_t all = std::min(of_rank, of_case / std::max<std::size_t>(1, ranks));
  return std::clamp(all / static_cast<std::size_t>(std::max(1, draws)), least, most);
}

const char* to_string(Op operation) noexcept {
  switch (operation) {
    case Op::all_reduce: return "allreduce";
    case Op::reduce_scatter: return "reduce-scatter";
    case Op::all_gather: return "all-gather";
    case Op::all_to_all: return "all-to-all";
    case Op::broadcast: return "broadcast";
  }
  return "";
}

Op operation_from(const std::string& text) {
  for (const Op operation : all_operations)
    if (text == to_string(operation)) return operation;
  throw Error(ErrorKind::internal, "allreduce: no operation '" + text + "'");
}

const char* to_string(Scope scope) noexcept {
  switch (scope) {
    case Scope::node: return "node";
    case Scope::leader: return "leader";
    case Scope::groups: return "groups";
    case Scope::rails: return "rails";
    case Scope::world: return "world";
  }
  return "";
}

Scope scope_from(const std::string& text) {
  for (const Scope scope : all_scopes)
    if (text == to_string(scope)) return scope;
  throw Error(ErrorKind::internal, "allreduce: no scope '" + text + "'");
}

const char* to_string(Variant variant) noexcept {
  switch (variant) {
    case Variant::plain: return "plain";
    case Variant::in_place: return "in-place";
    case Variant::registered: return "registered";
    case Variant::symmetric: return "symmetric";
    case Variant::graph: return "graph";
  }
  return "";
}

Variant variant_from(const std::string& text) {
  for (const Variant variant : all_variants)
    if (text == to_string(variant)) return variant;
  throw Error(ErrorKind::internal, "allreduce: no variant '" + text + "'");
}

std::string Spec::name() const {
  return std::string(to_string(operation)) + "-" + to_string(scope) + "-" + std::to_string(bytes) + "-" +
         transport + (variant == Variant::plain ? "" : std::string("-") + to_string(variant)) +
         (isolated ? "-isolated" : "");
}

std::vector<Spec> specs(const Config& config, const Topology& topology) {
  std::vector<Spec> all;
  const auto sizes = wanted_sizes(config, topology);
  // The first one carries what a level requires.
  const auto transports = config.options.has("allreduce.transport")
                              ? config.options.list("allreduce.transport")
                              : std::vector<std::string>{topology.measures_gpus() ? "nccl" : "mpi"};
  const auto variants = config.options.list("allreduce.variants");
  for (const std::string& operation : config.options.list("allreduce.ops"))
    for (const std::string& scope : config.options.list("allreduce.scopes"))
      for (const auto& [bytes, transport] : product(sizes, transports)) {
        Spec plain{operation_from(operation), scope_from(scope), bytes, transport};
        // A rail is about what its links carry: sizes that bandwidth decides.
        if (plain.scope == Scope::rails && bytes < mib && !config.options.has("allreduce.sizes")) continue;
        plain.required =
            required_spec(plain.operation, plain.scope, bytes) && transport == transports.front();
        for (const std::string& variant : variants) {
          Spec spec = plain;
          spec.variant = variant_from(variant);
          spec.required = plain.required && spec.variant == Variant::plain;
          all.push_back(spec);
          if (!has_isolated(config.level, bytes) || spec.scope == Scope::rails) continue;
          spec.isolated = true;
          spec.required = false;
          all.push_back(spec);
        }
      }
  std::stable_sort(all.begin(), all.end(),
                   [](const Spec& a, const Spec& b) { return a.required > b.required; });
  return all;
}

int scope_ranks(Scope scope, const Topology& topology) {
  switch (scope) {
    case Scope::node: return topology.max_local_size();
    case Scope::leader: return static_cast<int>(topology.nodes.size());
    case Scope::groups:
      return std::min(topology.size(), static_cast<int>(group_nodes) * topology.max_local_size());
    case Scope::rails:
      return std::min(static_cast<int>(topology.nodes.size()), static_cast<int>(group_nodes));
    case Scope::world: return topology.size();
  }
  return 1;
}

GpuBound bound_of(const Spec& spec, const Topology& topology) {
  constexpr std::size_t least = 16 * mib;
  const bool known = spec.operation == Op::all_reduce || spec.operation == Op::reduce_scatter ||
                     spec.operation == Op::all_gather;
  if (spec.transport != "nccl" || spec.isolated || !known || spec.bytes < least ||
      !topology.measures_gpus() || spec.scope == Scope::groups || spec.scope == Scope::rails)
    return {};
  const bool across = spec.scope != Scope::node && topology.nodes.size() > 1;
  return link_bound_of_case(topology, LinkUse::collective, across);
}

std::vector<Case> plan_cases(const PlanInput& input) {
  std::vector<Case> cases{selftest_case(input.topology)};
  for (const Spec& spec : specs(input.config, input.topology)) cases.push_back(make_case(spec, input));
  return cases;
}

Spec spec_of(const Case& c) {
  Spec spec;
  spec.operation = operation_from(c.parameters.at("operation"));
  spec.scope = scope_from(c.parameters.at("scope"));
  spec.bytes = c.parameters.at("bytes");
  spec.transport = c.parameters.at("transport");
  spec.isolated = c.parameters.at("series") == "isolated";
  spec.variant = variant_from(c.parameters.at("variant"));
  return spec;
}

}  // namespace assay::allreduce
