// SPDX-License-Identifier: Apache-2.0
// The shape of the model: which tensors there are, where they lie, and what a token costs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace assay::train {

/// GPT: RMSNorm without weights, rotary positions, causal attention, ReLU^2 MLP of 4 widths, no biases,
/// untied head.
struct ModelShape {
  std::size_t width = 128, layers = 2, heads = 4, vocabulary = 32, length = 64;

  std::size_t depth() const noexcept { return width / heads; }
  /// 12 C^2 per layer, and C V twice.
  std::size_t parameters() const noexcept { return 12 * width * width * layers + 2 * width * vocabulary; }
  /// Parameters that multiply: all but the embedding.
  std::size_t multiplied() const noexcept { return parameters() - width * vocabulary; }
  /// Forward and backward: 6 per multiplied parameter, and 6 L C T for causal attention, whose masked half is
  /// not counted.
  double flops_per_token() const noexcept {
    return 6.0 * static_cast<double>(multiplied()) + 6.0 * static_cast<double>(layers * width * length);
  }
};

/// A parameter tensor, row-major [rows, columns], at `offset` elements of the parameters.
struct Tensor {
  std::string name;
  std::size_t rows = 0, columns = 0, offset = 0;
  float scale = 0;  ///< initial values are uniform in [-scale, scale)
  std::size_t size() const noexcept { return rows * columns; }
};

/// Tensors whose gradients are complete at the same time and are reduced together.
struct Bucket {
  std::string name;
  std::size_t offset = 0, size = 0;  ///< elements
};

/// Everything in one piece: embedding, layers in order, head.
class TensorTable {
 public:
  explicit TensorTable(const ModelShape& shape);

  const std::vector<Tensor>& tensors() const noexcept { return tensors_; }
  const Tensor& embedding() const noexcept { return tensors_.front(); }
  const Tensor& head() const noexcept { return tensors_.back(); }
  /// Of a layer: 0 qkv [C, 3C], 1 output [C, C], 2 up [C, 4C], 3 down [4C, C].
  const Tensor& layer(std::size_t l, std::size_t which) const noexcept { return tensors_[1 + 4 * l + which]; }
  std::size_t size() const noexcept { return size_; }

  /// In the order in which a backward pass completes them: head, last layer ... first layer, embedding.
  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }
  std::size_t bucket_of_layer(std::size_t l) const noexcept { return buckets_.size() - 2 - l; }
  /// The bucket of an element of the parameters.
  std::size_t bucket_of(std::size_t element) const noexcept;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Bucket> buckets_;
  std::size_t size_ = 0;
};

/// How a replica is stored. `type`: activations, and the weights that multiply; with bf16 there are fp32
/// master parameters beside them. `part` of `parts`: whose share of master parameters and moments this is
/// (ZeRO stage 1); one part has all.
struct Storage {
  NumType type = NumType::fp32;
  int part = 0, parts = 1;
  bool several_passes = false;  ///< room to add up the gradients of several passes
};

/// Elements [offset, offset + size) of the parameters, which a part updates; `at` in its moments.
struct Piece {
  std::size_t offset = 0, size = 0, at = 0;
  bool shared = false;  ///< all parts update it alike
};

/// What one part updates: an equal run of every bucket, and of each the few elements at its end that do not
/// divide. Every part has the same number of elements.
class Share {
 public:
  Share(const TensorTable& table, const Storage& storage);

  const std::vector<Piece>& pieces() const noexcept { return pieces_; }
  /// Elements of all pieces.
  std::size_t size() const noexcept { return size_; }
  /// Elements of a bucket that each part has for itself; they lie in the order of the parts at the begin of
  /// the bucket.
  std::size_t run(const Bucket& bucket) const noexcept;
  std::size_t longest_run() const noexcept { return longest_; }

 private:
  std::size_t parts_, size_ = 0, longest_ = 0;
  std::vector<Piece> pieces_;  ///< by bucket: the run, then what is shared
};

/// Bytes of device memory for a model with `batch` sequences per step: parameters, gradients, two moments, a
/// snapshot of all but the gradients, and activations.
std::size_t memory_bytes(const ModelShape& shape, std::size_t batch, const Storage& storage = {});

}  // namespace assay::train
