// SPDX-License-Identifier: Apache-2.0
#include "device/chain.hpp"

#include <array>
#include <optional>

#include "base/error.hpp"

namespace assay {
namespace {

using Node = std::array<std::uint64_t, 2>;  ///< the successor, and that xor the key

Node node_at(Device& device, const void* memory, std::size_t node) {
  Node words{};
  device.copy_to_host(words.data(), static_cast<const std::byte*>(memory) + node * kernels::chase_node_bytes,
                      sizeof words);
  return words;
}

/// `right`: the node as it was built anew. Where that is wrong, too, only the words can tell of each other.
BrokenLink broken_link(const kernels::ChaseEnd& end, const Node& reread, const Node& right,
                       std::uint64_t key) {
  const Node seen{end.words[0], end.words[1]};
  const bool known = (right[0] ^ right[1]) == key;
  const std::size_t word = known && seen[0] != right[0] ? 0 : 1;
  return {end.node * kernels::chase_node_bytes + word * sizeof(std::uint64_t),
          known ? right[word] : seen[0] ^ key, seen[word], reread[word]};
}

}  // namespace

ChaseTime Chain::time(Device& device, const Kernels& kernels, void* memory, std::size_t bytes,
                      std::size_t steps, std::uint64_t key) {
  if (bytes < 2 * kernels::chase_node_bytes || steps == 0)
    throw Error(ErrorKind::device, "chase: needs at least 128 bytes and one step");
  const auto build = [&] {
    kernels.build(memory, bytes, key);
    memory_ = memory;
    bytes_ = bytes;
    at_ = 0;
    key_ = key;
  };
  const bool known = memory_ == memory && bytes_ == bytes && key_ == key;
  if (!known) build();
  std::optional<BrokenLink> broken;
  for (bool again = false;; again = true) {
    const auto [end, elapsed_ns] = kernels.walk(memory, bytes, key, at_, steps);
    at_ = end.node;
    if (end.intact) return {elapsed_ns / static_cast<double>(end.steps), broken};
    const Node reread = node_at(device, memory, end.node);
    build();
    if (!broken) broken = broken_link(end, reread, node_at(device, memory, end.node), key);
    if (!again) continue;
    if (end.steps > 0) return {elapsed_ns / static_cast<double>(end.steps), broken};
    throw Error(ErrorKind::device, "chase: the first link of a walk is broken as soon as it is built");
  }
}

}  // namespace assay
