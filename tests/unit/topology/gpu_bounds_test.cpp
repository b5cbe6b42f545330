// SPDX-License-Identifier: Apache-2.0
// Bounds of GPUs against the figures of their data sheets.
#include "topology/gpu_bounds.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

Gpu gpu(const char* compute, double cores, double sm_mhz, double memory_mhz, double bits) {
  Gpu g;
  g.compute = compute, g.shader_cores = cores, g.sm_clock_max_hz = 1e6 * sm_mhz;
  g.memory_clock_max_hz = 1e6 * memory_mhz, g.memory_bus_bits = bits;
  return g;
}

TEST(GpuBounds, MemoryIsClockTimesTwoTimesWidth) {
  EXPECT_NEAR(memory_bound(gpu("9.0", 16896, 1830, 2619, 5120)).rate, 3.35e12, 0.01e12);  // H100 SXM
  EXPECT_NEAR(memory_bound(gpu("8.0", 6912, 1410, 1593, 5120)).rate, 2.039e12, 1e9);      // A100 80 GB
  EXPECT_NEAR(memory_bound(gpu("8.6", 9216, 1695, 6251, 384)).rate, 600e9, 1e9);          // A10
}

TEST(GpuBounds, ProductsAreMultiprocessorsTimesClockTimesOperations) {
  const Gpu h100 = gpu("9.0", 16896, 1830, 2619, 5120), a100 = gpu("8.0", 6912, 1410, 1593, 5120);
  EXPECT_NEAR(math_bound(h100, "bf16").rate, 989e12, 5e12);
  EXPECT_NEAR(math_bound(h100, "fp8").rate, 1979e12, 5e12);
  EXPECT_NEAR(math_bound(a100, "bf16").rate, 312e12, 1e12);
  EXPECT_NEAR(math_bound(a100, "tf32").rate, 156e12, 1e12);
  EXPECT_NEAR(math_bound(a100, "fp64").rate, 19.5e12, 0.1e12);
  EXPECT_NEAR(math_bound(gpu("8.9", 18176, 2520, 9001, 384), "fp8").rate, 733e12, 5e12);  // L40S
  EXPECT_FALSE(math_bound(a100, "fp8").known());
  EXPECT_FALSE(math_bound(gpu("99.0", 1000, 1000, 1000, 1000), "bf16").known());
}

TEST(GpuBounds, HostLinkIsGenerationTimesLanes) {
  Gpu g;
  g.pcie_generation_max = 5, g.pcie_width_max = 16;
  EXPECT_NEAR(host_link_bound(g).rate, 63e9, 0.1e9);
  g.pcie_generation_max = 3;
  EXPECT_NEAR(host_link_bound(g).rate, 15.75e9, 0.01e9);
  g.pcie_generation_max = 17;
  EXPECT_FALSE(host_link_bound(g).known());
}

TEST(GpuBounds, WhatTheDriverDoesNotTellIsUnknown) {
  EXPECT_FALSE(memory_bound(Gpu()).known());
  EXPECT_FALSE(host_link_bound(Gpu()).known());
  EXPECT_FALSE(math_bound(gpu("9.0", NAN, 1830, 2619, 5120), "bf16").known());
}

}  // namespace
}  // namespace assay
