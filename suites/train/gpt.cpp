// SPDX-License-Identifier: Apache-2.0
#include "suites/train/gpt.hpp"

#include "base/error.hpp"
#include "kernels/fill.hpp"

namespace assay::train {
namespace {

constexpr std::size_t alignment = 64;

TrainOps& ops_of(Device& device) {
  if (device.train_ops() == nullptr)
    throw Error(ErrorKind::device, "train: the " + std::string(device.kind()) + " device has no kernels for it");
  return *device.train_ops();
}

}  // namespace

/// Hands out pieces of the memory one after the other; without memory it only counts.
class Gpt::Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  float* floats(std::size_t count) { return reinterpret_cast<float*>(take(count * sizeof(float))); }
  std::int32_t* integers(std::size_t count) { return reinterpret_cast<std::int32_t*>(take(count * sizeof(std::int32_t))); }
  std::size_t used() const noexcept { return used_; }

 private:
  std::byte* take(std::size_t bytes) {
    // An odd number of cache lines apart: arrays a power of two apart would meet in the same cache sets.
    const std::size_t lines = (bytes + alignment - 1) / alignment | 1;
    std::byte* at = base_ == nullptr ? nullptr : base_ + used_;
    used_ += lines * alignment;
    return at;
  }
  std::byte* base_;
  std::size_t used_ = 0;
};

Gpt::Gpt(Device& device, const ModelShape& shape, std::size_t batch, std::span<std::byte> memory)
    : device_(device), ops_(ops_of(device)), shape_(shape), table_(shape), batch_(batch) {
  if (memory.size() < bytes(shape, batch)) throw Error(ErrorKind::internal, "train: the memory of the plan is too small");
  Carver carver(memory.data());
  b_ = lay_out(carver, shape, batch);
  ops_.prepare(attention());
  const std::size_t half = shape_.length * shape_.depth() / 2;
  std::vector<float> cosine(half), sine(half);
  kernels::host::rope_table(rotation(), cosine.data(), sine.data());
  device_.copy_to_device(b_.cosine, cosine.data(), half * sizeof(float));
  device_.copy_to_device(b_.sine, sine.data(), half * sizeof(float));
}

Gpt::Buffers Gpt::lay_out(Carver& carver, const ModelShape& shape, std::size_t batch) {
  const std::size_t n = shape.parameters(), r = batch * shape.length, c = shape.width;
  Buffers b;
  for (float** whole : {&b.parameters, &b.gradients, &b.m, &b.v}) *whole = carver.floats(n);
  b.saved = carver.floats(3 * n);
  for (std::size_t l = 0; l < shape.layers; ++l) {
    Layer a{};
    for (float** narrow : {&a.normed1, &a.attended, &a.normed2}) *narrow = carver.floats(r * c);
    for (float** wide : {&a.up, &a.active}) *wide = carver.floats(4 * r * c);
    a.qkv = carver.floats(3 * r * c);
    a.rstd1 = carver.floats(r);
    a.rstd2 = carver.floats(r);
    a.lse = carver.floats(r * shape.heads);
    b.layers.push_back(a);
  }
  for (float** narrow : {&b.stream, &b.normed, &b.narrow, &b.dstream}) *narrow = carver.floats(r * c);
  b.wide = carver.floats(4 * r * c);
  b.dqkv = carver.floats(3 * r * c);
  b.logits = carver.floats(r * shape.vocabulary);
  b.rstd = carver.floats(r);
  b.losses = carver.floats(r);
  b.cosine = carver.floats(shape.length * shape.depth() / 2);
  b.sine = carver.floats(shape.length * shape.depth() / 2);
  b.tokens = carver.integers(r);
  b.targets = carver.integers(r);
  return b;
}

std::size_t Gpt::bytes(const ModelShape& shape, std::size_t batch) {
  Carver counter(nullptr);
  lay_out(counter, shape, batch);
  return counter.used();
}

void Gpt::initialise(const RandomStream& random) {
  std::vector<float> values;
  for (const Tensor& tensor : table_.tensors()) {
    values.assign(tensor.size(), 0.0f);
    if (tensor.scale != 0) kernels::host::fill_uniform_fp32(values.data(), values.size(), random.child(tensor.name).key(), 0);
    for (float& v : values) v *= tensor.scale;
    device_.copy_to_device(weight(tensor), values.data(), values.size() * sizeof(float));
  }
  ops_.zero(b_.m, table_.size());
  ops_.zero(b_.v, table_.size());
}

void Gpt::load(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets) {
  device_.copy_to_device(b_.tokens, tokens.data(), tokens.size_bytes());
  device_.copy_to_device(b_.targets, targets.data(), targets.size_bytes());
}

void Gpt::apply(const float* x, const Tensor& w, float* y) {
  device_.matmul(NumType::fp32, {rows(), w.columns, w.rows, false, false, false}, x, weight(w), y);
}

void Gpt::apply_backward(const float* x, const Tensor& w, const float* dy, float* dx) {
  device_.matmul(NumType::fp32, {w.rows, w.columns, rows(), true, false, false}, x, dy, gradient(w));
  device_.matmul(NumType::fp32, {rows(), w.rows, w.columns, false, true, false}, dy, weight(w), dx);
}

void Gpt::forward() {
  const std::size_t r = rows(), c = shape_.width;
  ops_.embedding_forward(weight(table_.embedding()), b_.tokens, b_.stream, r, c);
  ops_.rmsnorm_forward(b_.stream, nullptr, nullptr, b_.layers[0].normed1, b_.layers[0].rstd1, r, c);
  for (std::size_t l = 0; l < shape_.layers; ++l) layer_forward(l);
  apply(b_.normed, table_.head(), b_.logits);
}

/// From normed1 of this layer to normed1 of the next one.
void Gpt::layer_forward(std::size_t l) {
  const std::size_t r = rows(), c = shape_.width;
  const Layer& a = b_.layers[l];
  const bool last = l + 1 == shape_.layers;
  apply(a.normed1, table_.layer(l, 0), a.qkv);
  ops_.rope(rotation(), b_.cosine, b_.sine, a.qkv, r, false);
  ops_.attention_forward(attention(), a.qkv, a.attended, a.lse);
  if (attention_broken_) ops_.zero(a.attended, r * c);
  apply(a.attended, table_.layer(l, 1), b_.narrow);
  ops_.rmsnorm_forward(b_.stream, b_.narrow, b_.stream, a.normed2, a.rstd2, r, c);
  apply(a.normed2, table_.layer(l, 2), a.up);
  ops_.relu_squared_forward(a.up, a.active, 4 * r * c);
  apply(a.active, table_.layer(l, 3), b_.narrow);
  ops_.rmsnorm_forward(b_.stream, b_.narrow, b_.stream, last ? b_.normed : b_.layers[l + 1].normed1,
                       last ? b_.rstd : b_.layers[l + 1].rstd1, r, c);
}

double Gpt::loss(float scale) {
  ops_.cross_entropy(b_.logits, b_.targets, b_.losses, scale, rows(), shape_.vocabulary);
  device_.synchronize();
  std::vector<float> losses(rows());
  device_.copy_to_host(losses.data(), b_.losses, losses.size() * sizeof(float));
  double sum = 0;
  for (const float loss : losses) sum += static_cast<double>(loss);
  return sum;
}

void Gpt::backward(const std::function<void(std::size_t)>& ready, const std::function<void()>& tick) {
  const std::size_t r = rows(), c = shape_.width;
  const auto done = [&](std::size_t bucket) {
    if (ready) ready(bucket);
    if (tick) tick();
  };
  apply_backward(b_.normed, table_.head(), b_.logits, b_.narrow);
  done(0);
  ops_.zero(b_.dstream, r * c);
  ops_.rmsnorm_backward(b_.narrow, b_.normed, b_.rstd, b_.dstream, r, c);
  for (std::size_t l = shape_.layers; l-- > 0;) {
    layer_backward(l, tick);
    done(table_.bucket_of_layer(l));
  }
  ops_.embedding_backward(b_.dstream, b_.tokens, gradient(table_.embedding()), r, c, shape_.vocabulary);
  done(table_.buckets().size() - 1);
}

void Gpt::layer_backward(std::size_t l, const std::function<void()>& tick) {
  const std::size_t r = rows(), c = shape_.width;
  const Layer& a = b_.layers[l];
  const auto between = [&] {
    if (tick) tick();
  };
  apply_backward(a.active, table_.layer(l, 3), b_.dstream, b_.wide);
  between();
  ops_.relu_squared_backward(a.up, b_.wide, b_.wide, 4 * r * c);
  apply_backward(a.normed2, table_.layer(l, 2), b_.wide, b_.narrow);
  between();
  ops_.rmsnorm_backward(b_.narrow, a.normed2, a.rstd2, b_.dstream, r, c);
  apply_backward(a.attended, table_.layer(l, 1), b_.dstream, b_.narrow);
  if (attention_broken_) ops_.zero(b_.narrow, r * c);
  between();
  ops_.attention_backward(attention(), a.qkv, a.attended, a.lse, b_.narrow, b_.dqkv);
  ops_.rope(rotation(), b_.cosine, b_.sine, b_.dqkv, r, true);
  between();
  apply_backward(a.normed1, table_.layer(l, 0), b_.dqkv, b_.narrow);
  ops_.rmsnorm_backward(b_.narrow, a.normed1, a.rstd1, b_.dstream, r, c);
}

void Gpt::update(const kernels::AdamW& rule) {
  ops_.adamw(rule, b_.parameters, b_.gradients, b_.m, b_.v, table_.size());
}

void Gpt::save() {
  const std::size_t n = table_.size();
  ops_.copy(b_.saved, b_.parameters, n);
  ops_.copy(b_.saved + n, b_.m, n);
  ops_.copy(b_.saved + 2 * n, b_.v, n);
}

void Gpt::restore() {
  const std::size_t n = table_.size();
  ops_.copy(b_.parameters, b_.saved, n);
  ops_.copy(b_.m, b_.saved + n, n);
  ops_.copy(b_.v, b_.saved + 2 * n, n);
}

std::uint64_t Gpt::gradient_digest(std::size_t bucket) {
  const Bucket& b = table_.buckets()[bucket];
  return device_.digest(b_.gradients + b.offset, b.size * sizeof(float));
}

}  // namespace assay::train
