// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/gemm_profile.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

namespace assay::gemm {
namespace {

/// The slowest share of cores a rank has: its threads divided by the ranks that compete for each core.
double slowest_rank_cores(const Topology& topology) {
  double least = std::numeric_limits<double>::infinity();
  for (const NodeKind& kind : topology.kinds()) {
    const std::vector<int> ranks = topology.ranks_of(kind.node);
    const std::set<int> cpus = topology.cpus_of(ranks);
    double threads = 0, fewest = std::numeric_limits<double>::infinity();
    for (const int rank : ranks) {
      const RankPlace& place = topology.ranks[static_cast<std::size_t>(rank)];
      threads += place.threads;
      fewest = std::min(fewest, static_cast<double>(place.threads));
    }
    const double load = cpus.empty() ? 1 : std::max(1.0, threads / static_cast<double>(cpus.size()));
    least = std::min(least, fewest / load);
  }
  return std::isfinite(least) && least > 0 ? least : 1;
}

/// The cache a rank's matrices must exceed: the largest share of last-level cache behind any rank.
std::uint64_t cache_share(const Topology& topology) {
  std::uint64_t largest = 0;
  for (const NodeKind& kind : topology.kinds())
    for (const int rank : topology.ranks_of(kind.node))
      largest = std::max(largest, topology.nodes[static_cast<std::size_t>(kind.node)].llc_bytes_of(
                                      topology.ranks[static_cast<std::size_t>(rank)].cpus));
  return largest;
}

/// Half of an A100, or what the slowest data-centre GPU since has where that is less: some are cut hard in
/// fp64.
double slow_gpu_flops(NumType type) {
  switch (type) {
    case NumType::fp64: return 1e12;
    case NumType::fp32: return 1e13;
    case NumType::tf32: return 5e13;
    case NumType::fp16:
    case NumType::bf16:
    case NumType::fp8:
    case NumType::fp8_fast:
    case NumType::fp8_e5m2:
    case NumType::int8: break;
  }
  return 1e14;
}

/// Whether GPUs of a compute capability have a type, as Gemm::supports() of the device says; all, where it is
/// unknown.
bool multiplies(const std::string& compute, NumType type) {
  int major = 0, minor = 0;
  if (std::sscanf(compute.c_str(), "%d.%d", &major, &minor) != 2) return true;
  const int capability = 10 * major + minor;
  switch (type) {
    case NumType::tf32:
    case NumType::bf16: return capability >= 80;
    case NumType::fp8:
    case NumType::fp8_e5m2: return capability >= 89;
    case NumType::fp8_fast: return capability >= 89 && major <= 9;
    case NumType::int8: return capability >= 75;
    case NumType::fp64:
    case NumType::fp32:
    case NumType::fp16: break;
  }
  return true;
}

/// Larger than the last-level caches of GPUs until 2026 (B200: 126 MB).
constexpr std::uint64_t gpu_cache_bytes = std::uint64_t{128} << 20;

}  // namespace

std::string Profile::lacks(NumType type) const {
  for (const std::string& compute : computes)
    if (!multiplies(compute, type))
      return "GPUs of compute capability " + compute + " have no " + to_string(type);
  if (gpu || type == NumType::fp32 || type == NumType::fp64) return "";
  return "the host device computes fp32 and fp64, not " + std::string(to_string(type));
}

double Profile::slow_flops(NumType type) const {
  if (gpu) return slow_gpu_flops(type) * share;
  return (type == NumType::fp64 ? 1e10 : 2e10) * share;
}

std::vector<std::size_t> Profile::sizes(Level level) const {
  switch (level) {
    case Level::smoke: return {gpu ? std::size_t{4096} : 1024};
    case Level::quick:
      if (gpu) return {8192};
      return {1024, 2048};
    case Level::extended:
      if (gpu) return {4096, 8192, 16384};
      return {1024, 2048, 4096, 8192};
    case Level::standard:
    case Level::soak: break;
  }
  if (gpu) return {8192};
  return {1024, 2048, 4096};
}

Profile profile_of(const Topology& topology, Level level) {
  if (!topology.measures_gpus())
    return {{NumType::fp32, NumType::fp64}, slowest_rank_cores(topology), cache_share(topology), false};
  std::vector<NumType> types{NumType::bf16};
  if (level != Level::smoke)
    types = {NumType::bf16, NumType::fp16, NumType::fp8, NumType::int8,
             NumType::tf32, NumType::fp32, NumType::fp64};
  if (level >= Level::standard) types.insert(types.end(), {NumType::fp8_fast, NumType::fp8_e5m2});
  Profile profile{types, 1, gpu_cache_bytes, true};
  for (const RankPlace& place : topology.ranks)
    if (place.gpu >= 0)
      profile.computes.insert(topology.nodes[static_cast<std::size_t>(place.node)]
                                  .gpus[static_cast<std::size_t>(place.gpu)]
                                  .compute);
  return profile;
}

}  // namespace assay::gemm
