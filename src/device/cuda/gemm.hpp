// SPDX-License-Identifier: Apache-2.0
// Private to src/device/cuda: matrix products by cuBLASLt, with an algorithm that is chosen once and then
// kept.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "device/cuda/cublas_lt.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/device.hpp"

namespace assay::cuda {

/// All products run on one stream with one workspace, without split-K: the same bits every time, on every GPU
/// of a kind.
class Gemm {
 public:
  Gemm(const cudaDeviceProp& properties, cudaStream_t stream);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  static bool supports(const cudaDeviceProp& gpu, NumType type) noexcept;
  /// "13.1.0".
  std::string version() const;
  void run(NumType type, const Matmul& shape, const void* a, const void* b, void* c);
  /// Times the candidates of the library on these operands and keeps the fastest.
  GemmAlgorithm tune(NumType type, const Matmul& shape, const void* a, const void* b, void* c);
  /// From now on this product runs with `algorithm`. Throws Error(device) when this GPU cannot.
  void set_algorithm(NumType type, const Matmul& shape, const GemmAlgorithm& algorithm);

 private:
  struct Plan;
  using Key = std::tuple<NumType, Output, std::size_t, std::size_t, std::size_t, bool, bool, bool>;

  Plan& plan(NumType type, const Matmul& shape);
  using Candidates = std::vector<cublasLtMatmulHeuristicResult_t>;
  Candidates candidates(const Plan& plan, int count) const;
  /// Adds tiles and stages of all algorithms of the library, until there are `count`.
  void add_by_ids(const Plan& plan, std::size_t count, Candidates& found) const;
  std::vector<std::uint32_t> choices(const cublasLtMatmulAlgo_t& algorithm,
                                     cublasLtMatmulAlgoCapAttributes_t capability) const;
  void start(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b,
             void* c) const;
  double seconds(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b,
                 void* c, int runs) const;
  std::string describe(const cublasLtMatmulAlgo_t& algorithm) const;

  CublasLt lt_;
  cublasLtHandle_t handle_ = nullptr;
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  const cudaDeviceProp gpu_;
  Buffer workspace_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace assay::cuda
