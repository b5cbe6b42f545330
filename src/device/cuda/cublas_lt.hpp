// SPDX-License-Identifier: Apache-2.0
// Private to src/device/cuda: cuBLASLt, opened when a GPU is used.
#pragma once

#include <cublasLt.h>

#include <string>

#include "base/shared_object.hpp"

namespace assay::cuda {

/// The functions that assay calls, by their names without the prefix.
struct CublasLt {
  /// Opens the library. Throws Error(device).
  CublasLt();

  SharedObject library;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) check_algorithm = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) algorithm_get = nullptr;
  decltype(&cublasLtMatmulAlgoConfigSetAttribute) algorithm_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetIds) algorithm_ids = nullptr;
  decltype(&cublasLtMatmulAlgoInit) algorithm_init = nullptr;
  decltype(&cublasLtMatmulAlgoCapGetAttribute) capability = nullptr;
};

/// Throws Error(device).
void check(cublasStatus_t status, const char* what);

/// "13.1.0" of 130100, as cuBLAS numbers itself.
std::string cublas_version_text(std::size_t version);

}  // namespace assay::cuda
