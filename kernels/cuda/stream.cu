// SPDX-License-Identifier: Apache-2.0
// Every array is read or written once and not again before the caches are full of others: loads and stores
// are marked as the first to be evicted.
#include "kernels/stream.hpp"

#include "kernels/cuda/grid.cuh"

namespace assay::kernels::cuda {
namespace {

/// Vectors of a thread: one, of as many blocks as that takes, is 5 to 12 % faster than blocks that loop over
/// an array; a sum is worth more of them. Threads of a block: an H200 copies 4.20 TB/s with 128, 4.17 with
/// 256 and 4.07 with 512 (triad 4.19, 4.16, 4.00); with 64, or 128 that only write, it cannot start blocks
/// fast enough. The emulation pays for threads.
#ifdef ASSAY_CUDA_EMULATION
template <StreamOp op>
constexpr int vectors = 64;
#else
template <StreamOp op>
constexpr int vectors = op == StreamOp::read ? 8 : 1;
#endif
template <StreamOp op>
constexpr unsigned threads = op == StreamOp::read    ? 512
                             : op == StreamOp::write ? 256
                                                     : 128;

template <typename V>
struct Arrays {
  V* a;
  const V* b;
  const V* c;
};

__device__ double2 scaled_sum(double2 b, double2 c) {
  return make_double2(__fma_rn(stream_scalar, c.x, b.x), __fma_rn(stream_scalar, c.y, b.y));
}
__device__ double scaled_sum(double b, double c) { return __fma_rn(stream_scalar, c, b); }
__device__ double total(double2 v) { return v.x + v.y; }
__device__ double total(double v) { return v; }
__device__ void set_value(double2& v) { v = make_double2(stream_value, stream_value); }
__device__ void set_value(double& v) { v = stream_value; }

/// `Count` vectors of a thread, a block's threads apart. The loads of all come before the first use.
template <StreamOp op, int Count, typename V>
__device__ double one_round(const Arrays<V>& arrays, std::size_t i) {
  V x[Count], y[Count];
  double sum = 0;
  ASSAY_UNROLL
  for (int k = 0; k < Count; ++k) {
    const std::size_t at = i + static_cast<unsigned>(k) * threads<op>;
    if constexpr (op == StreamOp::read) x[k] = __ldcs(arrays.a + at);
    if constexpr (op == StreamOp::write) set_value(x[k]);
    if constexpr (op == StreamOp::copy || op == StreamOp::triad) x[k] = __ldcs(arrays.b + at);
    if constexpr (op == StreamOp::triad) y[k] = __ldcs(arrays.c + at);
  }
  ASSAY_UNROLL
  for (int k = 0; k < Count; ++k) {
    const std::size_t at = i + static_cast<unsigned>(k) * threads<op>;
    if constexpr (op == StreamOp::read)
      sum += total(x[k]);
    else if constexpr (op == StreamOp::triad)
      __stcs(arrays.a + at, scaled_sum(x[k], y[k]));
    else
      __stcs(arrays.a + at, x[k]);
  }
  return sum;
}

template <StreamOp op, typename V>
__global__ void __launch_bounds__(threads<op>)
    stream_kernel(Arrays<V> arrays, std::size_t count, double* sum) {
  constexpr int each = vectors<op>;
  std::size_t i = std::size_t{blockIdx.x} * threads<op> * each + threadIdx.x;
  double mine = 0;
  if (i + (each - 1) * threads<op> < count)
    mine = one_round<op, each>(arrays, i);
  else
    for (int k = 0; k < each && i < count; ++k, i += threads<op>) mine += one_round<op, 1>(arrays, i);
  if constexpr (op == StreamOp::read) {
    mine = block_sum<threads<op>>(mine);
    if (threadIdx.x == 0) atomicAdd(sum, mine);
  }
}

template <StreamOp op, typename V>
void start(const Arrays<V>& arrays, std::size_t count, double* sum, void* stream) {
  constexpr std::size_t tile = std::size_t{threads<op>} * vectors<op>;
  launch(stream_kernel<op, V>, dim3(static_cast<unsigned>((count + tile - 1) / tile)), dim3(threads<op>), 0,
         stream, arrays, count, sum);
}

template <typename V>
void start(StreamOp op, const Arrays<V>& arrays, std::size_t count, double* sum, void* stream) {
  if (count == 0) return;
  switch (op) {
    case StreamOp::read: return start<StreamOp::read>(arrays, count, sum, stream);
    case StreamOp::write: return start<StreamOp::write>(arrays, count, sum, stream);
    case StreamOp::copy: return start<StreamOp::copy>(arrays, count, sum, stream);
    case StreamOp::triad: return start<StreamOp::triad>(arrays, count, sum, stream);
  }
}

/// Doubles before the first address that 16 divides.
std::size_t past_vector(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 / sizeof(double); }

}  // namespace

void stream(StreamOp op, double* a, const double* b, const double* c, std::size_t count, double* sum,
            void* stream) {
  const Arrays<double> all{a, b, c};
  const std::size_t head = past_vector(a), arrays = stream_arrays(op);
  // Arrays that lie differently against 16 bytes cannot be moved by vectors.
  if ((arrays > 1 && past_vector(b) != head) || (arrays > 2 && past_vector(c) != head) || count <= head)
    return start(op, all, count, sum, stream);
  const auto from = [&](std::size_t i) {
    return Arrays<double>{a + i, arrays > 1 ? b + i : b, arrays > 2 ? c + i : c};
  };
  const auto vectors = from(head);
  const std::size_t pairs = (count - head) / 2;
  start(op, all, head, sum, stream);
  start(op,
        Arrays<double2>{reinterpret_cast<double2*>(vectors.a), reinterpret_cast<const double2*>(vectors.b),
                        reinterpret_cast<const double2*>(vectors.c)},
        pairs, sum, stream);
  start(op, from(head + 2 * pairs), count - head - 2 * pairs, sum, stream);
}

}  // namespace assay::kernels::cuda
