// SPDX-License-Identifier: Apache-2.0
#include "base/gpu_architecture.hpp"

namespace assay {

double GpuArchitecture::operations(std::string_view type) const noexcept {
  const auto found = per_clock.find(type.substr(0, 3) == "fp8" ? "fp8" : type);
  return found == per_clock.end() ? 0 : found->second;
}

const GpuArchitecture* gpu_architecture(std::string_view compute) {
  using Operations = decltype(GpuArchitecture::per_clock);
  // Boards for graphics and inference with tensor cores of fp8: what one of 8.9 and one of 12.0 do is the
  // same.
  static const Operations without_fast_fp64{{"fp64", 4},    {"fp32", 256}, {"tf32", 512}, {"fp16", 1024},
                                            {"bf16", 1024}, {"fp8", 2048}, {"int8", 2048}};
  static const std::map<std::string, GpuArchitecture, std::less<>> table = {
      {"7.0", {64, "V100: 125 TFLOP/s fp16, 80 at 1.53 GHz", {{"fp64", 64}, {"fp32", 128}, {"fp16", 1024}}}},
      {"7.5",
       {64,
        "T4: 65 TFLOP/s fp16, 40 at 1.59 GHz",
        {{"fp64", 4}, {"fp32", 128}, {"fp16", 1024}, {"int8", 2048}}}},
      {"8.0",
       {64,
        "A100: 312 TFLOP/s bf16, 108 at 1.41 GHz",
        {{"fp64", 128}, {"fp32", 128}, {"tf32", 1024}, {"fp16", 2048}, {"bf16", 2048}, {"int8", 4096}}}},
      {"8.6",
       {128,
        "A10: 125 TFLOP/s bf16, 72 at 1.70 GHz",
        {{"fp64", 4}, {"fp32", 256}, {"tf32", 512}, {"fp16", 1024}, {"bf16", 1024}, {"int8", 2048}}}},
      {"8.9", {128, "L40S: 733 TFLOP/s fp8, 142 at 2.52 GHz", without_fast_fp64}},
      {"9.0",
       {128,
        "H100: 989 TFLOP/s bf16, 132 at 1.83 GHz",
        {{"fp64", 256},
         {"fp32", 256},
         {"tf32", 2048},
         {"fp16", 4096},
         {"bf16", 4096},
         {"fp8", 8192},
         {"int8", 8192}}}},
      {"10.0",
       {128,
        "B200: 2250 TFLOP/s bf16, 148 at 1.85 GHz",
        {{"fp64", 128},
         {"fp32", 256},
         {"tf32", 4096},
         {"fp16", 8192},
         {"bf16", 8192},
         {"fp8", 16384},
         {"int8", 16384}}}},
      {"12.0",
       {128, "RTX PRO 6000: 504 TFLOP/s bf16 summed in fp32, 188 at 2.62 GHz (hmc-tech.com's comparison)",
        without_fast_fp64}},
  };
  const auto found = table.find(compute);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace assay
