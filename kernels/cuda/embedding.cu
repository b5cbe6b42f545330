// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.hpp"

#include "kernels/cuda/numbers.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256;
/// Rows of the vocabulary that a block owns, columns of a thread, and tokens that a block looks at before it
/// adds what belongs to them.
constexpr unsigned owned = 8, columns = 4, tokens_each = 8, chunk = tokens_each * threads;

/// Copies rows as they are, `units` 16-byte pieces each.
__global__ void __launch_bounds__(threads) gather_kernel(const uint4* table, const std::int32_t* tokens,
                                                         uint4* out, std::size_t rows, std::size_t units) {
  const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= rows * units) return;
  out[i] = table[static_cast<std::size_t>(tokens[i / units]) * units + i % units];
}

/// The rows in [begin, begin + chunk) whose token lies in [first, first + owned), ascending, as row * owned +
/// token - first. Returns how many; the list is complete for all threads, and all have read the one before.
__device__ unsigned collect(const std::int32_t* tokens, std::size_t begin, std::size_t rows,
                            std::int32_t first, unsigned* list, unsigned* warp_counts) {
  unsigned found[tokens_each], mine = 0;
  const std::size_t row = begin + threadIdx.x * tokens_each;
  std::int32_t of[tokens_each];
  if (row + tokens_each <= rows) {
    const auto* from = reinterpret_cast<const int4*>(tokens + row);
    const int4 a = from[0], b = from[1];
    of[0] = a.x, of[1] = a.y, of[2] = a.z, of[3] = a.w;
    of[4] = b.x, of[5] = b.y, of[6] = b.z, of[7] = b.w;
  } else {
    ASSAY_UNROLL
    for (unsigned k = 0; k < tokens_each; ++k) of[k] = row + k < rows ? tokens[row + k] : -1;
  }
  ASSAY_UNROLL
  for (unsigned k = 0; k < tokens_each; ++k) {
    const std::int32_t token = of[k] - first;
    const bool hit = token >= 0 && token < static_cast<std::int32_t>(owned);
    found[k] = hit ? (threadIdx.x * tokens_each + k) * owned + static_cast<unsigned>(token) : ~0u;
    mine += hit ? 1 : 0;
  }
  if (!__syncthreads_or(mine > 0)) return 0;
  unsigned before = mine;  // this thread's and all those before it in the warp
  ASSAY_UNROLL
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const unsigned other = __shfl_up_sync(all_lanes, before, distance);
    if (lane() >= distance) before += other;
  }
  if (lane() == 31) warp_counts[threadIdx.x / 32] = before;
  __syncthreads();
  unsigned at = before - mine, total = 0;
  for (unsigned w = 0; w < threads / 32; ++w) {
    if (w < threadIdx.x / 32) at += warp_counts[w];
    total += warp_counts[w];
  }
  ASSAY_UNROLL
  for (unsigned k = 0; k < tokens_each; ++k)
    if (found[k] != ~0u) list[at++] = found[k];
  __syncthreads();
  return total;
}

__device__ inline void add4(float4& sum, const float* p) {
  const float4 x = *reinterpret_cast<const float4*>(p);
  sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
}
__device__ inline void add4(float4& sum, const Bfloat* p) {
  const uint2 x = *reinterpret_cast<const uint2*>(p);
  sum.x += low_bf16(x.x), sum.y += high_bf16(x.x), sum.z += low_bf16(x.y), sum.w += high_bf16(x.y);
}

/// Block (x, y): vocabulary rows from x * owned on, four columns per thread. Every sum goes by ascending row.
template <typename T>
__global__ void __launch_bounds__(threads)
    scatter_kernel(const T* dout, const std::int32_t* tokens, float* dtable, std::size_t rows,
                   std::size_t width, std::size_t vocabulary) {
  __shared__ float4 sums[owned][threads];
  __shared__ unsigned list[chunk], warp_counts[threads / 32];
  const std::size_t first = std::size_t{blockIdx.x} * owned,
                    column = (std::size_t{blockIdx.y} * threads + threadIdx.x) * columns;
  const bool active = column < width;
  for (unsigned v = 0; v < owned; ++v) sums[v][threadIdx.x] = make_float4(0, 0, 0, 0);
  for (std::size_t begin = 0; begin < rows; begin += chunk) {
    const unsigned n = collect(tokens, begin, rows, static_cast<std::int32_t>(first), list, warp_counts);
    if (active) {
      const T* from = dout + begin * width + column;
      ASSAY_UNROLL_BY(4)
      for (unsigned i = 0; i < n; ++i)
        add4(sums[list[i] % owned][threadIdx.x], from + list[i] / owned * width);
    }
  }
  for (unsigned v = 0; v < owned; ++v)
    if (active && first + v < vocabulary)
      *reinterpret_cast<float4*>(dtable + (first + v) * width + column) = sums[v][threadIdx.x];
}

template <typename T>
void gather(const T* table, const std::int32_t* tokens, T* out, std::size_t rows, std::size_t width,
            void* stream) {
  if (rows == 0) return;
  const std::size_t units = width * sizeof(T) / 16;
  launch(gather_kernel, dim3(blocks_for(rows * units, threads)), dim3(threads), 0, stream,
         reinterpret_cast<const uint4*>(table), tokens, reinterpret_cast<uint4*>(out), rows, units);
}

template <typename T>
void scatter(const T* dout, const std::int32_t* tokens, float* dtable, std::size_t rows, std::size_t width,
             std::size_t vocabulary, void* stream) {
  launch(scatter_kernel<T>, dim3(blocks_for(vocabulary, owned), blocks_for(width, threads * columns)),
         dim3(threads), 0, stream, dout, tokens, dtable, rows, width, vocabulary);
}

}  // namespace

void embedding_forward(const float* table, const std::int32_t* tokens, float* out, std::size_t rows,
                       std::size_t width, void* stream) {
  gather(table, tokens, out, rows, width, stream);
}
void embedding_forward(const Bfloat* table, const std::int32_t* tokens, Bfloat* out, std::size_t rows,
                       std::size_t width, void* stream) {
  gather(table, tokens, out, rows, width, stream);
}
void embedding_backward(const float* dout, const std::int32_t* tokens, float* dtable, std::size_t rows,
                        std::size_t width, std::size_t vocabulary, void* stream) {
  scatter(dout, tokens, dtable, rows, width, vocabulary, stream);
}
void embedding_backward(const Bfloat* dout, const std::int32_t* tokens, float* dtable, std::size_t rows,
                        std::size_t width, std::size_t vocabulary, void* stream) {
  scatter(dout, tokens, dtable, rows, width, vocabulary, stream);
}

}  // namespace assay::kernels::cuda
