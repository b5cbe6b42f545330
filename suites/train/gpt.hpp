// SPDX-License-Identifier: Apache-2.0
// The model on a device: memory, forward, backward, update.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "device/device.hpp"
#include "device/train_ops.hpp"
#include "suites/train/model.hpp"

namespace assay::train {

/// One replica: fp32 parameters, gradients, AdamW's moments and the activations of `batch` sequences, all in one piece of
/// device memory. R = batch * length rows, C = width, V = vocabulary.
class Gpt {
 public:
  /// Throws Error(device) when the device has no operations for training, Error(internal) when `memory` is too small.
  Gpt(Device& device, const ModelShape& shape, std::size_t batch, std::span<std::byte> memory);
  static std::size_t bytes(const ModelShape& shape, std::size_t batch);

  /// Parameters from the stream, moments zero. The same bits on every rank and device.
  void initialise(const RandomStream& random);

  /// Tokens and targets (-1 = not counted) of the next pass, both [R], in plain memory.
  void load(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets);
  void forward();
  /// After forward(): the sum of the losses of the counted targets, in nat; the logits become gradients of
  /// `scale` * that sum.
  double loss(float scale);
  /// After loss(): all gradients. Calls `ready(bucket)` as soon as the gradients of a bucket are complete, in the order of
  /// TensorTable::buckets(), and `tick()` between operations; both may be null.
  void backward(const std::function<void(std::size_t)>& ready, const std::function<void()>& tick);
  void update(const kernels::AdamW& rule);

  /// Parameters and moments as they are now, and back again.
  void save();
  void restore();

  /// For a test only: attention gives nothing, as if its output were lost.
  void break_attention() noexcept { attention_broken_ = true; }

  const TensorTable& table() const noexcept { return table_; }
  const ModelShape& shape() const noexcept { return shape_; }
  std::size_t batch() const noexcept { return batch_; }
  float* parameters() noexcept { return b_.parameters; }
  float* gradients() noexcept { return b_.gradients; }
  float* moments(int which) noexcept { return which == 0 ? b_.m : b_.v; }
  double gradient_squares() { return ops_.sum_squares(b_.gradients, table_.size()); }
  std::uint64_t parameter_digest() { return device_.digest(b_.parameters, table_.size() * sizeof(float)); }
  std::uint64_t gradient_digest(std::size_t bucket);
  Device& device() noexcept { return device_; }

 private:
  struct Layer {
    float *normed1, *qkv, *attended, *normed2, *up, *active, *rstd1, *rstd2, *lse;
  };
  struct Buffers {
    float *parameters = nullptr, *gradients = nullptr, *m = nullptr, *v = nullptr, *saved = nullptr;
    std::vector<Layer> layers;
    float *stream = nullptr, *normed = nullptr, *rstd = nullptr, *logits = nullptr, *losses = nullptr;
    float *wide = nullptr, *narrow = nullptr, *dstream = nullptr, *dqkv = nullptr;  ///< scratch
    float *cosine = nullptr, *sine = nullptr;
    std::int32_t *tokens = nullptr, *targets = nullptr;
  };
  class Carver;

  static Buffers lay_out(Carver& carver, const ModelShape& shape, std::size_t batch);
  float* weight(const Tensor& tensor) noexcept { return b_.parameters + tensor.offset; }
  float* gradient(const Tensor& tensor) noexcept { return b_.gradients + tensor.offset; }
  std::size_t rows() const noexcept { return batch_ * shape_.length; }
  kernels::AttentionShape attention() const noexcept {
    return {batch_, shape_.length, shape_.heads, shape_.depth()};
  }
  kernels::RopeShape rotation() const noexcept { return {shape_.heads, shape_.depth(), shape_.length}; }

  /// y[R, out] = x[R, in] W[in, out]
  void apply(const float* x, const Tensor& w, float* y);
  /// dW = x^T dy; dx = dy W^T
  void apply_backward(const float* x, const Tensor& w, const float* dy, float* dx);
  void layer_forward(std::size_t l);
  void layer_backward(std::size_t l, const std::function<void()>& tick);

  Device& device_;
  TrainOps& ops_;
  ModelShape shape_;
  TensorTable table_;
  std::size_t batch_;
  bool attention_broken_ = false;

  Buffers b_;
};

}  // namespace assay::train
