// SPDX-License-Identifier: Apache-2.0
#include "kernels/onchip.hpp"

#include "kernels/cuda/grid.cuh"
#include "kernels/cuda/pattern_errors.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256;        ///< of tests for which a multiprocessor may hold several blocks
constexpr unsigned wide_threads = 1024;  ///< of tests with one block per multiprocessor

__device__ void mark(std::uint32_t* visited) {
  const unsigned sm = multiprocessor();
  if (threadIdx.x == 0 && sm < max_multiprocessors) atomicOr(visited + sm / 32, 1u << (sm % 32));
}

__device__ void fill_place(DeviceRecord& record, std::uint64_t index, std::uint64_t expected,
                           std::uint64_t actual, std::uint64_t reread) {
  record.index = index;
  record.expected = expected;
  record.actual = record.next = actual;
  record.reread[0] = record.reread[1] = reread;
  record.sm = static_cast<std::int32_t>(multiprocessor());
  record.warp = static_cast<std::int32_t>(warp_slot());
  record.lane = static_cast<std::int32_t>(lane());
  record.waits = 0;
}

__global__ void __launch_bounds__(threads) l1_prepare_kernel(std::uint32_t* region, std::uint64_t key) {
  for (std::size_t i = global_thread(); i < l1_words; i += global_threads()) region[i] = l1_word(key, i);
}

__global__ void __launch_bounds__(threads)
    l1_check_kernel(const std::uint32_t* region, std::uint64_t key, unsigned rounds, DeviceErrors* errors,
                    std::uint32_t* visited) {
  __shared__ BlockErrors mine;
  begin_block(mine);
  mark(visited);
  const auto look = [&](std::size_t index, std::uint32_t actual) {
    const std::uint32_t expected = l1_word(key, index);
    if (!__any_sync(all_lanes, expected != actual)) return;
    if (DeviceRecord* record = count_wrong(expected, actual, mine, errors); record != nullptr)
      fill_place(*record, index, expected, actual, __ldcv(region + index));
  };
  for (std::size_t i = threadIdx.x; i < l1_words; i += threads) look(i, __ldca(region + i));
  __syncthreads();
  std::uint64_t state = mix64(key ^ (global_thread() + 1));
  for (unsigned r = 0; r < rounds; ++r) {
    state = state * 6364136223846793005ULL +
            1442695040888963407ULL;  // Knuth's MMIX generator; its upper bits are used
    const std::size_t index = state >> 49 & (l1_words - 1);
    look(index, r % 2 == 0 ? __ldca(region + index) : __ldg(region + index));
  }
  end_block(mine, errors);
}

/// One march element over the block's shared memory: verify `from`, write `to`.
struct Element {
  bool verify, write, down, from, to;  ///< from, to: false the data, true its complement
};

__device__ void march_element(const Element& e, volatile std::uint64_t* words, std::size_t count,
                              std::uint64_t key, BlockErrors& mine, DeviceErrors* errors) {
  const std::size_t steps = (count + wide_threads - 1) / wide_threads;
  for (std::size_t n = 0; n < steps; ++n) {
    const std::size_t i = (e.down ? steps - 1 - n : n) * wide_threads + threadIdx.x;
    const bool inside = i < count;
    const std::uint64_t data = address_hash(key, i);
    if (e.verify) {
      const std::uint64_t expected = e.from ? ~data : data, actual = inside ? words[i] : expected;
      if (__any_sync(all_lanes, expected != actual)) {
        if (DeviceRecord* record = count_wrong(expected, actual, mine, errors); record != nullptr)
          fill_place(*record, i, expected, actual, words[i]);
      }
    }
    if (e.write && inside) words[i] = e.to ? ~data : data;
  }
  __syncthreads();
}

__global__ void __launch_bounds__(wide_threads, 1)
    march_kernel(std::size_t count, std::uint64_t key, std::size_t flip, DeviceErrors* errors,
                 std::uint32_t* visited) {
  __shared__ BlockErrors mine;
  ASSAY_DYNAMIC_SHARED(std::uint64_t, words);
  begin_block(mine);
  mark(visited);
  march_element({false, true, false, false, false}, words, count, key, mine, errors);
  if (threadIdx.x == 0 && blockIdx.x == 0 && flip < count) words[flip] ^= std::uint64_t{1} << (flip % 64);
  __syncthreads();
  march_element({true, true, false, false, true}, words, count, key, mine, errors);
  march_element({true, true, false, true, false}, words, count, key, mine, errors);
  march_element({true, true, true, false, true}, words, count, key, mine, errors);
  march_element({true, true, true, true, false}, words, count, key, mine, errors);
  march_element({true, false, false, false, false}, words, count, key, mine, errors);
  end_block(mine, errors);
}

__global__ void __launch_bounds__(threads)
    l2_write_kernel(std::uint64_t* words, std::size_t count, std::uint64_t key) {
  for (std::size_t i = global_thread(); i < count; i += global_threads())
    __stcg(reinterpret_cast<unsigned long long*>(words) + i,
           static_cast<unsigned long long>(address_hash(key, i)));
}

/// Each block reads all words, from a place of its own on, so that not all ask for one line at a time.
__global__ void __launch_bounds__(wide_threads, 1)
    l2_check_kernel(const std::uint64_t* words, std::size_t count, std::uint64_t key, DeviceErrors* errors,
                    std::uint32_t* visited) {
  __shared__ BlockErrors mine;
  begin_block(mine);
  mark(visited);
  const std::size_t steps = (count + wide_threads - 1) / wide_threads, from = steps * blockIdx.x / gridDim.x;
  for (std::size_t n = 0; n < steps; ++n) {
    const std::size_t step = from + n < steps ? from + n : from + n - steps,
                      i = step * wide_threads + threadIdx.x;
    const std::uint64_t expected = address_hash(key, i);
    const std::uint64_t actual =
        i < count ? __ldcg(reinterpret_cast<const unsigned long long*>(words) + i) : expected;
    if (!__any_sync(all_lanes, expected != actual)) continue;
    if (DeviceRecord* record = count_wrong(expected, actual, mine, errors); record != nullptr)
      fill_place(*record, i, expected, actual,
                 __ldcv(reinterpret_cast<const unsigned long long*>(words) + i));
  }
  end_block(mine, errors);
}

/// Most shared memory a block may ask for on this GPU, without what the kernel has itself and what alignment
/// takes.
std::size_t shared_bytes() {
  int device = 0, most = 48 * 1024;
  if (cudaGetDevice(&device) == cudaSuccess)
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return (static_cast<std::size_t>(most) - 3 * 1024) / 1024 * 1024;
}

}  // namespace

void l1_prepare(std::uint32_t* region, std::uint64_t key, void* stream) {
  launch(l1_prepare_kernel, dim3(l1_words / threads), dim3(threads), 0, stream, region, key);
}

void l1_check(const std::uint32_t* region, std::uint64_t key, unsigned rounds, DeviceErrors* errors,
              std::uint32_t* visited, void* stream) {
  const unsigned blocks = resident_blocks(l1_check_kernel, threads, 0, ~std::size_t{0});
  launch(l1_check_kernel, dim3(blocks), dim3(threads), 0, stream, region, key, rounds, errors, visited);
}

std::size_t shared_march(std::uint64_t key, std::size_t flip, DeviceErrors* errors, std::uint32_t* visited,
                         void* stream) {
  const std::size_t bytes = shared_bytes();
  cudaFuncSetAttribute(march_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  launch(march_kernel, dim3(multiprocessors()), dim3(wide_threads), bytes, stream, bytes / 8, key, flip,
         errors, visited);
  return bytes;
}

void l2_write(std::uint64_t* words, std::size_t count, std::uint64_t key, void* stream) {
  const unsigned blocks = resident_blocks(l2_write_kernel, threads, 0, count / threads + 1);
  launch(l2_write_kernel, dim3(blocks), dim3(threads), 0, stream, words, count, key);
}

void l2_check(const std::uint64_t* words, std::size_t count, std::uint64_t key, DeviceErrors* errors,
              std::uint32_t* visited, void* stream) {
  const unsigned blocks = resident_blocks(l2_check_kernel, wide_threads, 0, ~std::size_t{0});
  launch(l2_check_kernel, dim3(blocks), dim3(wide_threads), 0, stream, words, count, key, errors, visited);
}

}  // namespace assay::kernels::cuda
