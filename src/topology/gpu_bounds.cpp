// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_bounds.hpp"

#include <array>
#include <cmath>
#include <map>

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

struct Architecture {
  double cores;  ///< CUDA cores of one multiprocessor
  /// Dense operations of one multiprocessor and clock; tf32 is what fp32 products may use, fp64 what tensor
  /// cores do where they have it.
  std::map<std::string, double> operations;
};

const std::map<std::string, Architecture>& architectures() {
  static const std::map<std::string, Architecture> table = {
      {"7.0", {64, {{"fp64", 64}, {"fp32", 128}, {"fp16", 1024}}}},
      {"7.5", {64, {{"fp64", 4}, {"fp32", 128}, {"fp16", 1024}, {"int8", 2048}}}},
      {"8.0",
       {64, {{"fp64", 128}, {"fp32", 128}, {"tf32", 1024}, {"fp16", 2048}, {"bf16", 2048}, {"int8", 4096}}}},
      {"8.6",
       {128, {{"fp64", 4}, {"fp32", 256}, {"tf32", 512}, {"fp16", 1024}, {"bf16", 1024}, {"int8", 2048}}}},
      {"8.9",
       {128,
        {{"fp64", 4},
         {"fp32", 256},
         {"tf32", 512},
         {"fp16", 1024},
         {"bf16", 1024},
         {"fp8", 2048},
         {"int8", 2048}}}},
      {"9.0",
       {128,
        {{"fp64", 256},
         {"fp32", 256},
         {"tf32", 2048},
         {"fp16", 4096},
         {"bf16", 4096},
         {"fp8", 8192},
         {"int8", 8192}}}},
      {"10.0",
       {128,
        {{"fp64", 128},
         {"fp32", 256},
         {"tf32", 4096},
         {"fp16", 8192},
         {"bf16", 8192},
         {"fp8", 16384},
         {"int8", 16384}}}},
  };
  return table;
}

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
  const auto architecture = architectures().find(gpu.compute);
  if (architecture == architectures().end()) return bound;
  const auto operations = architecture->second.operations.find(dtype == "fp8_fast" ? "fp8" : dtype);
  if (operations == architecture->second.operations.end()) return bound;
  bound.rate = gpu.shader_cores / architecture->second.cores * gpu.sm_clock_max_hz * operations->second;
  return bound;
}

}  // namespace assay
