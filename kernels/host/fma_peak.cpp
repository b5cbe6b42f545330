// SPDX-License-Identifier: Apache-2.0
#include "kernels/fma_peak.hpp"

#define ASSAY_BODY "kernels/host/fma_peak_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {

const char* fma_isa() noexcept { return to_string(host_isa()); }
double fma_burn_fp32(std::uint64_t rounds) noexcept { return ASSAY_DISPATCH(burn_fp32, rounds); }
double fma_burn_fp64(std::uint64_t rounds) noexcept { return ASSAY_DISPATCH(burn_fp64, rounds); }

}  // namespace assay::kernels::host
