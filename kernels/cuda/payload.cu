// SPDX-License-Identifier: Apache-2.0
#include "kernels/payload.hpp"

#include "kernels/cuda/grid.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256;
constexpr int in_flight = 4;
constexpr std::uint64_t nowhere = ~std::uint64_t{0};

__device__ ulonglong2 expected_pair(std::uint64_t key, std::size_t word) {
  return {payload_word({key}, word), payload_word({key}, word + 1)};
}

/// Message buffers of any alignment: `bytes` that no vector covers, the first of them byte `first_byte` of
/// the payload.
__device__ std::uint64_t load_bytes(const unsigned char* data, unsigned bytes) {
  std::uint64_t word = 0;
  for (unsigned b = 0; b < bytes; ++b) word |= std::uint64_t{data[b]} << (8 * b);
  return word;
}
__device__ void store_bytes(unsigned char* data, unsigned bytes, std::uint64_t word) {
  for (unsigned b = 0; b < bytes; ++b) data[b] = static_cast<unsigned char>(word >> (8 * b));
}
__device__ std::uint64_t low_bytes(std::uint64_t word, unsigned bytes) {
  return bytes >= 8 ? word : word & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

/// Words [first_word, end) byte by byte, the last one cut at `bytes`: tails, and buffers that 16 does not
/// divide.
__global__ void __launch_bounds__(threads)
    fill_words(std::uint64_t key, unsigned char* data, std::size_t bytes, std::size_t first_word) {
  for (std::size_t word = first_word + global_thread(); 8 * word < bytes; word += global_threads()) {
    const std::size_t left = bytes - 8 * word;
    store_bytes(data + 8 * word, left < 8 ? static_cast<unsigned>(left) : 8, payload_word({key}, word));
  }
}

__global__ void __launch_bounds__(threads)
    fill_pairs(std::uint64_t key, ulonglong2* data, std::size_t pairs) {
  const std::size_t stride = global_threads();
  for (std::size_t i = global_thread(); i < pairs; i += stride) __stcs(data + i, expected_pair(key, 2 * i));
}

/// Wrong words of one thread; they are few, or the time no longer matters.
struct Seen {
  std::uint64_t count = 0, first = nowhere;
  __device__ void look(std::uint64_t expected, std::uint64_t actual, std::size_t word) {
    if (expected == actual) return;
    ++count;
    if (word < first) first = word;
  }
  __device__ void tell(PayloadErrors* errors) const {
    if (count == 0) return;
    atomicAdd(reinterpret_cast<unsigned long long*>(&errors->count), static_cast<unsigned long long>(count));
    atomicMin(reinterpret_cast<unsigned long long*>(&errors->first_index),
              static_cast<unsigned long long>(first));
  }
};

__global__ void __launch_bounds__(threads)
    check_words(std::uint64_t key, const unsigned char* data, std::size_t bytes, std::size_t first_word,
                PayloadErrors* errors) {
  Seen seen;
  for (std::size_t word = first_word + global_thread(); 8 * word < bytes; word += global_threads()) {
    const std::size_t left = bytes - 8 * word;
    const unsigned here = left < 8 ? static_cast<unsigned>(left) : 8;
    seen.look(low_bytes(payload_word({key}, word), here), load_bytes(data + 8 * word, here), word);
  }
  seen.tell(errors);
}

__global__ void __launch_bounds__(threads)
    check_pairs(std::uint64_t key, const ulonglong2* data, std::size_t pairs, PayloadErrors* errors) {
  const std::size_t stride = global_threads();
  Seen seen;
  const auto look = [&](const ulonglong2& got, std::size_t i) {
    const ulonglong2 want = expected_pair(key, 2 * i);
    if (((got.x ^ want.x) | (got.y ^ want.y)) == 0) return;
    seen.look(want.x, got.x, 2 * i);
    seen.look(want.y, got.y, 2 * i + 1);
  };
  std::size_t i = global_thread();
  for (; i + (in_flight - 1) * stride < pairs; i += in_flight * stride) {
    ulonglong2 v[in_flight];
    ASSAY_UNROLL
    for (int k = 0; k < in_flight; ++k) v[k] = __ldcs(data + i + static_cast<std::size_t>(k) * stride);
    ASSAY_UNROLL
    for (int k = 0; k < in_flight; ++k) look(v[k], i + static_cast<std::size_t>(k) * stride);
  }
  for (; i < pairs; i += stride) look(__ldcs(data + i), i);
  seen.tell(errors);
}

__global__ void begin_check(PayloadErrors* errors) { *errors = {0, nowhere, 0, 0}; }

/// The first wrong word is known only when all have been seen: what it holds is read again here.
__global__ void end_check(std::uint64_t key, const unsigned char* data, std::size_t bytes,
                          PayloadErrors* errors) {
  if (errors->count == 0) {
    errors->first_index = 0;
    return;
  }
  const std::size_t word = errors->first_index, left = bytes - 8 * word;
  const unsigned here = left < 8 ? static_cast<unsigned>(left) : 8;
  errors->expected = low_bytes(payload_word({key}, word), here);
  errors->actual = load_bytes(data + 8 * word, here);
}

/// Words at the start that 16-byte accesses can cover.
std::size_t paired_words(const void* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 ? bytes / 16 * 2 : 0;
}

}  // namespace

void payload_fill(PayloadKey key, void* data, std::size_t bytes, void* stream) {
  const std::size_t words = paired_words(data, bytes), rest = bytes - 8 * words;
  if (words > 0) {
    const unsigned blocks = resident_blocks(fill_pairs, threads, 0, words / 2 / threads + 1);
    launch(fill_pairs, dim3(blocks), dim3(threads), 0, stream, key.value, static_cast<ulonglong2*>(data),
           words / 2);
  }
  if (rest > 0) {
    const unsigned blocks = resident_blocks(fill_words, threads, 0, rest / 8 / threads + 1);
    launch(fill_words, dim3(blocks), dim3(threads), 0, stream, key.value, static_cast<unsigned char*>(data),
           bytes, words);
  }
}

void payload_check(PayloadKey key, const void* data, std::size_t bytes, PayloadErrors* errors, void* stream) {
  const std::size_t words = paired_words(data, bytes), rest = bytes - 8 * words;
  const auto* p = static_cast<const unsigned char*>(data);
  launch(begin_check, dim3(1), dim3(1), 0, stream, errors);
  if (words > 0) {
    const unsigned blocks = resident_blocks(check_pairs, threads, 0, words / 2 / (in_flight * threads) + 1);
    launch(check_pairs, dim3(blocks), dim3(threads), 0, stream, key.value,
           static_cast<const ulonglong2*>(data), words / 2, errors);
  }
  if (rest > 0) {
    const unsigned blocks = resident_blocks(check_words, threads, 0, rest / 8 / threads + 1);
    launch(check_words, dim3(blocks), dim3(threads), 0, stream, key.value, p, bytes, words, errors);
  }
  launch(end_check, dim3(1), dim3(1), 0, stream, key.value, p, bytes, errors);
}

}  // namespace assay::kernels::cuda
