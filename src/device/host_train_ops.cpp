// SPDX-License-Identifier: Apache-2.0
#include "device/host_train_ops.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "base/error.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/embedding.hpp"
#include "kernels/relu_squared.hpp"
#include "kernels/rmsnorm.hpp"
#include "kernels/sum_squares.hpp"

namespace assay {
namespace {

namespace host = kernels::host;

struct Free {
  void operator()(float* p) const noexcept { ::operator delete[](p, std::align_val_t{64}); }
};

class HostTrainOps final : public TrainOps {
 public:
  explicit HostTrainOps(Team& team) : team_(team) {}

  void prepare(const kernels::AttentionShape& shape) override {
    const std::size_t wanted = (host::attention_scratch(shape) + 15) / 16 * 16;
    if (wanted <= scratch_floats_) return;
    const std::size_t bytes = wanted * static_cast<std::size_t>(team_.size()) * sizeof(float);
    scratch_.reset(static_cast<float*>(::operator new[](bytes, std::align_val_t{64}, std::nothrow)));
    scratch_floats_ = scratch_ ? wanted : 0;
    if (!scratch_) throw Error(ErrorKind::resource, "train: no memory for the scores of attention");
  }

  void embedding_forward(const float* table, const std::int32_t* tokens, float* out, std::size_t rows,
                         std::size_t width) override {
    share(rows, 1, [=](std::size_t a, std::size_t b) {
      host::embedding_forward(table, tokens + a, out + a * width, b - a, width);
    });
  }
  void embedding_backward(const float* dout, const std::int32_t* tokens, float* dtable, std::size_t rows,
                          std::size_t width, std::size_t vocabulary) override {
    share(vocabulary, 1, [=](std::size_t a, std::size_t b) {
      host::embedding_backward(dout, tokens, dtable, rows, width, static_cast<std::int32_t>(a),
                               static_cast<std::int32_t>(b));
    });
  }
  void rmsnorm_forward(const float* x, const float* add, float* sum, float* y, float* rstd, std::size_t rows,
                       std::size_t width) override {
    share(rows, 1, [=](std::size_t a, std::size_t b) {
      const std::size_t at = a * width;
      host::rmsnorm_forward(x + at, add == nullptr ? add : add + at, sum == nullptr ? sum : sum + at, y + at, rstd + a,
                            b - a, width);
    });
  }
  void rmsnorm_backward(const float* dy, const float* y, const float* rstd, float* dx, std::size_t rows,
                        std::size_t width) override {
    share(rows, 1, [=](std::size_t a, std::size_t b) {
      host::rmsnorm_backward(dy + a * width, y + a * width, rstd + a, dx + a * width, b - a, width);
    });
  }
  void rope(const kernels::RopeShape& shape, const float* cosine, const float* sine, float* qkv, std::size_t rows,
            bool inverse) override {
    share(rows, 1, [=](std::size_t a, std::size_t b) { host::rope(shape, cosine, sine, qkv, a, b, inverse); });
  }
  void attention_forward(const kernels::AttentionShape& shape, const float* qkv, float* out, float* lse) override {
    pairs(shape, [=](std::size_t pair, float* scratch) {
      host::attention_forward(shape, qkv, out, lse, pair, scratch);
    });
  }
  void attention_backward(const kernels::AttentionShape& shape, const float* qkv, const float* out, const float* lse,
                          const float* dout, float* dqkv) override {
    pairs(shape, [=](std::size_t pair, float* scratch) {
      host::attention_backward(shape, qkv, out, lse, dout, dqkv, pair, scratch);
    });
  }
  void relu_squared_forward(const float* x, float* y, std::size_t count) override {
    share(count, 64, [=](std::size_t a, std::size_t b) { host::relu_squared_forward(x + a, y + a, b - a); });
  }
  void relu_squared_backward(const float* x, const float* dy, float* dx, std::size_t count) override {
    share(count, 64, [=](std::size_t a, std::size_t b) { host::relu_squared_backward(x + a, dy + a, dx + a, b - a); });
  }
  void cross_entropy(float* logits, const std::int32_t* targets, float* loss, float scale, std::size_t rows,
                     std::size_t width) override {
    share(rows, 1, [=](std::size_t a, std::size_t b) {
      host::cross_entropy(logits + a * width, targets + a, loss + a, scale, b - a, width);
    });
  }
  void adamw(const kernels::AdamW& rule, float* parameters, const float* gradients, float* m, float* v,
             std::size_t count) override {
    share(count, 64, [=, &rule](std::size_t a, std::size_t b) {
      host::adamw(rule, parameters + a, gradients + a, m + a, v + a, b - a);
    });
  }
  double sum_squares(const float* data, std::size_t count) override {
    constexpr std::size_t block = kernels::sum_squares_block;
    parts_.assign((count + block - 1) / block, 0.0);
    share(parts_.size(), 1, [=, this](std::size_t a, std::size_t b) {
      for (std::size_t i = a; i < b; ++i)
        parts_[i] = host::sum_squares(data + i * block, std::min(block, count - i * block));
    });
    double total = 0;
    for (const double part : parts_) total += part;
    return total;
  }
  void zero(float* data, std::size_t count) override {
    share(count, 64, [=](std::size_t a, std::size_t b) { std::memset(data + a, 0, (b - a) * sizeof(float)); });
  }
  void copy(float* to, const float* from, std::size_t count) override {
    share(count, 64,
          [=](std::size_t a, std::size_t b) { std::memcpy(to + a, from + a, (b - a) * sizeof(float)); });
  }

 private:
  /// f(begin, end) for an equal part of [0, count) per thread, cut at multiples of `grain`.
  template <typename F>
  void share(std::size_t count, std::size_t grain, const F& f) noexcept {
    const auto threads = static_cast<std::size_t>(team_.size());
    if (threads == 1 || count <= grain) return f(std::size_t{0}, count);
    const std::size_t grains = (count + grain - 1) / grain, each = (grains + threads - 1) / threads * grain;
    team_.run([&](int thread) noexcept {
      const std::size_t begin = std::min(count, static_cast<std::size_t>(thread) * each);
      const std::size_t end = std::min(count, begin + each);
      if (begin < end) f(begin, end);
    });
  }

  template <typename F>
  void pairs(const kernels::AttentionShape& shape, const F& f) {
    prepare(shape);
    const auto threads = static_cast<std::size_t>(team_.size());
    team_.run([&](int thread) noexcept {
      float* scratch = scratch_.get() + static_cast<std::size_t>(thread) * scratch_floats_;
      for (auto pair = static_cast<std::size_t>(thread); pair < shape.pairs(); pair += threads) f(pair, scratch);
    });
  }

  Team& team_;
  std::unique_ptr<float[], Free> scratch_;
  std::size_t scratch_floats_ = 0;  ///< of one thread
  std::vector<double> parts_;
};

}  // namespace

std::unique_ptr<TrainOps> make_host_train_ops(Team& team) { return std::make_unique<HostTrainOps>(team); }

}  // namespace assay
