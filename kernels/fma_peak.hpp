// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace assay::kernels {
namespace host {

/// The widest vector unit of this CPU that the kernel uses: "avx512", "avx2", "neon", "generic".
const char* fma_isa() noexcept;

/// Runs `rounds` rounds of independent multiply-adds in registers on the calling thread and returns the
/// floating-point operations done (2 per FMA and lane). Single and double precision.
double fma_burn_fp32(std::uint64_t rounds) noexcept;
double fma_burn_fp64(std::uint64_t rounds) noexcept;

}  // namespace host

namespace cuda {
/// Queues `rounds` rounds of independent multiply-adds in the registers of as many threads as the GPU holds
/// at once, and returns the floating-point operations that will be done. Adds to `*escaped` (device memory)
/// the threads whose values left
/// (-2, 2), where the map they iterate stays: above 0, the arithmetic is broken and no rate may be told. CUDA
/// cores only: what tensor cores can do is measured by products of matrices.
double fma_burn_fp32(std::uint64_t rounds, unsigned long long* escaped, void* stream);
double fma_burn_fp64(std::uint64_t rounds, unsigned long long* escaped, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
