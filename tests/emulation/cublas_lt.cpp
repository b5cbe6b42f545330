// SPDX-License-Identifier: Apache-2.0
// Matrix products of the emulation: column-major as cuBLASLt's, by plain loops in the type that the library
// sums in. It refuses what the library refuses: fp8 and int8 other than transposed by not transposed, sizes
// that their tensor cores do not take.
#include "cublasLt.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gpus.hpp"
#include "kernels/number.hpp"

namespace kernels = assay::kernels;

struct EmulatedDesc {
  cublasComputeType_t compute;
  cudaDataType scale;
  bool transpose_a = false, transpose_b = false, fast = false;
};
struct EmulatedLayout {
  cudaDataType type;
  std::uint64_t rows, columns;
  std::int64_t leading;
};
struct EmulatedPreference {
  std::uint64_t workspace = 0;
  std::uint32_t schemes = ~0u;
  std::uint32_t alignment = 256;  ///< of all matrices, as the library takes it unless told otherwise
};

namespace {

constexpr int algorithms = 40;  ///< more than assay asks for at least
/// Words of an algorithm.
enum Word { id_word, alignment_word, tile_word, stages_word };

double number(const void* data, std::uint64_t i, cudaDataType type) {
  const auto at = [&](auto zero) {
    std::memcpy(&zero, static_cast<const char*>(data) + i * sizeof(zero), sizeof(zero));
    return zero;
  };
  switch (type) {
    case CUDA_R_64F: return at(0.0);
    case CUDA_R_32F: return static_cast<double>(at(0.0f));
    case CUDA_R_16F: return static_cast<double>(kernels::Fp16::decode(at(std::uint16_t{0})));
    case CUDA_R_16BF: return static_cast<double>(kernels::Bf16::decode(at(std::uint16_t{0})));
    case CUDA_R_8F_E4M3: return static_cast<double>(kernels::Fp8::decode(at(std::uint8_t{0})));
    case CUDA_R_8F_E5M2: return static_cast<double>(kernels::Fp8E5m2::decode(at(std::uint8_t{0})));
    case CUDA_R_8I: return at(std::int8_t{0});
    case CUDA_R_32I: return at(std::int32_t{0});
  }
  return 0;
}

void store(void* data, std::uint64_t i, cudaDataType type, double value) {
  const auto put = [&](auto v) { std::memcpy(static_cast<char*>(data) + i * sizeof(v), &v, sizeof(v)); };
  const auto f = static_cast<float>(value);
  switch (type) {
    case CUDA_R_64F: return put(value);
    case CUDA_R_32F: return put(f);
    case CUDA_R_16F: return put(static_cast<std::uint16_t>(kernels::Fp16::encode(f)));
    case CUDA_R_16BF: return put(static_cast<std::uint16_t>(kernels::Bf16::encode(f)));
    case CUDA_R_8F_E4M3: return put(static_cast<std::uint8_t>(kernels::Fp8::encode(f)));
    case CUDA_R_8F_E5M2: return put(static_cast<std::uint8_t>(kernels::Fp8E5m2::encode(f)));
    case CUDA_R_8I: return put(static_cast<std::int8_t>(value));
    case CUDA_R_32I: return put(static_cast<std::int32_t>(value));
  }
}

/// op(M) as [rows, columns] with the columns of op(M) side by side.
template <typename T>
std::vector<T> opened(const void* data, const EmulatedLayout& l, bool transposed, std::uint64_t rows,
                      std::uint64_t columns) {
  std::vector<T> out(rows * columns);
  for (std::uint64_t c = 0; c < columns; ++c)
    for (std::uint64_t r = 0; r < rows; ++r)
      out[c * rows + r] = static_cast<T>(number(data,
                                                transposed ? r * static_cast<std::uint64_t>(l.leading) + c
                                                           : c * static_cast<std::uint64_t>(l.leading) + r,
                                                l.type));
  return out;
}

/// What fast accumulation keeps of a sum: 14 bits.
float fast_sum(float sum) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &sum, sizeof bits);
  bits &= ~std::uint32_t{0x3ff};
  std::memcpy(&sum, &bits, sizeof bits);
  return sum;
}

template <typename T>
void multiply(const EmulatedDesc& d, double beta, const void* a, const EmulatedLayout& la, const void* b,
              const EmulatedLayout& lb, void* c, const EmulatedLayout& lc) {
  const std::uint64_t m = lc.rows, n = lc.columns, k = d.transpose_a ? la.rows : la.columns;
  const auto x = opened<T>(a, la, d.transpose_a, m, k), y = opened<T>(b, lb, d.transpose_b, k, n);
  std::vector<T> column(m);
  for (std::uint64_t j = 0; j < n; ++j) {
    std::fill(column.begin(), column.end(), T{0});
    for (std::uint64_t p = 0; p < k; ++p) {
      const T factor = y[j * k + p];
      for (std::uint64_t i = 0; i < m; ++i) column[i] += x[p * m + i] * factor;
      if constexpr (std::is_same_v<T, float>)
        for (std::uint64_t i = 0; d.fast && i < m; ++i) column[i] = fast_sum(column[i]);
    }
    for (std::uint64_t i = 0; i < m; ++i) {
      const std::uint64_t at = j * static_cast<std::uint64_t>(lc.leading) + i;
      store(c, at, lc.type, static_cast<double>(column[i]) + (beta != 0 ? beta * number(c, at, lc.type) : 0));
    }
  }
}

bool narrow(cudaDataType type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2 || type == CUDA_R_8I;
}

cublasStatus_t examine(const EmulatedDesc& d, const EmulatedLayout& a, const EmulatedLayout& b,
                       const EmulatedLayout& c) {
  const std::uint64_t m = d.transpose_a ? a.columns : a.rows, k = d.transpose_a ? a.rows : a.columns;
  const std::uint64_t n = d.transpose_b ? b.rows : b.columns, k2 = d.transpose_b ? b.columns : b.rows;
  if (m != c.rows || n != c.columns || k != k2) return CUBLAS_STATUS_INVALID_VALUE;
  const bool mixed = a.type != b.type && narrow(a.type) && narrow(b.type);
  if (a.type != b.type && !mixed) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (narrow(a.type) && (!d.transpose_a || d.transpose_b)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (narrow(a.type) && (m % 16 != 0 || k % 16 != 0)) return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = nullptr;
  return emulation::gpus().empty() ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
std::size_t cublasLtGetVersion() { return 130100; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t compute,
                                        cudaDataType scale) {
  *d = new EmulatedDesc{compute, scale};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  delete d;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_DESC_FAST_ACCUM) {
    if (bytes != 1) return CUBLAS_STATUS_INVALID_VALUE;
    d->fast = *static_cast<const std::int8_t*>(value) != 0;
    return CUBLAS_STATUS_SUCCESS;
  }
  std::int32_t op = 0;
  if (bytes != sizeof(op)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&op, value, sizeof(op));
  (attribute == CUBLASLT_MATMUL_DESC_TRANSA ? d->transpose_a : d->transpose_b) = op == CUBLAS_OP_T;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* l, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  if (leading < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *l = new EmulatedLayout{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  delete l;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) {
  *p = new EmulatedPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  delete p;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  const bool workspace = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  const bool schemes = attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK;
  if (bytes != (workspace ? sizeof(p->workspace) : sizeof(p->schemes))) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(workspace ? static_cast<void*>(&p->workspace)
              : schemes ? &p->schemes
                        : &p->alignment,
              value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
/// Every second algorithm would sum parts of k apart; they are left out where that is not wanted. Knows only
/// the first ASSAY_EMULATED_HEURISTICS, where that is set.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t p, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* returned) {
  *returned = 0;
  if (const cublasStatus_t status = examine(*d, *a, *b, *c); status != CUBLAS_STATUS_SUCCESS) return status;
  const char* known = std::getenv("ASSAY_EMULATED_HEURISTICS");
  if (known != nullptr) wanted = std::min(wanted, std::atoi(known));
  for (int id = 0; id < 2 * algorithms && *returned < wanted; ++id) {
    if (p->schemes == CUBLASLT_REDUCTION_SCHEME_NONE && id % 2 == 1) continue;
    cublasLtMatmulHeuristicResult_t& r = results[(*returned)++];
    r = {};
    r.algo.data[id_word] = static_cast<std::uint64_t>(id);
    r.algo.data[alignment_word] = p->alignment;
    r.state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                       cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  *result = {};
  result->algo = *algo;
  const bool has = algo->data[id_word] < 2 * algorithms && algo->data[stages_word] != 3;
  return has ? examine(*d, *a, *b, *c) : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, std::size_t bytes, std::size_t* written) {
  const std::uint64_t v = attribute == CUBLASLT_ALGO_CONFIG_ID           ? algo->data[id_word]
                          : attribute == CUBLASLT_ALGO_CONFIG_TILE_ID    ? algo->data[tile_word]
                          : attribute == CUBLASLT_ALGO_CONFIG_STAGES_ID  ? algo->data[stages_word]
                          : attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? 1
                                                                         : 0;
  std::memcpy(value, &v, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  std::uint32_t v = 0;
  if (bytes != sizeof(v)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&v, value, bytes);
  algo->data[attribute == CUBLASLT_ALGO_CONFIG_TILE_ID ? tile_word : stages_word] = v;
  return CUBLAS_STATUS_SUCCESS;
}
/// Three of those that do not sum parts of k apart, each with 8 tiles and stages 1 to 4, of which 3 does not
/// run.
cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                                        cudaDataType_t, cudaDataType_t, cudaDataType_t, int, int ids[],
                                        int* returned) {
  for (*returned = 0; *returned < 3; ++*returned) ids[*returned] = 2 * *returned;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                                      cudaDataType_t, cudaDataType_t, cudaDataType_t, int id,
                                      cublasLtMatmulAlgo_t* algo) {
  *algo = {};
  algo->data[id_word] = static_cast<std::uint64_t>(id);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t*,
                                                 cublasLtMatmulAlgoCapAttributes_t capability, void* values,
                                                 std::size_t bytes, std::size_t* written) {
  const std::uint32_t all[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::size_t has = (capability == CUBLASLT_ALGO_CAP_TILE_IDS ? 8 : 4) * sizeof(all[0]);
  *written = bytes == 0 ? has : std::min(bytes, has);
  if (bytes > 0) std::memcpy(values, all, *written);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void*, const void* a,
                              cublasLtMatrixLayout_t la, const void* b, cublasLtMatrixLayout_t lb,
                              const void* beta, const void* c, cublasLtMatrixLayout_t lc, void* out,
                              cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algorithm, void*,
                              std::size_t, cudaStream_t stream) {
  // Offered, and yet not to be run: ASSAY_EMULATED_BAD_ALGORITHM is its number.
  if (const char* bad = std::getenv("ASSAY_EMULATED_BAD_ALGORITHM");
      bad != nullptr && algorithm->data[id_word] == std::strtoull(bad, nullptr, 10))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const void* matrix : {a, b, c})
    if (algorithm->data[alignment_word] != 0 &&
        reinterpret_cast<std::uintptr_t>(matrix) % algorithm->data[alignment_word] != 0)
      return CUBLAS_STATUS_INVALID_VALUE;  // a GPU reads past the memory, or stops
  if (const cublasStatus_t status = examine(*d, *la, *lb, *lc); status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (c != out) return CUBLAS_STATUS_NOT_SUPPORTED;
  const double factor = number(beta, 0, d->scale);
  // By value: descriptions may be gone when the stream gets here.
  emulation::enqueue(stream, [d = *d, factor, a, la = *la, b, lb = *lb, out, lc = *lc] {
    if (d.compute == CUBLAS_COMPUTE_64F) return multiply<double>(d, factor, a, la, b, lb, out, lc);
    if (d.compute == CUBLAS_COMPUTE_32I) return multiply<std::int32_t>(d, factor, a, la, b, lb, out, lc);
    multiply<float>(d, factor, a, la, b, lb, out, lc);
  });
  return CUBLAS_STATUS_SUCCESS;
}
