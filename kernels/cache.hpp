// SPDX-License-Identifier: Apache-2.0
// The L2 cache of a GPU, emptied so that the next read of a word comes from memory.
#pragma once

#include <cstddef>

namespace assay::kernels::cuda {

/// Times the size of the cache that `evict` should read: caches are hashed, and in two halves on some GPUs.
inline constexpr std::size_t evict_multiple = 4;

/// Queues a read of all of `buffer` (16-byte aligned device memory, left as it is) by plain loads. `sink`: 8
/// bytes of device memory that may be written.
void evict(const void* buffer, std::size_t bytes, unsigned long long* sink, void* stream);

}  // namespace assay::kernels::cuda
