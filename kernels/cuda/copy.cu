// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.hpp"

#include "kernels/cuda/grid.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 512;
constexpr int in_flight = 4;

__global__ void __launch_bounds__(threads)
    copy_vectors(ulonglong2* to, const ulonglong2* from, std::size_t count) {
  const std::size_t stride = global_threads();
  std::size_t i = global_thread();
  for (; i + (in_flight - 1) * stride < count; i += in_flight * stride) {
    ulonglong2 v[in_flight];
    ASSAY_UNROLL
    for (int k = 0; k < in_flight; ++k) v[k] = __ldcs(from + i + static_cast<std::size_t>(k) * stride);
    ASSAY_UNROLL
    for (int k = 0; k < in_flight; ++k) __stcs(to + i + static_cast<std::size_t>(k) * stride, v[k]);
  }
  for (; i < count; i += stride) __stcs(to + i, __ldcs(from + i));
}

__global__ void __launch_bounds__(threads)
    copy_bytes(unsigned char* to, const unsigned char* from, std::size_t count) {
  for (std::size_t i = global_thread(); i < count; i += global_threads()) to[i] = from[i];
}

}  // namespace

void copy(void* to, const void* from, std::size_t bytes, void* stream) {
  const bool aligned =
      (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 16 == 0;
  const std::size_t vectors = aligned ? bytes / 16 : 0, rest = bytes - 16 * vectors;
  if (vectors > 0) {
    const unsigned blocks = resident_blocks(copy_vectors, threads, 0, vectors / (in_flight * threads) + 1);
    launch(copy_vectors, dim3(blocks), dim3(threads), 0, stream, static_cast<ulonglong2*>(to),
           static_cast<const ulonglong2*>(from), vectors);
  }
  if (rest > 0) {
    const unsigned blocks = resident_blocks(copy_bytes, threads, 0, rest / threads + 1);
    launch(copy_bytes, dim3(blocks), dim3(threads), 0, stream, static_cast<unsigned char*>(to) + 16 * vectors,
           static_cast<const unsigned char*>(from) + 16 * vectors, rest);
  }
}

}  // namespace assay::kernels::cuda
