// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "suites/train/gpt.hpp"
#include "transport/communicator.hpp"

namespace assay::train {

/// Sums gradients over ranks, bucket by bucket, while a backward pass makes them.
class GradientReducer {
 public:
  GradientReducer(Communicator& comm, Gpt& gpt) : comm_(comm), gpt_(gpt) {}

  /// The local gradients of a bucket are complete: their sum over all ranks may replace them from now on. All ranks call it
  /// in the same order.
  void ready(std::size_t bucket);
  /// Returns when all buckets are reduced.
  void wait();
  /// Seconds since the last wait() in which at least one bucket was on its way.
  double busy_s() const noexcept { return busy_s_; }

 private:
  Communicator& comm_;
  Gpt& gpt_;
  double busy_s_ = 0;
};

}  // namespace assay::train
