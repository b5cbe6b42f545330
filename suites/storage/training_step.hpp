// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "suite/suite.hpp"
#include "suite/together.hpp"

namespace assay::storage {

/// A data-parallel training step of a multilayer perceptron in fp32 on the rank's device: forward and
/// backward products of several micro-batches, then the sum of the gradients over the ranks of a group.
/// Weights stay as they are, so that every step costs the same.
class TrainingStep {
 public:
  /// Fills weights and inputs, and chooses the number of micro-batches for a step of at least 20 ms, the same
  /// on all ranks. Collective over `group`, that of `together`, which keeps errors of the device. Needs
  /// `bytes()` of the device's arena.
  TrainingStep(Context& context, Communicator& group, Together& together);
  static std::size_t bytes() noexcept;

  /// Collective. Seconds of this rank; nothing on all ranks where one failed, in this step or before.
  /// `together` keeps errors of the device.
  std::optional<double> run();
  /// Copies what was read to the device, as input of the next step. Throws Error(device).
  void take(std::span<const std::byte> batch);

 private:
  enum class Tensor : std::size_t { weights, gradients, activations, deltas, batch, end };
  static std::size_t offset(Tensor part) noexcept;
  std::byte* at(Tensor part, std::size_t index, std::size_t elements) const noexcept;
  void micro_batch(bool first);
  void compute();

  Context& context_;
  Communicator& group_;
  Together& together_;
  int micro_batches_ = 1;
  std::vector<std::byte> host_gradients_;  ///< of a device with memory of its own
};

}  // namespace assay::storage
