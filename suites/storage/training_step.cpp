// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/training_step.hpp"

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"

namespace assay::storage {
namespace {

constexpr std::size_t layers = 4, width = 512, rows = 128;
constexpr std::size_t batch_bytes = std::size_t{4} << 20;
constexpr double least_step_s = 0.02;
constexpr int most_micro_batches = 64;

}  // namespace

std::size_t TrainingStep::offset(Tensor part) noexcept {
  constexpr std::size_t square = width * width * sizeof(float), rectangle = rows * width * sizeof(float);
  constexpr std::size_t sizes[] = {layers * square, layers * square, (layers + 1) * rectangle,
                                   (layers + 1) * rectangle, batch_bytes};
  std::size_t out = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(part); ++i) out += sizes[i];
  return out;
}

std::size_t TrainingStep::bytes() noexcept { return offset(Tensor::end); }

std::byte* TrainingStep::at(Tensor part, std::size_t index, std::size_t elements) const noexcept {
  return context_.device.arena().data() + offset(part) + index * elements * sizeof(float);
}

TrainingStep::TrainingStep(Context& context, Communicator& group, Together& together)
    : context_(context), group_(group), together_(together) {
  together.guarded([&] {
    Device& device = context.device;
    const std::uint64_t key = context.random.child("step").key();
    device.fill_uniform(NumType::fp32, at(Tensor::weights, 0, 0), layers * width * width, key);
    device.fill_uniform(NumType::fp32, at(Tensor::activations, 0, 0), rows * width, key + 1);
    device.fill_uniform(NumType::fp32, at(Tensor::deltas, layers, rows * width), rows * width, key + 2);
    if (device.has_own_memory()) host_gradients_.resize(layers * width * width * sizeof(float));
  });
  for (int warm_up = 0; warm_up < 3; ++warm_up) run();
  double seconds = least_step_s;
  for (int i = 0; i < 2; ++i) seconds = std::min(seconds, run().value_or(seconds));
  micro_batches_ = static_cast<int>(
      group.max(std::min<double>(most_micro_batches, std::ceil(least_step_s / std::max(seconds, 1e-6)))));
}

void TrainingStep::micro_batch(bool first) {
  Device& device = context_.device;
  constexpr std::size_t square = width * width, rectangle = rows * width;
  for (std::size_t l = 0; l < layers; ++l)
    device.matmul(NumType::fp32, {rows, width, width}, at(Tensor::activations, l, rectangle),
                  at(Tensor::weights, l, square), at(Tensor::activations, l + 1, rectangle));
  Matmul gradient{width, width, rows}, delta{rows, width, width};
  gradient.transpose_a = true;
  gradient.accumulate = !first;
  delta.transpose_b = true;
  for (std::size_t l = layers; l-- > 0;) {
    device.matmul(NumType::fp32, gradient, at(Tensor::activations, l, rectangle),
                  at(Tensor::deltas, l + 1, rectangle), at(Tensor::gradients, l, square));
    device.matmul(NumType::fp32, delta, at(Tensor::deltas, l + 1, rectangle), at(Tensor::weights, l, square),
                  at(Tensor::deltas, l, rectangle));
  }
}

void TrainingStep::compute() {
  for (int i = 0; i < micro_batches_; ++i) micro_batch(i == 0);
  context_.device.synchronize();
  if (!host_gradients_.empty())
    context_.device.copy_to_host(host_gradients_.data(), at(Tensor::gradients, 0, 0), host_gradients_.size());
}

std::optional<double> TrainingStep::run() {
  const double begin = now_s();
  together_.guarded([&] { compute(); });
  if (together_.any(false)) return std::nullopt;  // a rank without gradients would hang the sum
  constexpr std::size_t count = layers * width * width;
  void* gradients = host_gradients_.empty() ? at(Tensor::gradients, 0, 0) : host_gradients_.data();
  group_.all_reduce(gradients, gradients, count, DataType::fp32, ReduceOp::sum);
  together_.guarded([&] {
    if (!host_gradients_.empty())
      context_.device.copy_to_device(at(Tensor::gradients, 0, 0), gradients, host_gradients_.size());
  });
  context_.count_batch();
  return now_s() - begin;
}

void TrainingStep::take(std::span<const std::byte> batch) {
  for (std::size_t done = 0; done < batch.size(); done += batch_bytes)
    context_.device.copy_to_device(at(Tensor::batch, 0, 0), batch.data() + done,
                                   std::min(batch_bytes, batch.size() - done));
}

}  // namespace assay::storage
