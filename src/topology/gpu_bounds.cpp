// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_bounds.hpp"

#include <array>
#include <cmath>

#include "base/gpu_architecture.hpp"

namespace assay {
namespace {

/// Of one lane, B/s in one direction, by PCIe generation.
constexpr std::array lane_rates = {0.0,
                                   2.5e9 / 8 * 8 / 10,
                                   5e9 / 8 * 8 / 10,
                                   8e9 / 8 * 128 / 130,
                                   16e9 / 8 * 128 / 130,
                                   32e9 / 8 * 128 / 130,
                                   64e9 / 8 * 242 / 256};

}  // namespace

GpuBound memory_bound(const Gpu& gpu) {
  return {2 * gpu.memory_clock_max_hz * gpu.memory_bus_bits / 8, "memory clock x bus width",
          bounded::memory.floor};
}

GpuBound local_copy_bound(const Gpu& gpu) {
  GpuBound bound = memory_bound(gpu);
  bound.floor = bounded::local_copy.floor;
  return bound;
}

GpuBound host_link_bound(const Gpu& gpu) {
  GpuBound bound{unsupported, "PCIe generation x lanes", bounded::host_copy.floor};
  const double generation = gpu.pcie_generation_max;
  if (generation >= 1 && generation < static_cast<double>(lane_rates.size()))
    bound.rate = lane_rates[static_cast<std::size_t>(generation)] * gpu.pcie_width_max;
  return bound;
}

GpuBound math_bound(const Gpu& gpu, const std::string& dtype) {
  GpuBound bound{unsupported, "SMs x clock x operations", bounded::product.floor};
  const GpuArchitecture* const architecture = gpu_architecture(gpu.compute);
  if (architecture == nullptr || architecture->operations(dtype) == 0) {
    bound.by = "none: operations per clock of this compute capability and type are not known";
    return bound;
  }
  bound.rate = gpu.shader_cores / architecture->cores * gpu.sm_clock_max_hz * architecture->operations(dtype);
  return bound;
}

}  // namespace assay
