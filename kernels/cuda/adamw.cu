// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw.hpp"

#include "kernels/cuda/numbers.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256;

/// One parameter, rounded after every operation as on the host: the same bits.
__device__ inline float updated(const AdamW& rule, float p, float g, float& m, float& v) {
  const float gi = __fmul_rn(g, rule.gradient_scale);
  m = __fadd_rn(__fmul_rn(rule.beta1, m), __fmul_rn(__fsub_rn(1.0f, rule.beta1), gi));
  v = __fadd_rn(__fmul_rn(rule.beta2, v), __fmul_rn(__fsub_rn(1.0f, rule.beta2), __fmul_rn(gi, gi)));
  const float root = __fadd_rn(__fsqrt_rn(__fmul_rn(v, rule.correction2)), rule.epsilon);
  const float step = __fadd_rn(__fdiv_rn(__fmul_rn(m, rule.correction1), root), __fmul_rn(rule.decay, p));
  return __fsub_rn(p, __fmul_rn(rule.rate, step));
}

/// Four parameters per thread; `weights` may be null.
__global__ void __launch_bounds__(threads)
    adamw_kernel(AdamW rule, float* parameters, const float* gradients, float* m, float* v, Bfloat* weights,
                 std::size_t count) {
  const std::size_t i = (std::size_t{blockIdx.x} * threads + threadIdx.x) * 4;
  if (i + 4 <= count) {
    float4 p = *reinterpret_cast<const float4*>(parameters + i), mi = *reinterpret_cast<const float4*>(m + i);
    float4 vi = *reinterpret_cast<const float4*>(v + i);
    const float4 g = *reinterpret_cast<const float4*>(gradients + i);
    p.x = updated(rule, p.x, g.x, mi.x, vi.x);
    p.y = updated(rule, p.y, g.y, mi.y, vi.y);
    p.z = updated(rule, p.z, g.z, mi.z, vi.z);
    p.w = updated(rule, p.w, g.w, mi.w, vi.w);
    *reinterpret_cast<float4*>(parameters + i) = p;
    *reinterpret_cast<float4*>(m + i) = mi;
    *reinterpret_cast<float4*>(v + i) = vi;
    if (weights != nullptr)
      *reinterpret_cast<uint2*>(weights + i) = make_uint2(pack_bf16(p.x, p.y), pack_bf16(p.z, p.w));
    return;
  }
  for (std::size_t k = i; k < count; ++k) {
    parameters[k] = updated(rule, parameters[k], gradients[k], m[k], v[k]);
    if (weights != nullptr) put(weights[k], parameters[k]);
  }
}

__global__ void __launch_bounds__(threads) to_bf16_kernel(const float* from, Bfloat* to, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (i < count) put(to[i], from[i]);
}

__global__ void __launch_bounds__(threads) scale_kernel(float* data, float factor, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (i < count) data[i] = __fmul_rn(data[i], factor);
}

__global__ void __launch_bounds__(threads) add_kernel(float* to, const float* from, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (i < count) to[i] = __fadd_rn(to[i], from[i]);
}

}  // namespace

void adamw(const AdamW& rule, float* parameters, const float* gradients, float* m, float* v, Bfloat* weights,
           std::size_t count, void* stream) {
  if (count > 0)
    launch(adamw_kernel, dim3(blocks_for((count + 3) / 4, threads)), dim3(threads), 0, stream, rule,
           parameters, gradients, m, v, weights, count);
}
void to_bf16(const float* from, Bfloat* to, std::size_t count, void* stream) {
  if (count > 0)
    launch(to_bf16_kernel, dim3(blocks_for(count, threads)), dim3(threads), 0, stream, from, to, count);
}
void scale(float* data, float factor, std::size_t count, void* stream) {
  if (count > 0)
    launch(scale_kernel, dim3(blocks_for(count, threads)), dim3(threads), 0, stream, data, factor, count);
}
void add(float* to, const float* from, std::size_t count, void* stream) {
  if (count > 0)
    launch(add_kernel, dim3(blocks_for(count, threads)), dim3(threads), 0, stream, to, from, count);
}

}  // namespace assay::kernels::cuda
