// SPDX-License-Identifier: Apache-2.0
// How much memory a case needs and what it will take: pure functions of topology and operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/stream.hpp"
#include "topology/topology.hpp"

namespace assay::memory {

/// Doubles after which the data of every array repeats: 16 x 4093, a whole number of cache lines (64 bytes on
/// hosts, 128 on GPUs) and no power of two, so that equal values never lie at equal places of cache sets,
/// channels or pages.
inline constexpr std::size_t period = 16 * 4093;
/// Repetitions start at this many different places, one period apart.
inline constexpr std::size_t rotations = 7;

/// Arrays that must be held for an operation: those it moves, and those that make a result tell itself from
/// the one before.
std::size_t stream_buffers(kernels::StreamOp op) noexcept;

/// Bytes from one array to the next: the array, room for the rotation, rounded up to `stride_bytes`.
std::size_t array_stride(std::size_t count, std::size_t stride_bytes) noexcept;

/// NUMA domain that a thread counts for: `domain`, or the first of the node where that is not known (-1).
int domain_of(const Node& node, int domain) noexcept;

/// What an operation works on in each rank.
struct Working {
  std::size_t count = 0;          ///< doubles per array
  std::uint64_t bytes = 0;        ///< of the arena
  std::uint64_t moved_bytes = 0;  ///< per repetition
  bool cached = false;            ///< arrays together are less than 4 x the cache: judges nothing
};

/// Bytes per rank with which all ranks that measure at the same time exceed 4 x every last-level cache they
/// use; at least `least_working_set`. The same for all ranks: the largest need of any.
std::uint64_t needed_bytes(const Topology& topology, bool together);
inline constexpr std::uint64_t least_working_set = std::uint64_t{96} << 20;
/// Taken where the machine does not tell its caches.
inline constexpr std::uint64_t assumed_cache = std::uint64_t{32} << 20;

/// Fits the operation into `limit_bytes`. `count` is 0 when not even a small cached run fits.
Working fit_stream(kernels::StreamOp op, std::uint64_t needed, std::uint64_t limit_bytes, int threads);

/// Taken for the L2 cache of GPUs: what the largest have (B200: 126 MB). A case that finds a larger one
/// judges nothing.
inline constexpr std::uint64_t assumed_gpu_cache = std::uint64_t{128} << 20;
/// Times the L2 cache of a GPU that bandwidth and latency work on.
inline constexpr std::uint64_t gpu_cache_multiple = 20;

/// Of a pattern's region, the part that is written first to learn the rate: a sixteenth.
std::uint64_t probe_bytes(std::uint64_t region) noexcept;
/// A pattern may take so many times what was planned, where a machine is slower.
inline constexpr double share_factor = 6;
/// What a pattern planned for `planned_s`, pauses included, may take for its sweeps: no more than half of
/// what the pauses leave of the `left_s` until its end, and so little that it ends before it is late, which
/// is in `late_s`. A fourth of that is for its own bandwidth, and for sweeps slower than the first one.
double sweeps_share_s(double planned_s, double left_s, double late_s, double pauses_s) noexcept;
/// The time until a pattern is taken for hung, `deadline_s` where its region is one chunk. Each of several
/// chunks is counted as progress: such a pattern may be late.
double time_until_late_s(std::size_t chunks, double deadline_s) noexcept;

/// Dependent loads of a repetition: `most`, or the largest half, quarter, ... of them that takes `share_s` at
/// `step_s` each; at least a 64th.
std::uint64_t fitted_steps(std::uint64_t most, double step_s, double share_s) noexcept;

/// Parts in which a pattern sweeps its region, each a sample: one on a host; on a GPU of at least 2 GiB each,
/// at most 16, and no more than 1000 samples in all.
std::size_t chunk_count(bool own_memory, std::uint64_t bytes, std::size_t sweeps) noexcept;

/// B/s that a rank surely reaches when all ranks of its node run: 4 GB/s per core up to 20 GB/s per socket,
/// shared. GPUs: 200 GB/s each, which healthy ones exceed; less where the first sweep of some rank was not
/// twice that fast, then half of what it reached, rounded down to a power of two so that a run that is
/// resumed comes to the same plan.
double sure_bandwidth(const Topology& topology);

/// Of a pattern's region on a GPU, the part whose copy is its own bandwidth: beyond the caches, and no more.
constexpr std::uint64_t own_bandwidth_bytes(std::uint64_t region) noexcept {
  constexpr std::uint64_t beyond = gpu_cache_multiple * assumed_gpu_cache;
  return region < beyond ? region : beyond;
}

/// One pattern and the bytes per rank it is given.
struct PatternShare {
  std::string name;
  double bytes_per_byte = 1;
  double pause_s = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;  ///< at `bandwidth`, pauses included
};

/// Shares `seconds` among the patterns: each gets an equal part; what a cheap one does not need to cover
/// `limit_bytes` goes to the others. Bytes are multiples of 1 MiB, at least one.
void share_time(std::vector<PatternShare>& patterns, double seconds, double bandwidth,
                std::uint64_t limit_bytes);

}  // namespace assay::memory
