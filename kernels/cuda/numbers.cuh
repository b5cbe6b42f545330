// SPDX-License-Identifier: Apache-2.0
// Loads and stores of fp32 and bf16 as 16-byte accesses of eight elements, and sums over warps and blocks
// whose order is fixed.
#pragma once

#include "kernels/bfloat.hpp"
#include "kernels/cuda/launch.cuh"

namespace assay::kernels::cuda {

inline constexpr unsigned all_lanes = 0xffffffffu;

/// Two floats rounded to bf16, `low` in the lower half.
__device__ inline unsigned pack_bf16(float low, float high) {
#ifdef ASSAY_CUDA_EMULATION
  return unsigned{to_bfloat(low).bits} | unsigned{to_bfloat(high).bits} << 16;
#else
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#endif
}
__device__ inline float low_bf16(unsigned packed) { return __uint_as_float(packed << 16); }
__device__ inline float high_bf16(unsigned packed) { return __uint_as_float(packed & 0xffff0000u); }

__device__ inline float value_of(float x) { return x; }
__device__ inline float value_of(Bfloat x) { return __uint_as_float(unsigned{x.bits} << 16); }
__device__ inline void put(float& to, float x) { to = x; }
__device__ inline void put(Bfloat& to, float x) { to.bits = static_cast<std::uint16_t>(pack_bf16(x, 0)); }

/// Eight elements at `p`, which is 16-byte aligned.
__device__ inline void load8(const float* p, float (&v)[8]) {
  const auto* q = reinterpret_cast<const float4*>(p);
  const float4 a = q[0], b = q[1];
  v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
  v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}
__device__ inline void load8(const Bfloat* p, float (&v)[8]) {
  const uint4 a = *reinterpret_cast<const uint4*>(p);
  v[0] = low_bf16(a.x), v[1] = high_bf16(a.x), v[2] = low_bf16(a.y), v[3] = high_bf16(a.y);
  v[4] = low_bf16(a.z), v[5] = high_bf16(a.z), v[6] = low_bf16(a.w), v[7] = high_bf16(a.w);
}
__device__ inline void store8(float* p, const float (&v)[8]) {
  auto* q = reinterpret_cast<float4*>(p);
  q[0] = make_float4(v[0], v[1], v[2], v[3]);
  q[1] = make_float4(v[4], v[5], v[6], v[7]);
}
__device__ inline void store8(Bfloat* p, const float (&v)[8]) {
  *reinterpret_cast<uint4*>(p) =
      make_uint4(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7]));
}
/// What store8 and load8 make of values: nothing for fp32.
__device__ inline void as_stored(const float*, float (&)[8]) {}
__device__ inline void as_stored(const Bfloat*, float (&v)[8]) {
  ASSAY_UNROLL
  for (int i = 0; i < 8; i += 2) {
    const unsigned packed = pack_bf16(v[i], v[i + 1]);
    v[i] = low_bf16(packed);
    v[i + 1] = high_bf16(packed);
  }
}

/// Over the lanes of a warp, the same bits in all of them.
__device__ inline float warp_sum(float x) {
  ASSAY_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(all_lanes, x, distance);
  return x;
}
__device__ inline float warp_max(float x) {
  ASSAY_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(all_lanes, x, distance));
  return x;
}

/// Over a block of whole warps, the same bits in all threads. `room` is shared memory for one float per warp;
/// it must not be used before the next barrier.
__device__ inline float block_sum(float x, float* room) {
  const unsigned warps = blockDim.x / 32;
  x = warp_sum(x);
  if (warps == 1) return x;
  if (lane() == 0) room[threadIdx.x / 32] = x;
  __syncthreads();
  float sum = 0;
  for (unsigned w = 0; w < warps; ++w) sum += room[w];
  return sum;
}

/// Blocks of `threads` for `count` items.
inline unsigned blocks_for(std::size_t count, unsigned threads) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

}  // namespace assay::kernels::cuda
