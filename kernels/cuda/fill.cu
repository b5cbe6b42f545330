// SPDX-License-Identifier: Apache-2.0
#include "kernels/fill.hpp"

#include "kernels/cuda/grid.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256;

template <Element type>
struct Uniform {
  static constexpr Element element = type;
  std::uint64_t key;
  __device__ std::uint64_t operator()(std::size_t index) const {
    return uniform_element<type>(fill_bits(key, index));
  }
};
template <Element type>
struct Integer {
  static constexpr Element element = type;
  std::uint64_t key;
  int limit;
  __device__ std::uint64_t operator()(std::size_t index) const {
    return integer_element<type>(fill_bits(key, index), limit);
  }
};

template <typename Make>
__device__ std::uint64_t word_of(const Make& make, std::size_t index) {
  constexpr unsigned bytes = element_bytes(Make::element);
  std::uint64_t word = 0;
  ASSAY_UNROLL
  for (unsigned b = 0; b < 8 / bytes; ++b) word |= make(index + b) << (8 * bytes * b);
  return word;
}

/// `data` is aligned to 16; elements past the last whole vector are stored one by one.
template <typename Make>
__global__ void __launch_bounds__(threads)
    fill_kernel(Make make, unsigned char* data, std::size_t count, std::size_t first, std::size_t vectors) {
  constexpr std::size_t bytes = element_bytes(Make::element), per_vector = 16 / bytes;
  const std::size_t stride = global_threads();
  for (std::size_t i = global_thread(); i < vectors; i += stride) {
    const std::size_t at = first + i * per_vector;
    __stcs(reinterpret_cast<ulonglong2*>(data) + i,
           make_ulonglong2(word_of(make, at), word_of(make, at + per_vector / 2)));
  }
  for (std::size_t i = vectors * per_vector + global_thread(); i < count; i += stride) {
    const std::uint64_t word = make(first + i);
    if constexpr (bytes == 8) reinterpret_cast<std::uint64_t*>(data)[i] = word;
    if constexpr (bytes == 4) reinterpret_cast<std::uint32_t*>(data)[i] = static_cast<std::uint32_t>(word);
    if constexpr (bytes == 2) reinterpret_cast<std::uint16_t*>(data)[i] = static_cast<std::uint16_t>(word);
    if constexpr (bytes == 1) data[i] = static_cast<std::uint8_t>(word);
  }
}

template <typename Make>
void fill(const Make& make, void* data, std::size_t count, std::size_t first, void* stream) {
  if (count == 0) return;
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  const std::size_t vectors = aligned ? count * element_bytes(Make::element) / 16 : 0;
  const unsigned blocks =
      resident_blocks(fill_kernel<Make>, threads, 0, (aligned ? vectors : count) / threads + 1);
  launch(fill_kernel<Make>, dim3(blocks), dim3(threads), 0, stream, make, static_cast<unsigned char*>(data),
         count, first, vectors);
}

/// f(constant) for the type, so that it may be a template argument.
template <typename F>
void with_element(Element type, const F& f) {
  switch (type) {
    case Element::fp64: return f(std::integral_constant<Element, Element::fp64>{});
    case Element::fp32: return f(std::integral_constant<Element, Element::fp32>{});
    case Element::tf32: return f(std::integral_constant<Element, Element::tf32>{});
    case Element::fp16: return f(std::integral_constant<Element, Element::fp16>{});
    case Element::bf16: return f(std::integral_constant<Element, Element::bf16>{});
    case Element::fp8: return f(std::integral_constant<Element, Element::fp8>{});
    case Element::fp8_e5m2: return f(std::integral_constant<Element, Element::fp8_e5m2>{});
    case Element::int8: return f(std::integral_constant<Element, Element::int8>{});
  }
}

}  // namespace

void fill_uniform(Element type, void* data, std::size_t count, std::uint64_t key, std::size_t first,
                  void* stream) {
  with_element(type, [&](auto t) { fill(Uniform<decltype(t)::value>{key}, data, count, first, stream); });
}

void fill_integer(Element type, void* data, std::size_t count, std::uint64_t key, std::size_t first,
                  int limit, void* stream) {
  with_element(type, [&](auto t) {
    fill(Integer<decltype(t)::value>{key, limit}, data, count, first, stream);
  });
}

}  // namespace assay::kernels::cuda
