// SPDX-License-Identifier: Apache-2.0
// Private to src/device: which kernels OpenBLAS should have chosen.
#pragma once

#include <string>

#include "kernels/host/isa.hpp"

namespace assay {

/// The value of OPENBLAS_CORETYPE that suits a CPU with `cpu`, given the kernels `core` that OpenBLAS chose
/// by itself; "" when they are as wide as the CPU's vectors, or when there is no OpenBLAS (`core` empty).
std::string wanted_blas_core(const std::string& core, kernels::host::Isa cpu);

}  // namespace assay
