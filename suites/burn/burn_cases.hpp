// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"

namespace assay::burn {

/// Compute, memory and all-reduce at the same time, and compute in pulses (--burn.pulse). They store their
/// samples in `context` and throw Error as any case does. `algorithm`: of the products; null: the library
/// chooses.
void run_mixed(const Case& c, const GemmAlgorithm* algorithm, Context& context);
void run_pulse(const Case& c, Context& context);

}  // namespace assay::burn
