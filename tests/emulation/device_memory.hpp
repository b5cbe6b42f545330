// SPDX-License-Identifier: Apache-2.0
// Device memory of the emulation: shared memory objects, so that other processes can open them as CUDA IPC
// lets them. It starts as garbage, and a page that nobody may touch lies behind it.
#pragma once

#include <cstddef>

namespace emulation {

void* allocate(std::size_t bytes, int device);
bool release(void* p);
std::size_t allocated_bytes(int device);
/// The device of the allocation of this process that `p` is in; -1: none.
int device_of(const void* p) noexcept;

/// The name under which others open it; false when `p` is no start of an allocation.
bool name_of(const void* p, char* name, std::size_t length);
void* open_other(const char* name);
bool close_other(void* p);

/// Removes from `directory` the shared memory objects of emulated runs whose process no longer lives, as it
/// was killed; how many. Every process of an emulation does so before it allocates for the first time.
int remove_stale(const char* directory);

}  // namespace emulation
