// SPDX-License-Identifier: Apache-2.0
#include "kernels/digest.hpp"

#include "base/random.hpp"
#include "kernels/cuda/grid.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256;
constexpr std::uint64_t weyl = 0x9e3779b97f4a7c15ULL;

__device__ std::uint64_t mixed(std::uint64_t word, std::uint64_t index) {
  return mix64(word ^ ((index + 1) * weyl));
}

/// Pairs of words by 16-byte loads, four of them in flight per thread.
__global__ void __launch_bounds__(threads)
    digest_kernel(const ulonglong2* data, std::size_t pairs, const unsigned char* tail, unsigned tail_bytes,
                  std::uint64_t first_word, std::uint64_t* sum) {
  const std::size_t stride = std::size_t{gridDim.x} * threads;
  std::uint64_t mine = 0;
  std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
  for (; i + 3 * stride < pairs; i += 4 * stride) {
    ulonglong2 v[4];
    ASSAY_UNROLL
    for (int k = 0; k < 4; ++k) v[k] = __ldcs(data + i + static_cast<std::size_t>(k) * stride);
    ASSAY_UNROLL
    for (int k = 0; k < 4; ++k) {
      const std::uint64_t at = first_word + 2 * (i + static_cast<std::size_t>(k) * stride);
      mine += mixed(v[k].x, at) + mixed(v[k].y, at + 1);
    }
  }
  for (; i < pairs; i += stride) {
    const ulonglong2 v = __ldcs(data + i);
    mine += mixed(v.x, first_word + 2 * i) + mixed(v.y, first_word + 2 * i + 1);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    for (unsigned word = 0; 8 * word < tail_bytes; ++word) {
      std::uint64_t value = 0;
      for (unsigned b = 0; b < 8 && 8 * word + b < tail_bytes; ++b)
        value |= std::uint64_t{tail[8 * word + b]} << (8 * b);
      mine += mixed(value, first_word + 2 * pairs + word);
    }
  }
  // Once for each block: the sum does not depend on the order.
  mine = block_sum<threads>(mine);
  if (threadIdx.x == 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(mine));
}

__global__ void __launch_bounds__(threads)
    poison_kernel(std::uint64_t* words, std::size_t count, std::size_t step) {
  for (std::size_t i = step * global_thread(); i < count; i += step * global_threads())
    __stcs(words + i, poison_word);
}

}  // namespace

void poison(void* data, std::size_t bytes, std::size_t step, void* stream) {
  const unsigned blocks = resident_blocks(poison_kernel, threads, 0, bytes / 8 / (step * threads) + 1);
  launch(poison_kernel, dim3(blocks), dim3(threads), 0, stream, static_cast<std::uint64_t*>(data), bytes / 8,
         step);
}

void digest(const void* data, std::size_t bytes, std::uint64_t first_word, std::uint64_t* sum, void* stream) {
  const std::size_t pairs = bytes / 16;
  const unsigned blocks = resident_blocks(digest_kernel, threads, 0, pairs / (4 * threads) + 1);
  launch(digest_kernel, dim3(blocks), dim3(threads), 0, stream, static_cast<const ulonglong2*>(data), pairs,
         static_cast<const unsigned char*>(data) + 16 * pairs, static_cast<unsigned>(bytes % 16), first_word,
         sum);
}

}  // namespace assay::kernels::cuda
