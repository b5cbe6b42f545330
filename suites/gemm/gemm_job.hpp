// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/device.hpp"
#include "run/suite.hpp"

namespace assay::gemm {

/// Where the matrices of one case lie in the arena: `inputs` pairs (A, B), then `outputs` of C, each on its
/// own pages. Output slot s is computed from input pair s % inputs.
struct Layout {
  std::size_t result_bytes = 0, stride = 0;  ///< of C; between matrices
  std::size_t inputs = 1, outputs = 2;

  std::size_t bytes() const noexcept { return (2 * inputs + outputs) * stride; }
  std::size_t a(std::size_t pair) const noexcept { return 2 * pair * stride; }
  std::size_t b(std::size_t pair) const noexcept { return (2 * pair + 1) * stride; }
  std::size_t c(std::size_t slot) const noexcept { return (2 * inputs + slot) * stride; }
};

/// The layout for matrices of one product that rotates through more than `cache_bytes` and fits `limit_bytes`: as many
/// pairs and results as that takes (2 to 8), else one pair and two results. `bytes()` exceeds the limit if
/// even that does not fit.
Layout make_layout(NumType type, const GemmShape& shape, std::uint64_t cache_bytes, std::uint64_t limit_bytes,
                   Output output = Output::native);

/// One case as Case::parameters describe it.
struct Job {
  NumType type = NumType::fp32;
  std::size_t n = 0;
  bool together = true;
  double sustained_s = 0;  ///< > 0: a time series of this length that does not stop early
  Output output = Output::native;

  GemmShape shape() const noexcept { return {n, n, n}; }
};
Job job_from(const Case& c);

/// What a GPU multiplies with (algorithms.hpp); null where the library chooses by itself.
struct Choice;

/// The type of a name such as "fp32"; throws Error(usage).
NumType type_from(const std::string& text);

/// Seconds of fma_peak that a case spends on its own peak.
double peak_seconds(Level level) noexcept;

/// Adds what a run-time fact says about the results: library, kernels and threads.
void record_identity(Context& context);

void run_throughput(const Case& c, const Choice* choice, Context& context);
void run_peak(const Case& c, Context& context);
void run_exact(const Case& c, Context& context);

}  // namespace assay::gemm
