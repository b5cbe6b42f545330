// SPDX-License-Identifier: Apache-2.0
#include "kernels/chase.hpp"

#include <utility>

#include "base/random.hpp"

namespace assay::kernels::host {
namespace {

__extension__ typedef unsigned __int128 Wide;
constexpr std::size_t words_per_node = chase_node_bytes / sizeof(std::uint64_t);

/// Word 0 of a node: the successor. Word 1: the successor xor key, so that a walk sees foreign nodes as it
/// goes.
std::uint64_t* node_at(void* memory, std::size_t i) noexcept {
  return static_cast<std::uint64_t*>(memory) + i * words_per_node;
}

std::size_t partner(std::uint64_t key, std::size_t i) noexcept {
  // Uniform in [0, i): the cycle stays one because the partner is never i itself.
  return static_cast<std::size_t>((static_cast<Wide>(mix64(key, i)) * i) >> 64);
}

}  // namespace

void chase_build(void* memory, std::size_t bytes, std::uint64_t key) noexcept {
  constexpr std::size_t ahead = 24;  // swaps hit memory at random: ask for the line early
  const std::size_t nodes = bytes / chase_node_bytes;
  for (std::size_t i = 0; i < nodes; ++i) node_at(memory, i)[0] = i;
  for (std::size_t i = nodes; i-- > 1;) {
    if (i > ahead + 1) __builtin_prefetch(node_at(memory, partner(key, i - ahead)), 1);
    std::swap(node_at(memory, i)[0], node_at(memory, partner(key, i))[0]);
  }
  for (std::size_t i = 0; i < nodes; ++i) node_at(memory, i)[1] = node_at(memory, i)[0] ^ key;
}

ChaseEnd chase_walk(const void* memory, std::size_t bytes, std::uint64_t key, std::size_t start,
                    std::size_t steps) noexcept {
  const auto* words = static_cast<const std::uint64_t*>(memory);
  const std::size_t nodes = bytes / chase_node_bytes;
  std::size_t at = start;
  for (std::size_t s = 0; s < steps; ++s) {
    // The checks do not lengthen the chain of dependent loads: they are predicted and wait beside it.
    const std::uint64_t next = words[at * words_per_node];
    const std::uint64_t check = words[at * words_per_node + 1];
    if (next >= nodes || (check ^ next) != key) return {at, false, s, {next, check}};
    at = static_cast<std::size_t>(next);
  }
  return {at, true, steps, {}};
}

}  // namespace assay::kernels::host
