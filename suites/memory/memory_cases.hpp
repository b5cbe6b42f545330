// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "run/suite.hpp"

namespace assay::memory {

/// read, write, copy or triad, alone (a row per device) or together (a row per NUMA domain).
void run_bandwidth(const Case& c, Context& context);
/// Dependent loads by one thread, devices of a node in turns.
void run_latency(const Case& c, Context& context);
/// A RAM pattern over the whole of the case's bytes, all ranks at once.
void run_pattern(const Case& c, Context& context);

/// Dependent loads of one sample: about 10 to 20 ms.
inline constexpr std::size_t chase_steps = 100'000;

}  // namespace assay::memory
