// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace assay::kernels::host {

/// The widest vector unit of this CPU that the kernel uses: "avx512", "avx2", "neon", "generic".
const char* fma_isa() noexcept;

/// Runs `rounds` rounds of independent multiply-adds in registers on the calling thread and returns the
/// floating-point operations done (2 per FMA and lane). Single and double precision.
double fma_burn_fp32(std::uint64_t rounds) noexcept;
double fma_burn_fp64(std::uint64_t rounds) noexcept;

}  // namespace assay::kernels::host
