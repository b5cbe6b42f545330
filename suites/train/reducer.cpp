// SPDX-License-Identifier: Apache-2.0
#include "suites/train/reducer.hpp"

#include "base/clock.hpp"

namespace assay::train {

void GradientReducer::ready(std::size_t bucket) {
  const Bucket& b = gpt_.table().buckets()[bucket];
  if (bucket == 0) busy_s_ = 0;
  const double begin = now_s();
  float* data = gpt_.gradients() + b.offset;
  comm_.all_reduce(data, data, b.size, DataType::fp32, ReduceOp::sum);
  busy_s_ += now_s() - begin;
}

void GradientReducer::wait() {}

}  // namespace assay::train
