// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "base/error.hpp"

namespace assay::cuda {

struct GemmTypes {
  cublasComputeType_t compute;
  cudaDataType_t scale, left, right, result;
};

namespace {

constexpr std::size_t workspace_bytes = std::size_t{64} << 20;
constexpr int most_candidates = 64;
constexpr std::size_t few_candidates = 32;
/// Of operands and results, as all who call see to.
constexpr std::uint32_t alignment_bytes = 256;
constexpr double tuning_s = 3;  ///< of one product; a type that a GPU hardly has gets fewer candidates tried

/// Accumulated in fp32 (int32, fp64) always; what differs is in what the result is stored.
GemmTypes types_of(NumType type, Output output) {
  const bool exact = output == Output::exact;
  switch (type) {
    case NumType::fp64: return {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F};
    case NumType::fp32: return {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F};
    case NumType::tf32: return {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F};
    case NumType::fp16:
      return {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, exact ? CUDA_R_32F : CUDA_R_16F};
    case NumType::bf16:
      return {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, exact ? CUDA_R_32F : CUDA_R_16BF};
    case NumType::fp8:
    case NumType::fp8_fast:
    case NumType::fp8_e5m2:
      return {CUBLAS_COMPUTE_32F, CUDA_R_32F, type == NumType::fp8_e5m2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3,
              CUDA_R_8F_E4M3, exact ? CUDA_R_32F : CUDA_R_16BF};
    case NumType::int8: return {CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_8I, CUDA_R_32I};
  }
  throw Error(ErrorKind::internal, "gemm: unknown number type");
}

/// alpha or beta in the type that the library reads it in.
struct Scalar {
  alignas(8) unsigned char bytes[8] = {};
  Scalar(cudaDataType_t type, int value) {
    const double d = value;
    const float f = static_cast<float>(value);
    const void* from = type == CUDA_R_64F   ? static_cast<const void*>(&d)
                       : type == CUDA_R_32I ? static_cast<const void*>(&value)
                                            : &f;
    std::memcpy(bytes, from, type == CUDA_R_64F ? 8 : 4);
  }
};

}  // namespace

/// What the library must know of one product. Row-major matrices are column-major ones transposed, so C^T =
/// op(B)^T op(A)^T: B comes first.
struct Gemm::Plan {
  Plan(const CublasLt& lt, NumType type, const Matmul& shape)
      : lt_(lt), types(types_of(type, shape.output)), accumulate(shape.accumulate) {
    check(lt.desc_create(&desc, types.compute, types.scale), "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_b);
    set(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_a);
    // Without it tensor cores hand their sums over to fp32 now and then, which costs some of their rate.
    if (const std::int8_t fast = 1; type == NumType::fp8_fast)
      check(lt.desc_set(desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof(fast)),
            "cublasLtMatmulDescSetAttribute");
    layout(first, types.right, shape.transpose_b ? shape.k : shape.n, shape.transpose_b ? shape.n : shape.k);
    layout(second, types.left, shape.transpose_a ? shape.m : shape.k, shape.transpose_a ? shape.k : shape.m);
    layout(result, types.result, shape.n, shape.m);
  }
  ~Plan() {
    for (auto* l : {first, second, result})
      if (l != nullptr) lt_.layout_destroy(l);
    if (desc != nullptr) lt_.desc_destroy(desc);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void set(cublasLtMatmulDescAttributes_t attribute, bool transposed) {
    const std::int32_t op = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(lt_.desc_set(desc, attribute, &op, sizeof(op)), "cublasLtMatmulDescSetAttribute");
  }
  void layout(cublasLtMatrixLayout_t& l, cudaDataType_t type, std::size_t rows, std::size_t columns) {
    check(lt_.layout_create(&l, type, rows, columns, static_cast<std::int64_t>(rows)),
          "cublasLtMatrixLayoutCreate");
  }

  const CublasLt& lt_;
  GemmTypes types;
  bool accumulate;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool chosen = false;
};

Gemm::Gemm(const cudaDeviceProp& properties, cudaStream_t stream)
    : stream_(stream), gpu_(properties), workspace_(workspace_bytes) {
  check(lt_.create(&handle_), "cublasLtCreate");
  check(cudaEventCreateWithFlags(&begin_, cudaEventDefault), "cudaEventCreate");
  check(cudaEventCreateWithFlags(&end_, cudaEventDefault), "cudaEventCreate");
}

Gemm::~Gemm() {
  plans_.clear();
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
  lt_.destroy(handle_);
}

/// Tensor cores came with 8.0 for tf32 and bf16, with 8.9 for fp8. Sums with fewer bits are of 8.9 and 9.0
/// only.
bool Gemm::supports(const cudaDeviceProp& gpu, NumType type) noexcept {
  switch (type) {
    case NumType::tf32:
    case NumType::bf16: return gpu.major >= 8;
    case NumType::fp8:
    case NumType::fp8_e5m2: return gpu.major > 8 || (gpu.major == 8 && gpu.minor >= 9);
    case NumType::fp8_fast: return gpu.major == 9 || (gpu.major == 8 && gpu.minor >= 9);
    case NumType::int8: return gpu.major > 7 || (gpu.major == 7 && gpu.minor >= 5);
    case NumType::fp64:
    case NumType::fp32:
    case NumType::fp16: break;
  }
  return true;
}

std::string Gemm::version() const { return cublas_version_text(lt_.version()); }

Gemm::Plan& Gemm::plan(NumType type, const Matmul& shape) {
  if (!supports(gpu_, type))
    throw Error(ErrorKind::device, std::string("gemm: this GPU has no ") + to_string(type));
  const Key key{type,    shape.output,      shape.m,           shape.n,
                shape.k, shape.transpose_a, shape.transpose_b, shape.accumulate};
  auto& plan = plans_[key];
  if (!plan) plan = std::make_unique<Plan>(lt_, type, shape);
  return *plan;
}

/// Without those that sum parts of k apart: their order of summation may differ between runs.
Gemm::Candidates Gemm::candidates(const Plan& plan, int count) const {
  cublasLtMatmulPreference_t preference = nullptr;
  check(lt_.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  const std::uint64_t bytes = workspace_.bytes();
  const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE;
  Candidates found(static_cast<std::size_t>(count));
  int returned = 0;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    if (status == CUBLAS_STATUS_SUCCESS)
      status = lt_.preference_set(preference, attribute, &value, sizeof(value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  for (const auto matrix :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(matrix, alignment_bytes);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = lt_.heuristic(handle_, plan.desc, plan.first, plan.second, plan.result, plan.result, preference,
                           count, found.data(), &returned);
  lt_.preference_destroy(preference);
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  found.resize(static_cast<std::size_t>(returned));
  std::erase_if(found, [](const auto& f) {
    return f.state != CUBLAS_STATUS_SUCCESS || f.workspaceSize > workspace_bytes;
  });
  if (found.empty()) throw Error(ErrorKind::device, "gemm: cuBLASLt has no algorithm for this product");
  return found;
}

std::vector<std::uint32_t> Gemm::choices(const cublasLtMatmulAlgo_t& algorithm,
                                         cublasLtMatmulAlgoCapAttributes_t capability) const {
  std::size_t bytes = 0;
  std::vector<std::uint32_t> all;
  if (lt_.capability(&algorithm, capability, nullptr, 0, &bytes) == CUBLAS_STATUS_SUCCESS)
    all.resize(bytes / sizeof(all[0]));
  if (all.empty() ||
      lt_.capability(&algorithm, capability, all.data(), bytes, &bytes) != CUBLAS_STATUS_SUCCESS)
    return {0};  // undefined, as an algorithm without a choice needs it
  return all;
}

/// As they are made, algorithms do not sum parts of k apart. Each gets an equal part of what is missing.
void Gemm::add_by_ids(const Plan& plan, std::size_t count, Candidates& found) const {
  const GemmTypes& t = plan.types;
  std::array<int, 64> ids{};
  int n = 0;
  if (lt_.algorithm_ids(handle_, t.compute, t.scale, t.right, t.left, t.result, t.result,
                        static_cast<int>(ids.size()), ids.data(), &n) != CUBLAS_STATUS_SUCCESS)
    return;
  std::set<std::string> known;
  for (const auto& f : found) known.insert(describe(f.algo));
  for (int i = 0; i < n && found.size() < count; ++i) {
    cublasLtMatmulAlgo_t algo{};
    if (lt_.algorithm_init(handle_, t.compute, t.scale, t.right, t.left, t.result, t.result,
                           ids[static_cast<std::size_t>(i)], &algo) != CUBLAS_STATUS_SUCCESS)
      continue;
    const std::size_t parts = static_cast<std::size_t>(n - i),
                      limit = found.size() + (count - found.size() + parts - 1) / parts;
    for (const std::uint32_t tile : choices(algo, CUBLASLT_ALGO_CAP_TILE_IDS))
      for (const std::uint32_t stages : choices(algo, CUBLASLT_ALGO_CAP_STAGES_IDS)) {
        lt_.algorithm_set(&algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof(tile));
        lt_.algorithm_set(&algo, CUBLASLT_ALGO_CONFIG_STAGES_ID, &stages, sizeof(stages));
        cublasLtMatmulHeuristicResult_t result{};
        if (found.size() == limit ||
            lt_.check_algorithm(handle_, plan.desc, plan.first, plan.second, plan.result, plan.result, &algo,
                                &result) != CUBLAS_STATUS_SUCCESS ||
            result.workspaceSize > workspace_bytes || !known.insert(describe(algo)).second)
          continue;
        result.algo = algo;
        found.push_back(result);
      }
  }
}

void Gemm::start(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b,
                 void* c) const {
  const Scalar one(plan.types.scale, 1), beta(plan.types.scale, plan.accumulate ? 1 : 0);
  check(lt_.matmul(handle_, plan.desc, one.bytes, b, plan.first, a, plan.second, beta.bytes, c, plan.result,
                   c, plan.result, &algorithm, workspace_.as<void>(), workspace_.bytes(), stream_),
        "cublasLtMatmul");
}

void Gemm::run(NumType type, const Matmul& shape, const void* a, const void* b, void* c) {
  if (shape.m == 0 || shape.n == 0) return;
  Plan& p = plan(type, shape);
  if (!p.chosen) {
    p.algorithm = candidates(p, 1).front().algo;
    p.chosen = true;
  }
  start(p, p.algorithm, a, b, c);
}

double Gemm::seconds(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b,
                     void* c, int runs) const {
  start(plan, algorithm, a, b, c);
  check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
  for (int i = 0; i < runs; ++i) start(plan, algorithm, a, b, c);
  check(cudaEventRecord(end_, stream_), "cudaEventRecord");
  check(cudaEventSynchronize(end_), "matmul");
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(ms) / runs;
}

GemmAlgorithm Gemm::tune(NumType type, const Matmul& shape, const void* a, const void* b, void* c) {
  Plan& p = plan(type, shape);
  auto found = candidates(p, most_candidates);
  if (found.size() < few_candidates) add_by_ids(p, few_candidates, found);
  std::string why;
  // One algorithm that the library offers and cannot run is no reason to do without the others.
  const auto attempt = [&](std::size_t i, int runs) {
    try {
      return seconds(p, found[i].algo, a, b, c, runs);
    } catch (const Error& e) {
      cudaGetLastError();  // it is told here, and must not be met again
      why = e.what();
      return std::numeric_limits<double>::infinity();
    }
  };
  std::size_t first = 0;
  double one_s = attempt(first, 1);
  while (!std::isfinite(one_s) && ++first < found.size()) one_s = attempt(first, 1);
  if (!std::isfinite(one_s))
    throw Error(ErrorKind::device,
                "gemm: none of " + std::to_string(found.size()) + " algorithms runs: " + why);
  // A first look at each, then the three fastest again and longer: the first look may have met another clock.
  std::vector<std::pair<double, std::size_t>> order;
  const int runs = 4 * one_s * most_candidates < tuning_s ? 3 : 1;
  double left_s = tuning_s;
  for (std::size_t i = first; i < found.size() && left_s > 0; ++i) {
    const double s = attempt(i, runs);
    if (!std::isfinite(s)) continue;
    order.emplace_back(s, i);
    left_s -= (runs + 1) * s;
  }
  if (order.empty()) order.emplace_back(one_s, first);
  const std::size_t tried = order.size();
  std::sort(order.begin(), order.end());
  double best = std::numeric_limits<double>::infinity();
  std::size_t winner = order.front().second;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i) {
    const double s = attempt(order[i].second, 3 * runs);
    if (s < best) best = s, winner = order[i].second;
  }
  p.algorithm = found[winner].algo;
  p.chosen = true;
  GemmAlgorithm algorithm;
  algorithm.candidates = static_cast<int>(tried);
  algorithm.name = describe(p.algorithm);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&p.algorithm);
  algorithm.bytes.assign(bytes, bytes + sizeof(p.algorithm));
  return algorithm;
}

void Gemm::set_algorithm(NumType type, const Matmul& shape, const GemmAlgorithm& algorithm) {
  Plan& p = plan(type, shape);
  cublasLtMatmulAlgo_t algo{};
  if (algorithm.bytes.size() != sizeof(algo))
    throw Error(ErrorKind::device, "gemm: an algorithm of another library");
  std::memcpy(&algo, algorithm.bytes.data(), sizeof(algo));
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      lt_.check_algorithm(handle_, p.desc, p.first, p.second, p.result, p.result, &algo, &result);
  // Not replaced by another one in silence: its result would have other bits.
  if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > workspace_.bytes())
    throw Error(ErrorKind::device,
                "gemm: this GPU cannot run the algorithm that rank 0 chose (" + algorithm.name + ")");
  p.algorithm = algo;
  p.chosen = true;
}

std::string Gemm::describe(const cublasLtMatmulAlgo_t& algorithm) const {
  std::string text;
  const auto add = [&](const char* name, cublasLtMatmulAlgoConfigAttributes_t attribute, std::size_t bytes) {
    std::int32_t value = 0;
    std::size_t written = 0;
    if (lt_.algorithm_get(&algorithm, attribute, &value, bytes, &written) != CUBLAS_STATUS_SUCCESS) return;
    if (!text.empty()) text += ' ';
    text.append(name).append("=").append(std::to_string(value));
  };
  add("id", CUBLASLT_ALGO_CONFIG_ID, 4);
  add("tile", CUBLASLT_ALGO_CONFIG_TILE_ID, 4);
  add("stages", CUBLASLT_ALGO_CONFIG_STAGES_ID, 4);
  add("splitk", CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4);
  add("reduction", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4);
  add("swizzle", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4);
  add("custom", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4);
  add("inner", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2);
  add("cluster", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2);
  return text;
}

}  // namespace assay::cuda
