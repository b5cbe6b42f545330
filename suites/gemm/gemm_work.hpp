// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "suite/suite.hpp"
#include "workload/verified_product.hpp"

namespace assay::gemm {

/// One case as Case::parameters describe it.
struct GemmWork {
  NumType type = NumType::fp32;
  std::size_t n = 0;
  bool together = true;
  double sustained_s = 0;  ///< > 0: a time series of this length that does not stop early
  Output output = Output::native;

  GemmShape shape() const noexcept { return {n, n, n}; }
};
GemmWork work_from(const Case& c);

/// What a GPU multiplies with (algorithms.hpp); null where the library chooses by itself.
struct Choice;

/// The type of a name such as "fp32"; throws Error(usage).
NumType type_from(const std::string& text);

/// To start work on a GPU and to learn of its end takes some 10 us (an estimate), which is a two-thousandth
/// of this much work.
inline constexpr double hidden_s = 20e-3;

/// A product that takes so long tells its rate at the first time: what that one starts or loads hardly
/// counts.
inline constexpr double long_product_s = 1;

/// Seconds of fma_peak that a case spends on its own peak.
double peak_seconds(Level level) noexcept;

/// Adds what a run-time fact says about the results: library, kernels and threads.
void record_identity(Context& context);

/// A loop of multiply-adds in registers left the range in which its values stay: wrong results, no rate.
void record_wrong_arithmetic(Context& context);

void run_throughput(const Case& c, const Choice* choice, Context& context);
void run_peak(const Case& c, Context& context);
void run_exact(const Case& c, Context& context);

}  // namespace assay::gemm
