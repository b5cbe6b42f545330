// SPDX-License-Identifier: Apache-2.0
// What kernels tell about wrong words: counts per block in shared memory, added to the buffer when the block
// ends, and records. Private to the kernels that verify memory.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/pattern.hpp"

namespace assay::kernels::cuda {

inline constexpr unsigned all_lanes = 0xffffffffu;

__host__ __device__ inline DeviceRecord* records_of(DeviceErrors* errors) {
  return reinterpret_cast<DeviceRecord*>(errors + 1);
}

/// Of one block, in shared memory.
struct BlockErrors {
  unsigned long long count;
  unsigned long long bits[2][64];
};

__device__ inline void begin_block(BlockErrors& mine) {
  for (unsigned i = threadIdx.x; i < 128; i += blockDim.x) (&mine.bits[0][0])[i] = 0;
  if (threadIdx.x == 0) mine.count = 0;
  __syncthreads();
}

__device__ inline void end_block(const BlockErrors& mine, DeviceErrors* errors) {
  __syncthreads();
  if (mine.count == 0) return;
  for (unsigned i = threadIdx.x; i < 128; i += blockDim.x) {
    const unsigned long long n = (&mine.bits[0][0])[i];
    if (n != 0) atomicAdd(&errors->bits[0][0] + i, n);
  }
  if (threadIdx.x == 0) atomicAdd(&errors->count, mine.count);
}

/// Called by all lanes of a warp, each with a word of its own, wrong or not: votes count them, so that memory
/// that is wrong everywhere is counted about as fast as it is read. Returns whether this lane's word got a
/// record, which the caller completes.
__device__ inline DeviceRecord* count_wrong(std::uint64_t expected, std::uint64_t actual, BlockErrors& mine,
                                            DeviceErrors* errors) {
  const std::uint64_t differs = expected ^ actual;
  const unsigned wrong = __ballot_sync(all_lanes, differs != 0);
  if (wrong == 0) return nullptr;
  const bool first = lane() == 0;
  if (first) atomicAdd(&mine.count, static_cast<unsigned long long>(__popc(wrong)));
  std::uint64_t any = __reduce_or_sync(all_lanes, static_cast<unsigned>(differs >> 32));
  any = any << 32 | __reduce_or_sync(all_lanes, static_cast<unsigned>(differs));
  for (; any != 0; any &= any - 1) {
    const int bit = __ffsll(static_cast<long long>(any)) - 1;
    const unsigned here = __ballot_sync(all_lanes, static_cast<int>(differs >> bit & 1));
    const unsigned ones = __ballot_sync(all_lanes, static_cast<int>(differs >> bit & actual >> bit & 1));
    if (first && ones != 0) atomicAdd(&mine.bits[0][bit], static_cast<unsigned long long>(__popc(ones)));
    if (first && here != ones)
      atomicAdd(&mine.bits[1][bit], static_cast<unsigned long long>(__popc(here ^ ones)));
  }
  if (differs == 0 || *static_cast<volatile unsigned long long*>(&errors->kept) >= errors->capacity)
    return nullptr;
  const unsigned long long slot = atomicAdd(&errors->kept, 1ULL);
  return slot < errors->capacity ? records_of(errors) + slot : nullptr;
}

__device__ inline void fill_record(DeviceRecord& record, const std::uint64_t* at, std::uint64_t index,
                                   std::uint64_t expected, std::uint64_t actual) {
  record.index = index;
  record.expected = expected;
  record.actual = actual;
  record.reread[0] = record.reread[1] = __ldcv(reinterpret_cast<const unsigned long long*>(at));
  record.sm = static_cast<std::int32_t>(multiprocessor());
  record.warp = static_cast<std::int32_t>(warp_slot());
  record.lane = static_cast<std::int32_t>(lane());
}

}  // namespace assay::kernels::cuda
