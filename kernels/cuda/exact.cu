// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact.hpp"

#include "kernels/cuda/grid.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256;
constexpr int in_flight = 4;
constexpr std::uint64_t nowhere = ~std::uint64_t{0};

__device__ float element(const ExactLine& line, std::uint64_t index) {
  const std::uint32_t x = static_cast<std::uint32_t>(index) * line.step + line.start;
  return line.slope * static_cast<float>(static_cast<std::int32_t>(x >> (32 - line.bits))) + line.offset;
}
__device__ float4 elements(const ExactLine& line, std::uint64_t index) {
  return {element(line, index), element(line, index + 1), element(line, index + 2), element(line, index + 3)};
}

/// Elements before `head` and after the last whole four behind it, one by one; the rest by 16 bytes.
__global__ void __launch_bounds__(threads)
    fill_kernel(ExactLine line, std::uint64_t first, float* data, std::size_t head, std::size_t count) {
  const std::size_t stride = global_threads(), fours = (count - head) / 4, tail = head + 4 * fours;
  auto* body = reinterpret_cast<float4*>(data + head);
  for (std::size_t i = global_thread(); i < fours; i += stride)
    __stcs(body + i, elements(line, first + head + 4 * i));
  for (std::size_t i = global_thread(); i < head; i += stride) data[i] = element(line, first + i);
  for (std::size_t i = tail + global_thread(); i < count; i += stride) data[i] = element(line, first + i);
}

/// Wrong elements of one thread; they are few, or the time no longer matters.
struct Seen {
  std::uint64_t count = 0, first = nowhere;
  __device__ void look(float expected, float actual, std::size_t index) {
    if (__float_as_uint(expected) == __float_as_uint(actual)) return;
    ++count;
    if (index < first) first = index;
  }
  __device__ void look4(const float4& want, const float4& have, std::size_t index) {
    const unsigned different = (__float_as_uint(want.x) ^ __float_as_uint(have.x)) |
                               (__float_as_uint(want.y) ^ __float_as_uint(have.y)) |
                               (__float_as_uint(want.z) ^ __float_as_uint(have.z)) |
                               (__float_as_uint(want.w) ^ __float_as_uint(have.w));
    if (different == 0) return;
    look(want.x, have.x, index);
    look(want.y, have.y, index + 1);
    look(want.z, have.z, index + 2);
    look(want.w, have.w, index + 3);
  }
  __device__ void tell(ExactErrors* errors) const {
    if (count == 0) return;
    atomicAdd(reinterpret_cast<unsigned long long*>(&errors->count), static_cast<unsigned long long>(count));
    atomicMin(reinterpret_cast<unsigned long long*>(&errors->first_index),
              static_cast<unsigned long long>(first));
  }
};

__global__ void __launch_bounds__(threads)
    check_kernel(ExactLine line, std::uint64_t first, const float* data, std::size_t head, std::size_t count,
                 ExactErrors* errors) {
  const std::size_t stride = global_threads(), fours = (count - head) / 4, tail = head + 4 * fours;
  const auto* body = reinterpret_cast<const float4*>(data + head);
  Seen seen;
  std::size_t i = global_thread();
  for (; i + (in_flight - 1) * stride < fours; i += in_flight * stride) {
    float4 v[in_flight];
    ASSAY_UNROLL
    for (int k = 0; k < in_flight; ++k) v[k] = __ldcs(body + i + static_cast<std::size_t>(k) * stride);
    ASSAY_UNROLL
    for (int k = 0; k < in_flight; ++k) {
      const std::size_t at = head + 4 * (i + static_cast<std::size_t>(k) * stride);
      seen.look4(elements(line, first + at), v[k], at);
    }
  }
  for (; i < fours; i += stride)
    seen.look4(elements(line, first + head + 4 * i), __ldcs(body + i), head + 4 * i);
  for (std::size_t j = global_thread(); j < head; j += stride)
    seen.look(element(line, first + j), data[j], j);
  for (std::size_t j = tail + global_thread(); j < count; j += stride)
    seen.look(element(line, first + j), data[j], j);
  seen.tell(errors);
}

__global__ void begin_check(ExactErrors* errors) { *errors = {0, nowhere, 0, 0}; }

/// The first wrong element is known only when all have been seen: what it holds is read again here.
__global__ void end_check(ExactLine line, std::uint64_t first, const float* data, ExactErrors* errors) {
  if (errors->count == 0) {
    errors->first_index = 0;
    return;
  }
  errors->expected = __float_as_uint(element(line, first + errors->first_index));
  errors->actual = __float_as_uint(data[errors->first_index]);
}

/// Elements up to the first that 16 bytes divide.
std::size_t head_of(const float* data, std::size_t count) {
  const std::size_t head = (16 - reinterpret_cast<std::uintptr_t>(data) % 16) % 16 / sizeof(float);
  return head < count ? head : count;
}

}  // namespace

void exact_fill(const ExactLine& line, std::uint64_t first, float* data, std::size_t count, void* stream) {
  if (count == 0) return;
  const unsigned blocks = resident_blocks(fill_kernel, threads, 0, count / 4 / threads + 1);
  launch(fill_kernel, dim3(blocks), dim3(threads), 0, stream, line, first, data, head_of(data, count), count);
}

void exact_check(const ExactLine& line, std::uint64_t first, const float* data, std::size_t count,
                 ExactErrors* errors, void* stream) {
  launch(begin_check, dim3(1), dim3(1), 0, stream, errors);
  if (count == 0) return launch(end_check, dim3(1), dim3(1), 0, stream, line, first, data, errors);
  const unsigned blocks = resident_blocks(check_kernel, threads, 0, count / 4 / (in_flight * threads) + 1);
  launch(check_kernel, dim3(blocks), dim3(threads), 0, stream, line, first, data, head_of(data, count), count,
         errors);
  launch(end_check, dim3(1), dim3(1), 0, stream, line, first, data, errors);
}

}  // namespace assay::kernels::cuda
