// SPDX-License-Identifier: Apache-2.0
// Products of warp groups (four warps in a row) on the tensor cores of compute capability 9.0, for code that
// is compiled for sm_90a. Their right sides, and left sides that are no registers, lie in shared memory in
// panels: 64 columns wide, a row of 128 bytes whose eight pieces are exchanged by the row number, each panel
// 1024-byte aligned (PTX ISA, "128-byte swizzle").
#pragma once

#include "kernels/cuda/mma.cuh"

namespace assay::kernels::cuda {

/// Where the 16-byte piece `piece` of a row lies in panels of `rows` rows.
template <unsigned rows>
__device__ inline unsigned panel_place(unsigned row, unsigned piece) {
  return piece / 8 * (rows * 64) + row * 64 + (piece % 8 ^ row % 8) * 8;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// Of a place in panels of `rows` rows: how an instruction finds what follows. 1024 bytes are eight rows.
template <unsigned rows>
__device__ inline unsigned long long matrix_at(const Bfloat* p) {
  return static_cast<unsigned long long>((shared_address(p) & 0x3ffff) >> 4) |
         static_cast<unsigned long long>(rows * 128 >> 4) << 16 | 1024ULL >> 4 << 32 | 1ULL << 62;
}

#define ASSAY_FOUR(c, j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define ASSAY_32(c, j)                                                                                      \
  ASSAY_FOUR(c, j), ASSAY_FOUR(c, j + 1), ASSAY_FOUR(c, j + 2), ASSAY_FOUR(c, j + 3), ASSAY_FOUR(c, j + 4), \
      ASSAY_FOUR(c, j + 5), ASSAY_FOUR(c, j + 6), ASSAY_FOUR(c, j + 7)
#define ASSAY_NAMES_32                                                                              \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, " \
  "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ASSAY_NAMES_64                                                                                \
  ASSAY_NAMES_32                                                                                      \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, " \
  "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/// Starts c[64, N] += a[64, 16] b[N, 16]^T, or = where it is the `first`; rows of both in shared memory.
template <unsigned N, bool first>
__device__ inline void start_rows(float (&c)[N / 8][4], unsigned long long a, unsigned long long b) {
  static_assert(N == 64 || N == 128);
  if constexpr (N == 64)
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" ASSAY_NAMES_32
                 "}, %32, %33, %34, 1, 1, 0, 0;"
                 : ASSAY_32(c, 0)
                 : "l"(a), "l"(b), "n"(first ? 0 : 1));
  else
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" ASSAY_NAMES_64
                 "}, %64, %65, %66, 1, 1, 0, 0;"
                 : ASSAY_32(c, 0), ASSAY_32(c, 8)
                 : "l"(a), "l"(b), "n"(first ? 0 : 1));
}

/// Starts c[64, N] += a[64, 16] b[16, N]; a as fragments like those of mma, rows of b in shared memory.
template <unsigned N>
__device__ inline void start_columns(float (&c)[N / 8][4], const unsigned (&a)[4], unsigned long long b) {
  static_assert(N == 64 || N == 128);
  if constexpr (N == 64)
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" ASSAY_NAMES_32
                 "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                 : ASSAY_32(c, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  else
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" ASSAY_NAMES_64
                 "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                 : ASSAY_32(c, 0), ASSAY_32(c, 8)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/// The fragment of an 8 x 8 matrix, transposed. By all lanes.
__device__ inline unsigned transposed(unsigned matrix) {
  unsigned turned;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(matrix));
  return turned;
}

#undef ASSAY_FOUR
#undef ASSAY_32
#undef ASSAY_NAMES_32
#undef ASSAY_NAMES_64

/// Before products are started: registers and shared memory that this thread wrote are seen by them.
__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// What was started is a group.
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// All groups but the last `most` are complete; their results are `c`, not to be touched before.
template <int most, unsigned N>
__device__ inline void wait_products(float (&c)[N][4]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(most) : "memory");
  ASSAY_UNROLL
  for (unsigned n = 0; n < N; ++n) ASSAY_UNROLL
  for (unsigned i = 0; i < 4; ++i) asm volatile("" : "+f"(c[n][i])::"memory");
}
/// Tensor cores see what this thread's copies brought to shared memory.
__device__ inline void publish_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#endif

}  // namespace assay::kernels::cuda
