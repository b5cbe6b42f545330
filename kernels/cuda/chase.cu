// SPDX-License-Identifier: Apache-2.0
#include "kernels/chase.hpp"

#include "kernels/cuda/grid.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256;
constexpr std::size_t vectors_per_node = chase_node_bytes / sizeof(ulonglong2);

/// Places p and p + 1 of the cycle are linked: each thread computes its own from the permutation.
__global__ void __launch_bounds__(threads)
    build_kernel(ulonglong2* memory, ChaseOrder order, std::uint64_t key) {
  for (std::size_t p = global_thread(); p < order.nodes; p += global_threads()) {
    const std::uint64_t next = order.node_at(p + 1 < order.nodes ? p + 1 : 0);
    memory[order.node_at(p) * vectors_per_node] = make_ulonglong2(next, next ^ key);
  }
}

__global__ void walk_kernel(const ulonglong2* memory, std::size_t nodes, std::uint64_t key, std::size_t start,
                            std::size_t steps, ChaseEnd* end, double* elapsed_ns) {
  std::size_t at = start;
  bool intact = at < nodes;
  const unsigned long long begin = global_timer_ns();
  std::size_t followed = 0;
  ulonglong2 node{};
  while (followed < steps && intact) {
    node = __ldcv(memory + at * vectors_per_node);
    intact = node.x < nodes && (node.x ^ node.y) == key;
    if (intact) {
      at = node.x;
      ++followed;
    }
  }
  *elapsed_ns = static_cast<double>(global_timer_ns() - begin);
  *end = {at, intact, followed, {node.x, node.y}};
}

}  // namespace

void chase_build(void* memory, std::size_t bytes, std::uint64_t key, void* stream) {
  const ChaseOrder order = chase_order(bytes / chase_node_bytes, key);
  const unsigned blocks = resident_blocks(build_kernel, threads, 0, order.nodes / threads + 1);
  launch(build_kernel, dim3(blocks), dim3(threads), 0, stream, static_cast<ulonglong2*>(memory), order, key);
}

void chase_walk(const void* memory, std::size_t bytes, std::uint64_t key, std::size_t start,
                std::size_t steps, ChaseEnd* end, double* elapsed_ns, void* stream) {
  launch(walk_kernel, dim3(1), dim3(1), 0, stream, static_cast<const ulonglong2*>(memory),
         bytes / chase_node_bytes, key, start, steps, end, elapsed_ns);
}

}  // namespace assay::kernels::cuda
