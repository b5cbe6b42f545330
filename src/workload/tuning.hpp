// SPDX-License-Identifier: Apache-2.0
// How the GPUs of a job compute a product: found once on rank 0, the same for all, since equal bits need
// equal algorithms.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "device/device.hpp"
#include "transport/communicator.hpp"

namespace assay::workload {

std::string to_text(const GemmAlgorithm& algorithm);
/// Throws what Json does for another text.
GemmAlgorithm algorithm_from(const std::string& text);

/// Operands of one product at the start of the device's arena: random, since the rate depends on what is
/// multiplied.
class ProductTrial {
 public:
  ProductTrial(Device& device, NumType type, const Matmul& product, std::uint64_t seed);

  /// Null where the library chooses by itself.
  std::optional<GemmAlgorithm> tune() { return device_.tune(type_, product_, a_, b_, c_); }
  /// Lets the device compute the product as rank 0 found. One that cannot is another GPU: it tunes for
  /// itself, and is told by a name that begins with "own:".
  GemmAlgorithm adopt(const GemmAlgorithm& algorithm);
  double flops_per_s();

 private:
  Device& device_;
  NumType type_;
  Matmul product_;
  std::byte *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
};

/// Tunes on rank 0 and lets all compute as it does; null where libraries choose by themselves, rank 0 could
/// not (what is wrong shows again, and is told, when the product is computed), or `go_on` says that there is
/// no time for it. Collective over `world`.
std::optional<GemmAlgorithm> tune_for_all(Device& device, Communicator& world, NumType type,
                                          const Matmul& product, std::uint64_t seed,
                                          const std::function<bool()>& go_on);

}  // namespace assay::workload
