// SPDX-License-Identifier: Apache-2.0
// All PTX of the kernels on tensor cores, in small functions with a twin for the emulation on the host.
#pragma once

#include "kernels/bfloat.hpp"
#include "kernels/cuda/launch.cuh"
#ifdef ASSAY_CUDA_EMULATION
#include "emulation/tensor.hpp"
#endif

namespace assay::kernels::cuda {

/// Of a place in shared memory, the address for PTX.
#ifndef ASSAY_CUDA_EMULATION
__device__ inline unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
#endif

/// c[16, 8] += a[16, 16] b[16, 8] by a warp, bf16 summed in fp32; b0 and b1 are the halves of b's fragment.
__device__ inline void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#ifdef ASSAY_CUDA_EMULATION
  ::emulation::mma_bf16(c, a, b0, b1);
#else
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/// Four 8 x 8 matrices from shared memory into fragments; lane l gives row l % 8 of matrix l / 8, 16-byte
/// aligned.
__device__ inline void load_matrices(unsigned (&r)[4], const Bfloat* row) {
#ifdef ASSAY_CUDA_EMULATION
  ::emulation::ldmatrix(r, row, false);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
#endif
}
/// The same, each matrix transposed.
__device__ inline void load_transposed(unsigned (&r)[4], const Bfloat* row) {
#ifdef ASSAY_CUDA_EMULATION
  ::emulation::ldmatrix(r, row, true);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
#endif
}

/// Starts a copy of 16 (4) bytes into shared memory, of zeros where not `valid`. `from` must be readable all
/// the same.
__device__ inline void copy_async_16(void* to, const void* from, bool valid) {
#ifdef ASSAY_CUDA_EMULATION
  ::emulation::AsyncCopies::mine().open.push_back({to, from, 16, valid});
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
#endif
}
__device__ inline void copy_async_4(void* to, const void* from, bool valid) {
#ifdef ASSAY_CUDA_EMULATION
  ::emulation::AsyncCopies::mine().open.push_back({to, from, 4, valid});
#else
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(valid ? 4 : 0)
               : "memory");
#endif
}
/// What this thread started since the last call is a group.
__device__ inline void commit_copies() {
#ifdef ASSAY_CUDA_EMULATION
  auto& mine = ::emulation::AsyncCopies::mine();
  mine.groups.push_back(std::move(mine.open));
  mine.open.clear();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// All groups of this thread but the last `most` are there. Other threads see them after a barrier.
template <int most>
__device__ inline void wait_copies() {
#ifdef ASSAY_CUDA_EMULATION
  ::emulation::AsyncCopies::mine().wait(most);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(most) : "memory");
#endif
}

/// 2^x to about 2 units in the last place; 0 for -infinity, and for what would be denormal.
__device__ inline float exp2_fast(float x) {
#ifdef ASSAY_CUDA_EMULATION
  const float y = std::exp2(x);
  return y < 0x1p-126f ? 0.0f : y;
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

}  // namespace assay::kernels::cuda
