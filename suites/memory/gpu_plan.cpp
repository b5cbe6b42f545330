// SPDX-License-Identifier: Apache-2.0
#include "suites/memory/gpu_plan.hpp"

#include <algorithm>

#include "kernels/pattern.hpp"
#include "suites/memory/layout.hpp"

namespace assay::memory {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

/// Long enough for a link of 64 GB/s to be timed to a thousandth, short enough for the least.
constexpr std::uint64_t copy_bytes = 128 * mebibyte;

/// Whether a node has host memory and cores in the NUMA domain at this place of its list. A domain of a GPU's
/// or CXL memory may have no cores, and then the CPUs of the domain that it belongs to.
bool is_host_domain(const Node& node, std::size_t place) {
  if (place >= node.numa.size()) return false;
  const NumaDomain& domain = node.numa[place];
  return domain.memory_bytes > 0 && std::any_of(domain.cpus.begin(), domain.cpus.end(), [&](int cpu) {
           return node.numa_of({cpu}) == domain.os_index;
         });
}

/// Places of the NUMA domains that are host domains on every node; the first where there is none.
std::vector<std::size_t> common_domains(const Topology& topology) {
  std::vector<std::size_t> places;
  const std::size_t most = topology.nodes.empty() ? 0 : topology.nodes.front().numa.size();
  for (std::size_t place = 0; place < most; ++place)
    if (std::all_of(topology.nodes.begin(), topology.nodes.end(),
                    [&](const Node& node) { return is_host_domain(node, place); }))
      places.push_back(place);
  if (places.empty()) places.push_back(0);
  return places;
}

Case base(const PlanInput& input, const std::string& name, bool together, int turns) {
  Case c;
  c.suite = "memory";
  c.name = name + (together ? "-together" : "-alone");
  c.serial = !together;
  c.turns = together ? 1 : turns;
  c.entities = input.topology.measured_ranks(together, turns);
  c.parameters["mode"] = together ? "together" : "alone";
  return c;
}

/// Both ends are filled and checked beside the clock, the host's at some GB/s.
Case copy_case(const PlanInput& input, const std::string& way, std::size_t domain, bool together, int turns) {
  Case c =
      base(input, way + "-" + std::to_string(copy_bytes) + "-numa" + std::to_string(domain), together, turns);
  c.bytes = 2 * copy_bytes;
  c.min_seconds = 0.2;
  c.seconds = input.config.level == Level::smoke ? 0.3 : 1.0;
  if (!together) c.seconds = std::max(c.min_seconds, 1.5 * c.seconds / turns);
  c.overhead_seconds = 0.2;
  c.operation = "copy";
  const std::string ways = way.starts_with("h2d")   ? "host to GPU"
                           : way.starts_with("d2h") ? "GPU to host"
                                                    : "host and GPU both ways";
  c.title = "copy " + ways + (way.ends_with("-sm") ? " by threads" : "") + ", NUMA domain " +
            std::to_string(domain) + ", " + together_words(true, together);
  c.share = "bound_share of PCIe generation x lanes";
  c.parameters["copy"] = way;
  c.parameters["numa"] = domain;
  c.parameters["bytes"] = copy_bytes;
  if (c.bytes > input.memory_per_rank_bytes)
    c.not_applicable = too_little_memory(c.bytes, input.memory_per_rank_bytes);
  return c;
}

/// Inside a GPU's memory, in pieces that each have a place of their own, so that all that was timed is
/// checked: up to 4 GiB, of which some thousandths of the time are the start, and more than caches hold.
Case local_case(const PlanInput& input, bool together, int turns) {
  constexpr std::uint64_t most = 32;
  const std::uint64_t pieces = std::min(most, input.memory_per_rank_bytes / (2 * copy_bytes));
  Case c = base(input, "local-" + std::to_string(copy_bytes), together, turns);
  c.bytes = 2 * copy_bytes * pieces;
  c.min_seconds = 0.2;
  c.seconds = together ? 1.0 : std::max(c.min_seconds, 1.5 / turns);
  c.overhead_seconds = 0.2;
  c.operation = "copy";
  c.title = "copy inside the GPU by cudaMemcpy, " + together_words(true, together);
  c.share = "bound_share of memory clock x bus width";
  c.parameters["copy"] = "local";
  c.parameters["bytes"] = copy_bytes;
  c.parameters["pieces"] = pieces;
  if (c.bytes < gpu_cache_multiple * assumed_gpu_cache)
    c.not_applicable =
        too_little_memory(gpu_cache_multiple * assumed_gpu_cache, input.memory_per_rank_bytes) +
        ", and caches hold a part of that";
  return c;
}

Case on_chip_case(const PlanInput& input, const std::string& test) {
  Case c = base(input, "onchip-" + test, true, 1);
  c.required = true;
  c.min_seconds = 0.05;
  c.seconds = input.config.level == Level::quick ? 0.3 : input.config.level == Level::standard ? 2 : 20;
  c.overhead_seconds = 0.1;
  c.operation = "onchip";
  c.parameters["onchip"] = test;
  return c;
}

}  // namespace

std::vector<std::string> host_patterns(Level level) {
  switch (level) {
    case Level::smoke: return {"own-address", "moving-inversions"};
    case Level::quick: return {"own-address", "moving-inversions", "march-c", "random", "checkerboard"};
    case Level::standard:
      return {"own-address", "moving-inversions", "walking-ones", "walking-zeros", "checkerboard", "march-c",
              "random",      "modulo-20",         "block-move",   "retention"};
    case Level::extended:
    case Level::soak: break;
  }
  auto names = kernels::pattern_names();
  std::erase(names, "block-move-engine");  // a host moves by its cores
  return names;
}

std::vector<std::string> gpu_patterns(Level level) {
  if (level == Level::smoke) return host_patterns(level);
  if (level >= Level::extended) return kernels::pattern_names();
  auto names = host_patterns(level);
  const std::vector<std::string> short_ones = {"address-bits", "five-a", "switching-noise", "line-codes"};
  const std::vector<std::string> longer = {"row-stripe", "column-stripe",     "walking-8", "march-ss",
                                           "march-sr",   "block-move-engine", "hold"};
  names.insert(names.end(), short_ones.begin(), short_ones.end());
  if (level == Level::standard) names.insert(names.end(), longer.begin(), longer.end());
  return names;
}

std::vector<Case> gpu_cases(const PlanInput& input, bool alone, bool together, int turns) {
  std::vector<Case> cases;
  if (!input.topology.measures_gpus()) return cases;
  const bool smoke = input.config.level == Level::smoke;
  std::vector<std::string> ways = {"h2d", "d2h", "hd-both"};
  if (smoke) ways.pop_back();
  if (input.config.level >= Level::standard) ways.insert(ways.end(), {"h2d-sm", "d2h-sm"});
  auto domains = common_domains(input.topology);
  if (smoke) domains.resize(1);
  for (const std::size_t domain : domains) {
    for (const std::string& way : ways) {
      if (together) {
        cases.push_back(copy_case(input, way, domain, true, turns));
        cases.back().required = domain == domains.front() && (way == "h2d" || way == "d2h");
      }
      if (alone && !smoke) cases.push_back(copy_case(input, way, domain, false, turns));
    }
  }
  if (smoke) return cases;
  if (together) cases.push_back(local_case(input, true, turns));
  if (alone) cases.push_back(local_case(input, false, turns));
  for (const char* test : {"l1", "shared", "l2"}) cases.push_back(on_chip_case(input, test));
  return cases;
}

}  // namespace assay::memory
