// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cublas_lt.hpp"

#include "base/error.hpp"
#include "device/cuda/check.hpp"

namespace assay::cuda {
namespace {

#define ASSAY_TEXT_OF(x) #x
#define ASSAY_TEXT(x) ASSAY_TEXT_OF(x)

/// Of the major version this was built with: the structures of another one may differ.
std::vector<std::string> names() {
  const std::string name = "libcublasLt.so." ASSAY_TEXT(CUBLAS_VER_MAJOR);
  return {name, std::string(ASSAY_CUDA_LIBRARY_DIR) + "/" + name};
}

const char* status_text(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "not initialised";
    case CUBLAS_STATUS_ALLOC_FAILED: return "out of memory";
    case CUBLAS_STATUS_INVALID_VALUE: return "invalid argument";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "not on this GPU";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "execution failed";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "not supported";
    default: return "failed";
  }
}

}  // namespace

CublasLt::CublasLt() : library("ASSAY_CUBLASLT_LIBRARY", names(), "cublasLtCreate") {
  library.load(create, "cublasLtCreate");
  library.load(destroy, "cublasLtDestroy");
  library.load(version, "cublasLtGetVersion");
  library.load(matmul, "cublasLtMatmul");
  library.load(desc_create, "cublasLtMatmulDescCreate");
  library.load(desc_destroy, "cublasLtMatmulDescDestroy");
  library.load(desc_set, "cublasLtMatmulDescSetAttribute");
  library.load(layout_create, "cublasLtMatrixLayoutCreate");
  library.load(layout_destroy, "cublasLtMatrixLayoutDestroy");
  library.load(preference_create, "cublasLtMatmulPreferenceCreate");
  library.load(preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library.load(preference_set, "cublasLtMatmulPreferenceSetAttribute");
  library.load(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.load(check_algorithm, "cublasLtMatmulAlgoCheck");
  library.load(algorithm_get, "cublasLtMatmulAlgoConfigGetAttribute");
  library.load(algorithm_set, "cublasLtMatmulAlgoConfigSetAttribute");
  library.load(algorithm_ids, "cublasLtMatmulAlgoGetIds");
  library.load(algorithm_init, "cublasLtMatmulAlgoInit");
  library.load(capability, "cublasLtMatmulAlgoCapGetAttribute");
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::resource : ErrorKind::device,
              std::string(what) + ": " + status_text(status) + " (cuBLASLt status " +
                  std::to_string(static_cast<int>(status)) + ")");
}

std::string cublas_version_text(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace assay::cuda
