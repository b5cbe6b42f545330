// SPDX-License-Identifier: Apache-2.0
#include "base/random.hpp"

#include <Random123/philox.h>

#include <numeric>
#include <string>

namespace assay {

std::uint64_t RandomStream::bits(std::uint64_t index) const noexcept {
  const r123::Philox4x32 generator;
  const r123::Philox4x32::ctr_type counter{
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0}};
  const r123::Philox4x32::key_type key{
      {static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32)}};
  const auto out = generator(counter, key);
  return (static_cast<std::uint64_t>(out[1]) << 32) | out[0];
}

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t n) const noexcept {
  // Multiply-shift; the bias is below 2^-64 * n, far under anything a schedule could show.
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits(index)) * n) >> 64);
}

std::vector<std::size_t> RandomStream::permutation(std::size_t n) const {
  std::vector<std::size_t> p(n);
  std::iota(p.begin(), p.end(), std::size_t{0});
  for (std::size_t i = n; i > 1; --i) std::swap(p[i - 1], p[below(i, i)]);
  return p;
}

std::vector<int> random_groups(std::size_t nodes, std::size_t size, const RandomStream& random, int draw) {
  const std::size_t left = nodes % size;
  const auto turn = random.child("left over").permutation(nodes);
  std::vector<bool> out(nodes, false);
  for (std::size_t k = 0; k < left; ++k)
    out[turn[(static_cast<std::size_t>(draw) * left + k) % nodes]] = true;
  std::vector<int> group(nodes, -1);
  std::size_t taken = 0;
  for (const auto node : random.child(std::to_string(draw)).permutation(nodes))
    if (!out[node]) group[node] = static_cast<int>(taken++ / size);
  return group;
}

}  // namespace assay
