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

/// One replica: parameters, gradients, AdamW's moments and the activations of `batch` sequences, all in one
/// piece of device memory. R = batch * length rows, C = width, V = vocabulary. Gradients of parameters are
/// fp32 whatever the storage, so that a bucket is summed over ranks as exactly as in fp32 training.
class Gpt {
 public:
  /// Throws Error(device) when the device has no operations for training, Error(internal) when `memory` is
  /// too small.
  Gpt(Device& device, const ModelShape& shape, std::size_t batch, std::span<std::byte> memory,
      const Storage& storage = {});
  static std::size_t bytes(const ModelShape& shape, std::size_t batch, const Storage& storage = {});
  /// All matrix products of a pass, each once.
  static std::vector<Matmul> products(const ModelShape& shape, std::size_t batch);

  /// Parameters from the stream, moments zero. The same bits on every rank and device.
  void initialise(const RandomStream& random);

  /// Tokens and targets (-1 = not counted) of the next pass, both [R], in plain memory.
  void load(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets);
  void forward();
  /// After forward(): the losses of the targets; the logits become gradients of `scale` times their sum.
  void score(float scale);
  /// After score(): the sum of the losses of the counted targets, in nat. Waits for the device.
  double loss_sum();
  double loss(float scale) {
    score(scale);
    return loss_sum();
  }
  /// After score(): all gradients. Calls `ready(bucket)` as soon as the gradients of a bucket are complete,
  /// in the order of TensorTable::buckets(), and `tick()` between operations; both may be null.
  void backward(const std::function<void(std::size_t)>& ready, const std::function<void()>& tick);
  /// AdamW on the pieces of this part, from `reduced()` where there are several parts.
  void update(const kernels::AdamW& rule);
  /// Where an update takes several passes, after each of them: its gradients, as they are in what update()
  /// reads, are added to those of the passes before; after the last one update() reads the sum.
  void gather(int pass, int passes);

  /// Parameters and moments as they are now, and back again.
  void save();
  void restore();

  /// What an update read and made, in plain memory: elements [begin, begin + count) of a piece. `before`, `m`
  /// and `v` are those of save(); `weights` is what multiplies, widened to fp32.
  struct UpdateSlice {
    std::vector<float> before, m, v, gradients, after, weights;
  };
  UpdateSlice update_slice(const Piece& piece, std::size_t begin, std::size_t count);

  /// For a test only: attention gives nothing, as if its output were lost; the first layer gets no gradients.
  void break_attention() noexcept { attention_broken_ = true; }
  void freeze_first_layer() noexcept { frozen_ = true; }

  const TensorTable& table() const noexcept { return table_; }
  const Share& share() const noexcept { return share_; }
  const ModelShape& shape() const noexcept { return shape_; }
  const Storage& storage() const noexcept { return storage_; }
  std::size_t batch() const noexcept { return batch_; }
  /// fp32 masters. All of them, unless the storage is bf16 in several parts: then those of this part.
  float* parameters() noexcept { return b_.parameters; }
  /// What multiplies: [table().size()] of the storage type, the masters themselves in fp32.
  void* weights() noexcept { return b_.weights; }
  std::size_t element_bytes() const noexcept { return size_of(storage_.type); }
  float* gradients() noexcept { return b_.gradients; }
  /// With several parts: [share().size()] gradients summed over ranks, and room for the longest run of
  /// weights.
  float* reduced() noexcept { return b_.reduced; }
  void* staging() noexcept { return b_.staging; }
  float* moments(int which) noexcept { return which == 0 ? b_.m : b_.v; }
  /// Of this part's gradients; what all parts share only where `with_shared`.
  double gradient_squares(bool with_shared = true);
  /// Of the weights, and of the masters where this part has all of them.
  std::uint64_t parameter_digest();
  std::uint64_t gradient_digest(std::size_t bucket);
  /// After the masters were written from outside.
  void to_bf16() { ops_.to_bf16(storage_.type, b_.parameters, b_.weights, table_.size()); }
  Device& device() noexcept { return device_; }
  TrainOps& ops() noexcept { return ops_; }

 private:
  struct Layer {
    void *normed1, *qkv, *attended, *normed2, *up, *active;
    float *rstd1, *rstd2, *lse;
  };
  struct Buffers {
    float *parameters = nullptr, *gradients = nullptr, *m = nullptr, *v = nullptr, *saved = nullptr,
          *reduced = nullptr;
    float* gathered = nullptr;
    void *weights = nullptr, *staging = nullptr;
    std::vector<Layer> layers;
    void *stream = nullptr, *normed = nullptr, *logits = nullptr;
    float *rstd = nullptr, *losses = nullptr;
    void *wide = nullptr, *narrow = nullptr, *dstream = nullptr, *dqkv = nullptr;  ///< scratch
    float *cosine = nullptr, *sine = nullptr;
    std::int32_t *tokens = nullptr, *targets = nullptr;
  };
  class Carver;

  static Buffers lay_out(Carver& carver, const ModelShape& shape, std::size_t batch, const Storage& storage);
  const void* weight(const Tensor& tensor) noexcept {
    return static_cast<const std::byte*>(b_.weights) + tensor.offset * element_bytes();
  }
  /// Of the elements from `piece.offset` on.
  float* master(const Piece& piece) noexcept {
    return b_.parameters + (storage_.type == NumType::fp32 ? piece.offset : piece.at);
  }
  std::size_t masters() const noexcept {
    return storage_.type == NumType::fp32 ? table_.size() : share_.size();
  }
  float* gradient(const Tensor& tensor) noexcept { return b_.gradients + tensor.offset; }
  std::size_t rows() const noexcept { return batch_ * shape_.length; }
  static kernels::AttentionShape attention_of(const ModelShape& shape, std::size_t batch) noexcept {
    return {batch, shape.length, shape.heads, shape.depth()};
  }
  kernels::AttentionShape attention() const noexcept { return attention_of(shape_, batch_); }
  kernels::RopeShape rotation() const noexcept { return {shape_.heads, shape_.depth(), shape_.length}; }

  /// y[R, out] = x[R, in] W[in, out]
  void apply(const void* x, const Tensor& w, void* y);
  /// dW = x^T dy; dx = dy W^T
  void apply_backward(const void* x, const Tensor& w, const void* dy, void* dx);
  void layer_forward(std::size_t l);
  void layer_backward(std::size_t l, const std::function<void()>& tick);

  Device& device_;
  TrainOps& ops_;
  ModelShape shape_;
  Storage storage_;
  TensorTable table_;
  Share share_;
  std::size_t batch_;
  bool attention_broken_ = false, frozen_ = false;

  Buffers b_;
};

}  // namespace assay::train
