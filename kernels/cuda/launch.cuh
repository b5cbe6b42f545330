// SPDX-License-Identifier: Apache-2.0
// How kernels are started and what they need beyond C++: all that differs between a GPU and its emulation on
// the host (tests/emulation), so that nothing else does.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace assay::kernels::cuda {

/// Queues kernel(args...) on `stream` (a cudaStream_t). Errors are left for cudaGetLastError.
template <typename... Params, typename... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, std::size_t shared_bytes, void* stream,
            Args... args) {
#ifdef ASSAY_CUDA_EMULATION
  emulation::enqueue(stream, [=] {
    emulation::run_grid(grid, block, shared_bytes, [&] { kernel(static_cast<Params>(args)...); });
  });
#else
  // clang-format off
  kernel<<<grid, block, shared_bytes, static_cast<cudaStream_t>(stream)>>>(static_cast<Params>(args)...);
  // clang-format on
#endif
}

/// Dynamic shared memory of the block as an array of T: ASSAY_DYNAMIC_SHARED(float, tile);
#ifdef ASSAY_CUDA_EMULATION
#define ASSAY_DYNAMIC_SHARED(type, name) type* name = static_cast<type*>(::emulation::self().shared)
#else
#define ASSAY_DYNAMIC_SHARED(type, name)                          \
  extern __shared__ __align__(1024) unsigned char assay_shared[]; \
  type* name = reinterpret_cast<type*>(assay_shared)
#endif

/// Unrolls the loop that follows, wholly or by a number; nothing on the host.
#define ASSAY_PRAGMA(text) _Pragma(#text)
#ifdef ASSAY_CUDA_EMULATION
#define ASSAY_UNROLL
#define ASSAY_UNROLL_BY(n)
#else
#define ASSAY_UNROLL _Pragma("unroll")
#define ASSAY_UNROLL_BY(n) ASSAY_PRAGMA(unroll n)
#endif

/// The multiprocessor and the warp slot that run this thread: where a wrong value was seen.
__device__ inline unsigned multiprocessor() {
#ifdef ASSAY_CUDA_EMULATION
  return ::emulation::self().sm;
#else
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
#endif
}
__device__ inline unsigned warp_slot() {
#ifdef ASSAY_CUDA_EMULATION
  return ::emulation::self().warp;
#else
  unsigned id;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(id));
  return id;
#endif
}
__device__ inline unsigned lane() {
#ifdef ASSAY_CUDA_EMULATION
  return ::emulation::self().lane;
#else
  unsigned id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
#endif
}
/// Nanoseconds of a clock that all multiprocessors of a GPU share.
__device__ inline unsigned long long global_timer_ns() {
#ifdef ASSAY_CUDA_EMULATION
  return static_cast<unsigned long long>(clock64());
#else
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
#endif
}

}  // namespace assay::kernels::cuda
