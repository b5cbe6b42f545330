// SPDX-License-Identifier: Apache-2.0
#include "device/host_train_ops.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "base/clock.hpp"
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

  bool supports(NumType type) const noexcept override { return type == NumType::fp32; }

  void prepare(NumType type, const kernels::AttentionShape& shape) override {
    require(type);
    make_scratch(shape);
  }

  void embedding_forward(NumType type, const void* table, const std::int32_t* tokens, void* out,
                         std::size_t rows, std::size_t width) override {
    require(type);
    share(rows, 1, [=](std::size_t a, std::size_t b) {
      host::embedding_forward(in(table), tokens + a, to(out) + a * width, b - a, width);
    });
  }
  void embedding_backward(NumType type, const void* dout, const std::int32_t* tokens, float* dtable,
                          std::size_t rows, std::size_t width, std::size_t vocabulary) override {
    require(type);
    share(vocabulary, 1, [=](std::size_t a, std::size_t b) {
      host::embedding_backward(in(dout), tokens, dtable, rows, width, static_cast<std::int32_t>(a),
                               static_cast<std::int32_t>(b));
    });
  }
  void rmsnorm_forward(NumType type, const void* x, const void* add, void* sum, void* y, float* rstd,
                       std::size_t rows, std::size_t width) override {
    require(type);
    share(rows, 1, [=](std::size_t a, std::size_t b) {
      const std::size_t at = a * width;
      host::rmsnorm_forward(in(x) + at, add == nullptr ? nullptr : in(add) + at,
                            sum == nullptr ? nullptr : to(sum) + at, to(y) + at, rstd + a, b - a, width);
    });
  }
  void rmsnorm_backward(NumType type, const void* dy, const void* y, const float* rstd, void* dx,
                        std::size_t rows, std::size_t width) override {
    require(type);
    share(rows, 1, [=](std::size_t a, std::size_t b) {
      host::rmsnorm_backward(in(dy) + a * width, in(y) + a * width, rstd + a, to(dx) + a * width, b - a,
                             width);
    });
  }
  void rope(NumType type, const kernels::RopeShape& shape, const float* cosine, const float* sine, void* qkv,
            std::size_t rows, bool inverse) override {
    require(type);
    share(rows, 1,
          [=](std::size_t a, std::size_t b) { host::rope(shape, cosine, sine, to(qkv), a, b, inverse); });
  }
  void attention_forward(NumType type, const kernels::AttentionShape& shape, const void* qkv, void* out,
                         float* lse) override {
    require(type);
    pairs(shape, [=](std::size_t pair, float* scratch) {
      host::attention_forward(shape, in(qkv), to(out), lse, pair, scratch);
    });
  }
  void attention_backward(NumType type, const kernels::AttentionShape& shape, const void* qkv,
                          const void* out, const float* lse, const void* dout, void* dqkv,
                          void* /*scores*/) override {
    require(type);
    pairs(shape, [=](std::size_t pair, float* scratch) {
      host::attention_backward(shape, in(qkv), in(out), lse, in(dout), to(dqkv), pair, scratch);
    });
  }
  void relu_squared_forward(NumType type, const void* x, void* y, std::size_t count) override {
    require(type);
    share(count, 64,
          [=](std::size_t a, std::size_t b) { host::relu_squared_forward(in(x) + a, to(y) + a, b - a); });
  }
  void relu_squared_backward(NumType type, const void* x, const void* dy, void* dx,
                             std::size_t count) override {
    require(type);
    share(count, 64, [=](std::size_t a, std::size_t b) {
      host::relu_squared_backward(in(x) + a, in(dy) + a, to(dx) + a, b - a);
    });
  }
  void cross_entropy(NumType type, void* logits, const std::int32_t* targets, float* loss, float scale,
                     std::size_t rows, std::size_t width) override {
    require(type);
    share(rows, 1, [=](std::size_t a, std::size_t b) {
      host::cross_entropy(to(logits) + a * width, targets + a, loss + a, scale, b - a, width);
    });
  }
  void adamw(NumType type, const kernels::AdamW& rule, float* parameters, const float* gradients, float* m,
             float* v, void* /*weights*/, std::size_t count) override {
    require(type);
    share(count, 64, [=, &rule](std::size_t a, std::size_t b) {
      host::adamw(rule, parameters + a, gradients + a, m + a, v + a, b - a);
    });
  }
  void to_bf16(NumType type, const float* /*parameters*/, void* /*weights*/, std::size_t /*count*/) override {
    require(type);
  }
  void scale(float* data, float factor, std::size_t count) override {
    share(count, 64, [=](std::size_t a, std::size_t b) {
      for (std::size_t i = a; i < b; ++i) data[i] *= factor;
    });
  }
  void add(float* sum, const float* from, std::size_t count) override {
    share(count, 64, [=](std::size_t a, std::size_t b) {
      for (std::size_t i = a; i < b; ++i) sum[i] += from[i];
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
  void zero(void* data, std::size_t bytes) override {
    share(bytes, 256,
          [=](std::size_t a, std::size_t b) { std::memset(static_cast<std::byte*>(data) + a, 0, b - a); });
  }
  void copy(void* target, const void* from, std::size_t bytes) override {
    share(bytes, 256, [=](std::size_t a, std::size_t b) {
      std::memcpy(static_cast<std::byte*>(target) + a, static_cast<const std::byte*>(from) + a, b - a);
    });
  }

  void mark(unsigned number) override { marks_[number] = now_s(); }
  double elapsed_s(unsigned from, unsigned until) override { return marks_[until] - marks_[from]; }

 private:
  static const float* in(const void* p) noexcept { return static_cast<const float*>(p); }
  static float* to(void* p) noexcept { return static_cast<float*>(p); }
  static void require(NumType type) {
    if (type != NumType::fp32)
      throw Error(ErrorKind::device,
                  std::string("train: the host device does not compute in ") + to_string(type));
  }

  void make_scratch(const kernels::AttentionShape& shape) {
    const std::size_t wanted = (host::attention_scratch(shape) + 15) / 16 * 16;
    if (wanted <= scratch_floats_) return;
    const std::size_t bytes = wanted * static_cast<std::size_t>(team_.size()) * sizeof(float);
    scratch_.reset(static_cast<float*>(::operator new[](bytes, std::align_val_t{64}, std::nothrow)));
    scratch_floats_ = scratch_ ? wanted : 0;
    if (!scratch_) throw Error(ErrorKind::resource, "train: no memory for the scores of attention");
  }

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
    make_scratch(shape);
    const auto threads = static_cast<std::size_t>(team_.size());
    team_.run([&](int thread) noexcept {
      float* scratch = scratch_.get() + static_cast<std::size_t>(thread) * scratch_floats_;
      for (auto pair = static_cast<std::size_t>(thread); pair < shape.pairs(); pair += threads)
        f(pair, scratch);
    });
  }

  Team& team_;
  std::unique_ptr<float[], Free> scratch_;
  std::size_t scratch_floats_ = 0;  ///< of one thread
  std::vector<double> parts_;
  std::array<double, marks> marks_{};
};

}  // namespace

std::unique_ptr<TrainOps> make_host_train_ops(Team& team) { return std::make_unique<HostTrainOps>(team); }

}  // namespace assay
