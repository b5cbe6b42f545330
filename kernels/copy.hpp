// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace assay::kernels::cuda {

/// Copies by threads, with 16-byte accesses where both starts allow: memory of this GPU, or of another one
/// that is open to it. As many blocks as fit the GPU; the copy engines take no part.
void copy(void* to, const void* from, std::size_t bytes, void* stream);

}  // namespace assay::kernels::cuda
