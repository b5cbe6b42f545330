// SPDX-License-Identifier: Apache-2.0
#include "suites/train/model.hpp"

#include <algorithm>
#include <cmath>

#include "suites/train/gpt.hpp"

namespace assay::train {
namespace {

/// Elements: pieces begin where every device can read them by its widest accesses.
constexpr std::size_t piece_alignment = 16;

}  // namespace

TensorTable::TensorTable(const ModelShape& shape) {
  const std::size_t c = shape.width, v = shape.vocabulary;
  const auto add = [this](std::string name, std::size_t rows, std::size_t columns, float scale) {
    tensors_.push_back({std::move(name), rows, columns, size_, scale});
    size_ += rows * columns;
  };
  // Variance 1 / rows for what multiplies normalised values; what adds to the residual stream starts at zero,
  // so that the model starts as a table of single tokens and every layer learns.
  const float inner = std::sqrt(3.0f / static_cast<float>(c));
  add("embedding", v, c, 1.0f);
  for (std::size_t l = 0; l < shape.layers; ++l) {
    const std::string layer = "layer" + std::to_string(l);
    add(layer + ".qkv", c, 3 * c, inner);
    add(layer + ".output", c, c, 0);
    add(layer + ".up", c, 4 * c, inner);
    add(layer + ".down", 4 * c, c, 0);
  }
  add("head", c, v, 0.1f * inner);

  buckets_.push_back({"head", head().offset, head().size()});
  for (std::size_t l = shape.layers; l-- > 0;)
    buckets_.push_back({"layer" + std::to_string(l), layer(l, 0).offset, 12 * c * c});
  buckets_.push_back({"embedding", 0, embedding().size()});
}

std::size_t TensorTable::bucket_of(std::size_t element) const noexcept {
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if (element >= buckets_[b].offset && element - buckets_[b].offset < buckets_[b].size) return b;
  return buckets_.size();
}

Share::Share(const TensorTable& table, const Storage& storage)
    : parts_(static_cast<std::size_t>(storage.parts)) {
  if (parts_ == 1) {
    pieces_.push_back({0, table.size(), 0, false});
    size_ = table.size();
    return;
  }
  for (const Bucket& bucket : table.buckets()) {
    const std::size_t each = run(bucket), rest = bucket.size - each * parts_;
    pieces_.push_back({bucket.offset + static_cast<std::size_t>(storage.part) * each, each, size_, false});
    pieces_.push_back({bucket.offset + each * parts_, rest, size_ + each, true});
    size_ += (each + rest + piece_alignment - 1) / piece_alignment * piece_alignment;
    longest_ = std::max(longest_, each);
  }
}

std::size_t Share::run(const Bucket& bucket) const noexcept {
  return bucket.size / parts_ / piece_alignment * piece_alignment;
}

std::size_t memory_bytes(const ModelShape& shape, std::size_t batch, const Storage& storage) {
  return Gpt::bytes(shape, batch, storage);
}

}  // namespace assay::train
