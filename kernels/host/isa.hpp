// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::kernels::host {

/// Instruction sets the host kernels exist for. `generic` is SSE2 on x86-64 and NEON on AArch64.
enum class Isa { generic, avx2, avx512 };

/// "neon" for `generic` on AArch64.
const char* to_string(Isa isa) noexcept;

/// The widest set that both the CPU and the kernel of this machine allow. The environment variable ASSAY_ISA
/// (generic, avx2, avx512) lowers it, never raises it: tests run every path with it. Read once.
Isa host_isa() noexcept;

/// What cpuid offers, whatever ASSAY_ISA says.
Isa cpu_isa() noexcept;

}  // namespace assay::kernels::host
