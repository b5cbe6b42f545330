// SPDX-License-Identifier: Apache-2.0
#include "suites/memory/layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace assay::memory {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t granule = 2 * mib;

std::uint64_t round_up(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }

/// Index of the last-level cache of one CPU in Node::caches, or -1.
int last_level_cache(const Node& node, int cpu) {
  int best = -1;
  for (std::size_t i = 0; i < node.caches.size(); ++i) {
    const auto& cpus = node.caches[i].cpus;
    if (std::find(cpus.begin(), cpus.end(), cpu) == cpus.end()) continue;
    if (best < 0 || node.caches[i].level > node.caches[static_cast<std::size_t>(best)].level)
      best = static_cast<int>(i);
  }
  return best;
}

std::set<int> caches_of(const Node& node, const std::vector<int>& cpus) {
  std::set<int> caches;
  for (const int cpu : cpus) caches.insert(last_level_cache(node, cpu));
  return caches;
}

/// The largest need of a rank of this node.
std::uint64_t node_need(const Topology& topology, int index, bool together) {
  const Node& node = topology.nodes[static_cast<std::size_t>(index)];
  std::vector<std::set<int>> caches;  // by rank
  std::map<int, std::uint64_t> ranks_behind;
  for (const int rank : topology.ranks_of(index)) {
    caches.push_back(caches_of(node, topology.ranks[static_cast<std::size_t>(rank)].cpus));
    for (const int cache : caches.back()) ++ranks_behind[cache];
  }
  std::uint64_t most = 0;
  for (const auto& mine : caches) {
    std::uint64_t need = 0;
    for (const int cache : mine) {
      const std::uint64_t bytes =
          cache < 0 ? assumed_cache : node.caches[static_cast<std::size_t>(cache)].bytes;
      const std::uint64_t sharers = together ? ranks_behind[cache] : 1;
      need += (4 * bytes + sharers - 1) / sharers;
    }
    most = std::max(most, need);
  }
  return most;
}

}  // namespace

std::uint64_t probe_bytes(std::uint64_t region) noexcept { return region / 128 * 8; }

double sweeps_share_s(double planned_s, double left_s, double late_s, double pauses_s) noexcept {
  return std::min({share_factor * planned_s - pauses_s, 0.5 * (left_s - pauses_s), 0.75 * late_s - pauses_s});
}

double time_until_late_s(std::size_t chunks, double deadline_s) noexcept {
  return chunks > 1 ? std::numeric_limits<double>::infinity() : deadline_s;
}

std::uint64_t fitted_steps(std::uint64_t most, double step_s, double share_s) noexcept {
  std::uint64_t steps = most;
  while (steps > most / 64 && static_cast<double>(steps) * step_s > share_s) steps /= 2;
  return steps;
}

std::size_t stream_buffers(kernels::StreamOp op) noexcept {
  switch (op) {
    case kernels::StreamOp::read: return 1;
    case kernels::StreamOp::write: return 2;  // noise to overwrite the last result with
    case kernels::StreamOp::copy:             // two sources in turn
    case kernels::StreamOp::triad: break;
  }
  return 3;
}

int domain_of(const Node& node, int domain) noexcept {
  return domain >= 0 ? domain : node.numa.empty() ? 0 : node.numa.front().os_index;
}

std::size_t array_stride(std::size_t count, std::size_t stride_bytes) noexcept {
  return round_up((count + rotations * period) * sizeof(double), stride_bytes);
}

std::size_t chunk_count(bool own_memory, std::uint64_t bytes, std::size_t sweeps) noexcept {
  if (!own_memory) return 1;
  const std::size_t most = std::clamp<std::size_t>(1000 / std::max<std::size_t>(sweeps, 1), 1, 16);
  return std::clamp<std::size_t>(static_cast<std::size_t>(bytes >> 31), 1, most);
}

std::uint64_t needed_bytes(const Topology& topology, bool together) {
  if (topology.measures_gpus()) return gpu_cache_multiple * assumed_gpu_cache;
  std::uint64_t most = 0;
  for (const NodeKind& kind : topology.kinds())
    most = std::max(most, node_need(topology, kind.node, together));
  // Together, the ranks of a node share the least working set too.
  const auto ranks = static_cast<std::uint64_t>(together ? std::max(1, topology.max_local_size()) : 1);
  return std::max(most, least_working_set / std::min<std::uint64_t>(ranks, 8));
}

Working fit_stream(kernels::StreamOp op, std::uint64_t needed, std::uint64_t limit_bytes, int threads) {
  constexpr std::size_t line = 64 / sizeof(double);
  const std::size_t arrays = kernels::stream_arrays(op), buffers = stream_buffers(op);
  const std::size_t step = granule * static_cast<std::size_t>(std::max(1, threads));
  Working w;
  w.count = round_up((needed + arrays * sizeof(double) - 1) / (arrays * sizeof(double)), line);
  // In whole rounds of all threads each reads its own pages only; what is left over is divided without regard
  // to where it lies.
  const std::size_t rounds = round_up(w.count * sizeof(double), step) / sizeof(double);
  if (buffers * array_stride(rounds, step) <= limit_bytes) w.count = rounds;
  if (buffers * array_stride(w.count, step) > limit_bytes) {
    w.cached = true;
    const std::uint64_t stride = limit_bytes / buffers / step * step;
    const std::uint64_t room = rotations * period * sizeof(double);
    w.count = stride > room ? (stride - room) / sizeof(double) / line * line : 0;
    if (w.count < period) w.count = 0;
  }
  w.bytes = w.count == 0 ? 0 : buffers * array_stride(w.count, step);
  w.moved_bytes = w.count * kernels::stream_bytes_per_element(op);
  return w;
}

double sure_bandwidth(const Topology& topology) {
  if (topology.measures_gpus()) {
    double least = 200e9;
    for (const RankPlace& place : topology.ranks)
      if (place.gpu_sweep_rate > 0)
        least = std::min(least, std::exp2(std::floor(std::log2(place.gpu_sweep_rate / 2))));
    return least;
  }
  double least = std::numeric_limits<double>::infinity();
  for (const NodeKind& kind : topology.kinds()) {
    const auto ranks = topology.ranks_of(kind.node);
    if (ranks.empty()) continue;
    const double cores = std::max<double>(1, static_cast<double>(topology.cpus_of(ranks).size()));
    const double sockets = std::max(1, topology.nodes[static_cast<std::size_t>(kind.node)].sockets);
    least = std::min(least, std::min(4e9 * cores, 20e9 * sockets) / static_cast<double>(ranks.size()));
  }
  return std::isfinite(least) ? least : 4e9;
}

void share_time(std::vector<PatternShare>& patterns, double seconds, double bandwidth,
                std::uint64_t limit_bytes) {
  std::vector<std::size_t> order(patterns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return patterns[a].bytes_per_byte < patterns[b].bytes_per_byte;
  });
  const std::uint64_t most = std::max(mib, limit_bytes / mib * mib);
  double left = seconds;
  std::size_t waiting = order.size();
  for (const std::size_t i : order) {
    PatternShare& p = patterns[i];
    const double part = std::max(0.0, left) / static_cast<double>(waiting--);
    const auto possible = static_cast<std::uint64_t>(part * bandwidth / p.bytes_per_byte);
    p.bytes = std::clamp(possible / mib * mib, mib, most);
    const double moving = static_cast<double>(p.bytes) * p.bytes_per_byte / bandwidth;
    p.seconds = moving + p.pause_s;
    left -= moving;
  }
}

}  // namespace assay::memory
