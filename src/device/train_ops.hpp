// SPDX-License-Identifier: Apache-2.0
// The kernels of a transformer as a device runs them: on all of its threads, in order, on numbers in device
// memory. kernels/<op>.hpp says what each one computes; here is only who does which part.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"
#include "kernels/adamw.hpp"
#include "kernels/attention.hpp"
#include "kernels/rope.hpp"

namespace assay {

/// All results are the same bits for the same inputs, whatever the number of threads. Operations are queued;
/// on the host they are complete when they return.
///
/// `type` says how activations and the weights that multiply are stored: fp32, or bf16 where a device
/// supports it. Master parameters, their gradients and moments, and all that is one number per row are fp32
/// always. Throws Error(device) for another type.
class TrainOps {
 public:
  virtual ~TrainOps() = default;

  virtual bool supports(NumType type) const noexcept = 0;
  /// Device memory that the operations keep for themselves, for what is about to run. Throws Error(resource),
  /// and Error(device) for heads that the device cannot do.
  virtual void prepare(NumType type, const kernels::AttentionShape& shape) = 0;

  virtual void embedding_forward(NumType type, const void* table, const std::int32_t* tokens, void* out,
                                 std::size_t rows, std::size_t width) = 0;
  virtual void embedding_backward(NumType type, const void* dout, const std::int32_t* tokens, float* dtable,
                                  std::size_t rows, std::size_t width, std::size_t vocabulary) = 0;
  virtual void rmsnorm_forward(NumType type, const void* x, const void* add, void* sum, void* y, float* rstd,
                               std::size_t rows, std::size_t width) = 0;
  virtual void rmsnorm_backward(NumType type, const void* dy, const void* y, const float* rstd, void* dx,
                                std::size_t rows, std::size_t width) = 0;
  virtual void rope(NumType type, const kernels::RopeShape& shape, const float* cosine, const float* sine,
                    void* qkv, std::size_t rows, bool inverse) = 0;
  virtual void attention_forward(NumType type, const kernels::AttentionShape& shape, const void* qkv,
                                 void* out, float* lse) = 0;
  /// `scores`: in bf16 memory for attention_score_bytes(shape), which is overwritten.
  virtual void attention_backward(NumType type, const kernels::AttentionShape& shape, const void* qkv,
                                  const void* out, const float* lse, const void* dout, void* dqkv,
                                  void* scores) = 0;
  virtual void relu_squared_forward(NumType type, const void* x, void* y, std::size_t count) = 0;
  virtual void relu_squared_backward(NumType type, const void* x, const void* dy, void* dx,
                                     std::size_t count) = 0;
  virtual void cross_entropy(NumType type, void* logits, const std::int32_t* targets, float* loss,
                             float scale, std::size_t rows, std::size_t width) = 0;
  /// `weights`: of type bf16, the parameters as they multiply; not used where type is fp32, whose parameters
  /// multiply themselves.
  virtual void adamw(NumType type, const kernels::AdamW& rule, float* parameters, const float* gradients,
                     float* m, float* v, void* weights, std::size_t count) = 0;
  /// The weights of parameters that did not come from adamw; nothing for fp32.
  virtual void to_bf16(NumType type, const float* parameters, void* weights, std::size_t count) = 0;
  /// data *= factor; to += from. Rounded alike on every device.
  virtual void scale(float* data, float factor, std::size_t count) = 0;
  virtual void add(float* to, const float* from, std::size_t count) = 0;
  /// In fp64, summed in a fixed order. Complete when it returns.
  virtual double sum_squares(const float* data, std::size_t count) = 0;
  virtual void zero(void* data, std::size_t bytes) = 0;
  /// Between places in device memory.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;

  /// Notes the time at which all that was queued so far is complete, under a number below `marks`.
  static constexpr unsigned marks = 8;
  virtual void mark(unsigned number) = 0;
  /// Seconds between two marks; after Device::synchronize.
  virtual double elapsed_s(unsigned from, unsigned to) = 0;
};

}  // namespace assay
