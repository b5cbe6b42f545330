// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.hpp"

#include "kernels/cuda/numbers.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256;
/// Rows of the vocabulary that a block owns, and tokens that it looks at before it adds what belongs to them.
constexpr unsigned owned = 8, tokens_each = 8, chunk = tokens_each * threads;

/// Copies rows as they are, `units` 16-byte pieces each.
__global__ void __launch_bounds__(threads) gather_kernel(const uint4* table, const std::int32_t* tokens,
                                                         uint4* out, std::size_t rows, std::size_t units) {
  const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= rows * units) return;
  out[i] = table[static_cast<std::size_t>(tokens[i / units]) * units + i % units];
}

/// The rows in [begin, begin + chunk) whose token lies in [first, first + owned), ascending, as row * owned +
/// token - first. Returns how many; the list is complete for all threads.
__device__ unsigned collect(const std::int32_t* tokens, std::size_t begin, std::size_t rows,
                            std::int32_t first, unsigned* list, unsigned* warp_counts) {
  unsigned found[tokens_each], mine = 0;
  ASSAY_UNROLL
  for (unsigned k = 0; k < tokens_each; ++k) {
    const std::size_t row = begin + threadIdx.x * tokens_each + k;
    const std::int32_t token = row < rows ? tokens[row] - first : -1;
    const bool hit = token >= 0 && token < static_cast<std::int32_t>(owned);
    found[k] = hit ? (threadIdx.x * tokens_each + k) * owned + static_cast<unsigned>(token) : ~0u;
    mine += hit ? 1 : 0;
  }
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

/// Block (x, y): vocabulary rows from x * owned on, a column per thread. Every sum goes by ascending row.
template <typename T>
__global__ void __launch_bounds__(threads)
    scatter_kernel(const T* dout, const std::int32_t* tokens, float* dtable, std::size_t rows,
                   std::size_t width, std::size_t vocabulary) {
  __shared__ float sums[owned][threads];
  __shared__ unsigned list[chunk], warp_counts[threads / 32];
  const std::size_t first = std::size_t{blockIdx.x} * owned,
                    column = std::size_t{blockIdx.y} * threads + threadIdx.x;
  const bool active = column < width;
  for (unsigned v = 0; v < owned; ++v) sums[v][threadIdx.x] = 0;
  for (std::size_t begin = 0; begin < rows; begin += chunk) {
    const unsigned n = collect(tokens, begin, rows, static_cast<std::int32_t>(first), list, warp_counts);
    if (active) {
      const T* from = dout + begin * width + column;
      ASSAY_UNROLL_BY(4)
      for (unsigned i = 0; i < n; ++i)
        sums[list[i] % owned][threadIdx.x] += value_of(from[list[i] / owned * width]);
    }
    __syncthreads();
  }
  for (unsigned v = 0; v < owned; ++v)
    if (active && first + v < vocabulary) dtable[(first + v) * width + column] = sums[v][threadIdx.x];
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
  launch(scatter_kernel<T>, dim3(blocks_for(vocabulary, owned), blocks_for(width, threads)), dim3(threads), 0,
         stream, dout, tokens, dtable, rows, width, vocabulary);
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
