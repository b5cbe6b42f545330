// SPDX-License-Identifier: Apache-2.0
// What a GPU cannot exceed, computed from what the driver says of it; no table of product names.
#pragma once

#include <string>

#include "topology/topology.hpp"

namespace assay {

struct GpuBound {
  double rate = unsupported;  ///< B/s or FLOP/s; NaN where a figure is missing or the architecture is unknown
  const char* by = "";        ///< what bounds it, for people
  double floor = 0;           ///< fraction of `rate` below which the GPU is found slow
  bool known() const noexcept { return rate > 0; }
};

/// Memory clock times two transfers times bus width. Floor 0.75: triad reaches 0.85 to 0.93 on HBM, and ECC
/// takes up to 0.1 more of GDDR.
GpuBound memory_bound(const Gpu& gpu);

/// Host link, one way: transfers per second times lanes times encoding (8b/10b, 128b/130b, PCIe 6: 242 of 256
/// bytes). Floor 0.6: packets of 128 to 256 bytes carry 0.79 to 0.9 of it.
GpuBound host_link_bound(const Gpu& gpu);

/// Products of matrices of a number type: multiprocessors times their highest clock times dense operations
/// per clock, from NVIDIA's architecture white papers for compute capabilities 7.0 to 10.0. Floor 0.3: at
/// their power limit GPUs reach 0.4 (boards of 70 W) to 0.85.
GpuBound math_bound(const Gpu& gpu, const std::string& dtype);

}  // namespace assay
