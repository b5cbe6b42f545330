// SPDX-License-Identifier: Apache-2.0
// What one multiprocessor of a GPU does per clock, by compute capability: the one table for bounds and peaks.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace assay {

struct GpuArchitecture {
  double cores;        ///< CUDA cores of one multiprocessor
  const char* source;  ///< of the operations, where nothing else is said NVIDIA's white paper
  /// Dense operations of one multiprocessor and clock, a multiply-add counted as two, by number type. tf32 is
  /// what fp32 products may use, fp64 what tensor cores do where they have it. Boards of one capability may
  /// have half of it where they sum in fp32 (GeForce): it is the most.
  std::map<std::string, double, std::less<>> per_clock;

  /// 0 where the architecture has no such products. What begins with "fp8" is fp8: a datasheet's rate is that
  /// of fast accumulation.
  double operations(std::string_view type) const noexcept;
};

/// By compute capability, "9.0". Null for one that is not known (among them 10.3 and 12.1): what it can do is
/// then not bounded.
const GpuArchitecture* gpu_architecture(std::string_view compute);

}  // namespace assay
