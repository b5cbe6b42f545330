// SPDX-License-Identifier: Apache-2.0
#include "suites/train/gpt.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace assay::train {
namespace {

/// Cache lines of hosts have 64 bytes; libraries of products choose algorithms for GPUs that need 256.
constexpr std::size_t alignment = 256;

TrainOps& ops_of(Device& device) {
  if (device.train_ops() == nullptr)
    throw Error(ErrorKind::device,
                "train: the " + std::string(device.kind()) + " device has no kernels for it");
  return *device.train_ops();
}

/// y[rows, columns] = x W, with W [w.rows, w.columns]; and what a backward pass needs of it.
struct Products {
  Matmul forward, weight_gradient, input_gradient;
};
Products products_of(const Tensor& w, std::size_t rows) noexcept {
  return {{rows, w.columns, w.rows, false, false, false},
          {w.rows, w.columns, rows, true, false, false, Output::exact},
          {rows, w.rows, w.columns, false, true, false}};
}

}  // namespace

/// Hands out pieces of the memory one after the other; without memory it only counts.
class Gpt::Carver {
 public:
  Carver(std::byte* base, NumType type) : base_(base), element_(size_of(type)) {}
  float* floats(std::size_t count) { return reinterpret_cast<float*>(take(count * sizeof(float))); }
  std::int32_t* integers(std::size_t count) {
    return reinterpret_cast<std::int32_t*>(take(count * sizeof(std::int32_t)));
  }
  /// Of the storage type.
  void* values(std::size_t count) { return take(count * element_); }
  std::size_t used() const noexcept { return used_; }

 private:
  std::byte* take(std::size_t bytes) {
    // An odd number of these apart: arrays a power of two apart would meet in the same cache sets.
    const std::size_t units = (bytes + alignment - 1) / alignment | 1;
    std::byte* at = base_ == nullptr ? nullptr : base_ + used_;
    used_ += units * alignment;
    return at;
  }
  std::byte* base_;
  std::size_t element_, used_ = 0;
};

Gpt::Gpt(Device& device, const ModelShape& shape, std::size_t batch, std::span<std::byte> memory,
         const Storage& storage)
    : device_(device),
      ops_(ops_of(device)),
      shape_(shape),
      storage_(storage),
      table_(shape),
      share_(table_, storage),
      batch_(batch) {
  if (memory.size() < bytes(shape, batch, storage))
    throw Error(ErrorKind::internal, "train: the memory of the plan is too small");
  if (shape.depth() % 32 != 0 || shape.vocabulary % 16 != 0)  // rope.hpp, cross_entropy.hpp
    throw Error(ErrorKind::internal,
                "train: the depth of a head must be a multiple of 32, the vocabulary one of 16");
  Carver carver(memory.data(), storage.type);
  b_ = lay_out(carver, shape, batch, storage);
  ops_.prepare(storage.type, attention());
  const std::size_t half = shape_.length * shape_.depth() / 2;
  std::vector<float> cosine(half), sine(half);
  kernels::host::rope_table(rotation(), cosine.data(), sine.data());
  device_.copy_to_device(b_.cosine, cosine.data(), half * sizeof(float));
  device_.copy_to_device(b_.sine, sine.data(), half * sizeof(float));
}

Gpt::Buffers Gpt::lay_out(Carver& carver, const ModelShape& shape, std::size_t batch,
                          const Storage& storage) {
  const std::size_t n = shape.parameters(), r = batch * shape.length, c = shape.width;
  const Share share(TensorTable(shape), storage);
  const bool narrow = storage.type != NumType::fp32;
  const std::size_t masters = narrow ? share.size() : n, reduced = storage.parts > 1 ? share.size() : n;
  Buffers b;
  b.parameters = carver.floats(masters);
  b.gradients = carver.floats(n);
  for (float** moment : {&b.m, &b.v}) *moment = carver.floats(share.size());
  b.saved = carver.floats(masters + 2 * share.size());
  b.weights = narrow ? carver.values(n) : b.parameters;
  if (storage.parts > 1) {
    b.reduced = carver.floats(reduced);
    b.staging = carver.values(share.longest_run());
  }
  if (storage.several_passes) b.gathered = carver.floats(reduced);
  for (std::size_t l = 0; l < shape.layers; ++l) {
    Layer a{};
    for (void** one : {&a.normed1, &a.attended, &a.normed2}) *one = carver.values(r * c);
    for (void** wide : {&a.up, &a.active}) *wide = carver.values(4 * r * c);
    a.qkv = carver.values(3 * r * c);
    a.rstd1 = carver.floats(r);
    a.rstd2 = carver.floats(r);
    a.lse = carver.floats(r * shape.heads);
    b.layers.push_back(a);
  }
  for (void** one : {&b.stream, &b.normed, &b.narrow, &b.dstream}) *one = carver.values(r * c);
  b.wide = carver.values(4 * r * c);
  b.dqkv = carver.values(3 * r * c);
  // The logits are not needed any more when gradients of scores are kept there.
  const std::size_t scores =
      narrow ? kernels::attention_score_bytes(attention_of(shape, batch)) / size_of(storage.type) : 0;
  b.logits = carver.values(std::max(r * shape.vocabulary, scores));
  b.rstd = carver.floats(r);
  b.losses = carver.floats(r);
  b.cosine = carver.floats(shape.length * shape.depth() / 2);
  b.sine = carver.floats(shape.length * shape.depth() / 2);
  b.tokens = carver.integers(r);
  b.targets = carver.integers(r);
  return b;
}

std::size_t Gpt::bytes(const ModelShape& shape, std::size_t batch, const Storage& storage) {
  Carver counter(nullptr, storage.type);
  lay_out(counter, shape, batch, storage);
  return counter.used();
}

void Gpt::initialise(const RandomStream& random) {
  // Made where the gradients will be: the masters may be a part of all.
  for (const Tensor& tensor : table_.tensors()) {
    float* values = gradient(tensor);
    if (tensor.scale == 0) {
      ops_.zero(values, tensor.size() * sizeof(float));
      continue;
    }
    device_.fill_uniform(NumType::fp32, values, tensor.size(), random.child(tensor.name).key());
    ops_.scale(values, tensor.scale, tensor.size());
  }
  if (storage_.type == NumType::fp32)
    ops_.copy(b_.parameters, b_.gradients, table_.size() * sizeof(float));
  else
    for (const Piece& piece : share_.pieces())
      ops_.copy(master(piece), b_.gradients + piece.offset, piece.size * sizeof(float));
  ops_.to_bf16(storage_.type, b_.gradients, b_.weights, table_.size());
  ops_.zero(b_.m, share_.size() * sizeof(float));
  ops_.zero(b_.v, share_.size() * sizeof(float));
}

void Gpt::load(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets) {
  device_.copy_to_device(b_.tokens, tokens.data(), tokens.size_bytes());
  device_.copy_to_device(b_.targets, targets.data(), targets.size_bytes());
}

void Gpt::apply(const void* x, const Tensor& w, void* y) {
  device_.matmul(storage_.type, products_of(w, rows()).forward, x, weight(w), y);
}

void Gpt::apply_backward(const void* x, const Tensor& w, const void* dy, void* dx) {
  const Products p = products_of(w, rows());
  device_.matmul(storage_.type, p.weight_gradient, x, dy, gradient(w));
  device_.matmul(storage_.type, p.input_gradient, dy, weight(w), dx);
}

std::vector<Matmul> Gpt::products(const ModelShape& shape, std::size_t batch) {
  const TensorTable table(shape);
  std::vector<Matmul> all;
  const auto add = [&](const Tensor& w) {
    const Products p = products_of(w, batch * shape.length);
    for (const Matmul& one : {p.forward, p.weight_gradient, p.input_gradient})
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  };
  for (int i = 0; i < 4; ++i) add(table.layer(0, i));
  add(table.head());
  return all;
}

void Gpt::forward() {
  const std::size_t r = rows(), c = shape_.width;
  const NumType type = storage_.type;
  ops_.embedding_forward(type, weight(table_.embedding()), b_.tokens, b_.stream, r, c);
  ops_.rmsnorm_forward(type, b_.stream, nullptr, nullptr, b_.layers[0].normed1, b_.layers[0].rstd1, r, c);
  for (std::size_t l = 0; l < shape_.layers; ++l) layer_forward(l);
  apply(b_.normed, table_.head(), b_.logits);
}

/// From normed1 of this layer to normed1 of the next one.
void Gpt::layer_forward(std::size_t l) {
  const std::size_t r = rows(), c = shape_.width;
  const NumType type = storage_.type;
  const Layer& a = b_.layers[l];
  const bool last = l + 1 == shape_.layers;
  apply(a.normed1, table_.layer(l, 0), a.qkv);
  ops_.rope(type, rotation(), b_.cosine, b_.sine, a.qkv, r, false);
  ops_.attention_forward(type, attention(), a.qkv, a.attended, a.lse);
  if (attention_broken_) ops_.zero(a.attended, r * c * element_bytes());
  apply(a.attended, table_.layer(l, 1), b_.narrow);
  ops_.rmsnorm_forward(type, b_.stream, b_.narrow, b_.stream, a.normed2, a.rstd2, r, c);
  apply(a.normed2, table_.layer(l, 2), a.up);
  ops_.relu_squared_forward(type, a.up, a.active, 4 * r * c);
  apply(a.active, table_.layer(l, 3), b_.narrow);
  ops_.rmsnorm_forward(type, b_.stream, b_.narrow, b_.stream, last ? b_.normed : b_.layers[l + 1].normed1,
                       last ? b_.rstd : b_.layers[l + 1].rstd1, r, c);
}

void Gpt::score(float scale) {
  ops_.cross_entropy(storage_.type, b_.logits, b_.targets, b_.losses, scale, rows(), shape_.vocabulary);
}

double Gpt::loss_sum() {
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
  ops_.zero(b_.dstream, r * c * element_bytes());
  ops_.rmsnorm_backward(storage_.type, b_.narrow, b_.normed, b_.rstd, b_.dstream, r, c);
  for (std::size_t l = shape_.layers; l-- > 0;) {
    layer_backward(l, tick);
    if (frozen_ && l == 0) {
      const Bucket& first = table_.buckets()[table_.bucket_of_layer(0)];
      ops_.zero(b_.gradients + first.offset, first.size * sizeof(float));
    }
    done(table_.bucket_of_layer(l));
  }
  ops_.embedding_backward(storage_.type, b_.dstream, b_.tokens, gradient(table_.embedding()), r, c,
                          shape_.vocabulary);
  done(table_.buckets().size() - 1);
}

void Gpt::layer_backward(std::size_t l, const std::function<void()>& tick) {
  const std::size_t r = rows(), c = shape_.width;
  const NumType type = storage_.type;
  const Layer& a = b_.layers[l];
  const auto between = [&] {
    if (tick) tick();
  };
  apply_backward(a.active, table_.layer(l, 3), b_.dstream, b_.wide);
  between();
  ops_.relu_squared_backward(type, a.up, b_.wide, b_.wide, 4 * r * c);
  apply_backward(a.normed2, table_.layer(l, 2), b_.wide, b_.narrow);
  between();
  ops_.rmsnorm_backward(type, b_.narrow, a.normed2, a.rstd2, b_.dstream, r, c);
  apply_backward(a.attended, table_.layer(l, 1), b_.dstream, b_.narrow);
  if (attention_broken_) ops_.zero(b_.narrow, r * c * element_bytes());
  between();
  ops_.attention_backward(type, attention(), a.qkv, a.attended, a.lse, b_.narrow, b_.dqkv, b_.logits);
  ops_.rope(type, rotation(), b_.cosine, b_.sine, b_.dqkv, r, true);
  between();
  apply_backward(a.normed1, table_.layer(l, 0), b_.dqkv, b_.narrow);
  ops_.rmsnorm_backward(type, b_.narrow, a.normed1, a.rstd1, b_.dstream, r, c);
}

Gpt::UpdateSlice Gpt::update_slice(const Piece& piece, std::size_t begin, std::size_t count) {
  const auto floats = [&](const float* from) {
    std::vector<float> values(count);
    device_.copy_to_host(values.data(), from + begin, count * sizeof(float));
    return values;
  };
  const std::size_t n = masters(), k = share_.size();
  const float* const master_before = b_.saved + (master(piece) - b_.parameters);
  UpdateSlice slice{floats(master_before),
                    floats(b_.saved + n + piece.at),
                    floats(b_.saved + n + k + piece.at),
                    floats(b_.reduced != nullptr ? b_.reduced + piece.at : b_.gradients + piece.offset),
                    floats(master(piece)),
                    {}};
  if (storage_.type == NumType::fp32) {
    slice.weights = slice.after;
    return slice;
  }
  std::vector<kernels::Bfloat> narrow(count);
  device_.copy_to_host(narrow.data(), static_cast<const kernels::Bfloat*>(b_.weights) + piece.offset + begin,
                       count * sizeof(kernels::Bfloat));
  for (const kernels::Bfloat w : narrow) slice.weights.push_back(kernels::to_float(w));
  return slice;
}

void Gpt::gather(int pass, int passes) {
  if (passes == 1) return;
  float* const mine = b_.reduced != nullptr ? b_.reduced : b_.gradients;
  const std::size_t n = b_.reduced != nullptr ? share_.size() : table_.size();
  if (pass == 0)
    ops_.copy(b_.gathered, mine, n * sizeof(float));
  else if (pass + 1 < passes)
    ops_.add(b_.gathered, mine, n);
  else
    ops_.add(mine, b_.gathered, n);
}

void Gpt::update(const kernels::AdamW& rule) {
  for (const Piece& piece : share_.pieces()) {
    const float* gradients = b_.reduced != nullptr ? b_.reduced + piece.at : b_.gradients + piece.offset;
    ops_.adamw(storage_.type, rule, master(piece), gradients, b_.m + piece.at, b_.v + piece.at,
               static_cast<std::byte*>(b_.weights) + piece.offset * element_bytes(), piece.size);
  }
}

double Gpt::gradient_squares(bool with_shared) {
  double sum = 0;
  for (const Piece& piece : share_.pieces())
    if (with_shared || !piece.shared)
      sum += ops_.sum_squares(b_.reduced != nullptr ? b_.reduced + piece.at : b_.gradients + piece.offset,
                              piece.size);
  return sum;
}

std::uint64_t Gpt::parameter_digest() {
  const std::uint64_t weights = device_.digest(b_.weights, table_.size() * element_bytes());
  if (storage_.type == NumType::fp32 || storage_.parts > 1) return weights;
  return mix64(weights, device_.digest(b_.parameters, table_.size() * sizeof(float)));
}

void Gpt::save() {
  const std::size_t n = masters(), k = share_.size();
  ops_.copy(b_.saved, b_.parameters, n * sizeof(float));
  ops_.copy(b_.saved + n, b_.m, k * sizeof(float));
  ops_.copy(b_.saved + n + k, b_.v, k * sizeof(float));
}

void Gpt::restore() {
  const std::size_t n = masters(), k = share_.size();
  ops_.copy(b_.parameters, b_.saved, n * sizeof(float));
  ops_.copy(b_.m, b_.saved + n, k * sizeof(float));
  ops_.copy(b_.v, b_.saved + n + k, k * sizeof(float));
  // Weights of other parts come back with their owners' next update.
  for (const Piece& piece : share_.pieces())
    ops_.to_bf16(storage_.type, master(piece),
                 static_cast<std::byte*>(b_.weights) + piece.offset * element_bytes(), piece.size);
}

std::uint64_t Gpt::gradient_digest(std::size_t bucket) {
  const Bucket& b = table_.buckets()[bucket];
  return device_.digest(b_.gradients + b.offset, b.size * sizeof(float));
}

}  // namespace assay::train
