// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_train_ops.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/cuda/cuda_device.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/embedding.hpp"
#include "kernels/relu_squared.hpp"
#include "kernels/rmsnorm.hpp"
#include "kernels/sum_squares.hpp"

namespace assay::cuda {
namespace {

namespace gpu = kernels::cuda;
using kernels::Bfloat;

template <typename T>
const T* in(const void* p) noexcept {
  return static_cast<const T*>(p);
}
template <typename T>
T* to(void* p) noexcept {
  return static_cast<T*>(p);
}

/// f(float{}) or f(Bfloat{}), by the type in which numbers are stored.
template <typename F>
void by_type(NumType type, const F& f) {
  if (type == NumType::fp32) return f(float{});
  if (type == NumType::bf16) return f(Bfloat{});
  throw Error(ErrorKind::device, std::string("train: GPUs do not store numbers in ") + to_string(type));
}

class CudaTrainOps final : public TrainOps {
 public:
  explicit CudaTrainOps(cudaStream_t stream) : stream_(stream) {
    for (cudaEvent_t& event : events_)
      check(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreate");
  }
  ~CudaTrainOps() override {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  CudaTrainOps(const CudaTrainOps&) = delete;
  CudaTrainOps& operator=(const CudaTrainOps&) = delete;

  bool supports(NumType type) const noexcept override {
    return type == NumType::fp32 || type == NumType::bf16;
  }

  void prepare(NumType type, const kernels::AttentionShape& shape) override {
    if (!gpu::attention_takes(shape.depth, type == NumType::bf16))
      throw Error(ErrorKind::device, "train: no attention for heads of depth " + std::to_string(shape.depth) +
                                         " in " + to_string(type));
    const std::size_t bytes = shape.pairs() * shape.length * sizeof(float);
    if (bytes > delta_.bytes()) delta_ = Buffer(bytes);
  }

  void embedding_forward(NumType type, const void* table, const std::int32_t* tokens, void* out,
                         std::size_t rows, std::size_t width) override {
    by_type(type, [&]<typename T>(T) {
      gpu::embedding_forward(in<T>(table), tokens, to<T>(out), rows, width, stream_);
    });
  }
  void embedding_backward(NumType type, const void* dout, const std::int32_t* tokens, float* dtable,
                          std::size_t rows, std::size_t width, std::size_t vocabulary) override {
    by_type(type, [&]<typename T>(T) {
      gpu::embedding_backward(in<T>(dout), tokens, dtable, rows, width, vocabulary, stream_);
    });
  }
  void rmsnorm_forward(NumType type, const void* x, const void* add, void* sum, void* y, float* rstd,
                       std::size_t rows, std::size_t width) override {
    by_type(type, [&]<typename T>(T) {
      gpu::rmsnorm_forward(in<T>(x), in<T>(add), to<T>(sum), to<T>(y), rstd, rows, width, stream_);
    });
  }
  void rmsnorm_backward(NumType type, const void* dy, const void* y, const float* rstd, void* dx,
                        std::size_t rows, std::size_t width) override {
    by_type(type, [&]<typename T>(T) {
      gpu::rmsnorm_backward(in<T>(dy), in<T>(y), rstd, to<T>(dx), rows, width, stream_);
    });
  }
  void rope(NumType type, const kernels::RopeShape& shape, const float* cosine, const float* sine, void* qkv,
            std::size_t rows, bool inverse) override {
    by_type(type, [&]<typename T>(T) { gpu::rope(shape, cosine, sine, to<T>(qkv), rows, inverse, stream_); });
  }
  void attention_forward(NumType type, const kernels::AttentionShape& shape, const void* qkv, void* out,
                         float* lse) override {
    by_type(type,
            [&]<typename T>(T) { gpu::attention_forward(shape, in<T>(qkv), to<T>(out), lse, stream_); });
  }
  void attention_backward(NumType type, const kernels::AttentionShape& shape, const void* qkv,
                          const void* out, const float* lse, const void* dout, void* dqkv,
                          void* scores) override {
    prepare(type, shape);
    by_type(type, [&]<typename T>(T) {
      gpu::attention_backward(shape, in<T>(qkv), in<T>(out), lse, in<T>(dout), to<T>(dqkv),
                              delta_.as<float>(), scores, stream_);
    });
  }
  void relu_squared_forward(NumType type, const void* x, void* y, std::size_t count) override {
    by_type(type, [&]<typename T>(T) { gpu::relu_squared_forward(in<T>(x), to<T>(y), count, stream_); });
  }
  void relu_squared_backward(NumType type, const void* x, const void* dy, void* dx,
                             std::size_t count) override {
    by_type(type, [&]<typename T>(T) {
      gpu::relu_squared_backward(in<T>(x), in<T>(dy), to<T>(dx), count, stream_);
    });
  }
  void cross_entropy(NumType type, void* logits, const std::int32_t* targets, float* loss, float scale,
                     std::size_t rows, std::size_t width) override {
    by_type(type, [&]<typename T>(T) {
      gpu::cross_entropy(to<T>(logits), targets, loss, scale, rows, width, stream_);
    });
  }
  void adamw(NumType type, const kernels::AdamW& rule, float* parameters, const float* gradients, float* m,
             float* v, void* weights, std::size_t count) override {
    gpu::adamw(rule, parameters, gradients, m, v, type == NumType::bf16 ? to<Bfloat>(weights) : nullptr,
               count, stream_);
  }
  void to_bf16(NumType type, const float* parameters, void* weights, std::size_t count) override {
    if (type == NumType::bf16) gpu::to_bf16(parameters, to<Bfloat>(weights), count, stream_);
  }
  void scale(float* data, float factor, std::size_t count) override {
    gpu::scale(data, factor, count, stream_);
  }
  void add(float* sum, const float* from, std::size_t count) override { gpu::add(sum, from, count, stream_); }
  double sum_squares(const float* data, std::size_t count) override {
    std::vector<double> parts((count + kernels::sum_squares_block - 1) / kernels::sum_squares_block);
    const std::size_t bytes = parts.size() * sizeof(double);
    if (bytes > parts_.bytes()) parts_ = Buffer(bytes);
    gpu::sum_squares(data, count, parts_.as<double>(), stream_);
    check_launch("sum_squares");
    check(cudaMemcpyAsync(parts.data(), parts_.as<void>(), bytes, cudaMemcpyDeviceToHost, stream_),
          "cudaMemcpy");
    check(cudaStreamSynchronize(stream_), "sum_squares");
    double total = 0;
    for (const double part : parts) total += part;  // in the host's order
    return total;
  }
  void zero(void* data, std::size_t bytes) override {
    check(cudaMemsetAsync(data, 0, bytes, stream_), "cudaMemset");
  }
  void copy(void* target, const void* from, std::size_t bytes) override {
    check(cudaMemcpyAsync(target, from, bytes, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpy");
  }

  void mark(unsigned number) override {
    check_launch("training");  // what was started since the last mark
    check(cudaEventRecord(events_[number], stream_), "cudaEventRecord");
  }
  double elapsed_s(unsigned from, unsigned until) override {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, events_[from], events_[until]), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(ms);
  }

 private:
  cudaStream_t stream_;
  std::array<cudaEvent_t, marks> events_{};
  Buffer delta_, parts_;
};

}  // namespace

std::unique_ptr<TrainOps> make_cuda_train_ops(cudaStream_t stream) {
  return std::make_unique<CudaTrainOps>(stream);
}

}  // namespace assay::cuda
