// SPDX-License-Identifier: Apache-2.0
// The kernels of a transformer as a device runs them: on all of its threads, in order, on fp32 in device memory.
// kernels/<op>.hpp says what each one computes; here is only who does which part.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/adamw.hpp"
#include "kernels/attention.hpp"
#include "kernels/rope.hpp"

namespace assay {

/// All results are the same bits for the same inputs, whatever the number of threads. Operations are queued; on the host
/// they are complete when they return.
class TrainOps {
 public:
  virtual ~TrainOps() = default;

  /// Device memory that the operations keep for themselves, for what is about to run. Throws Error(resource).
  virtual void prepare(const kernels::AttentionShape& shape) = 0;

  virtual void embedding_forward(const float* table, const std::int32_t* tokens, float* out, std::size_t rows,
                                 std::size_t width) = 0;
  virtual void embedding_backward(const float* dout, const std::int32_t* tokens, float* dtable, std::size_t rows,
                                  std::size_t width, std::size_t vocabulary) = 0;
  virtual void rmsnorm_forward(const float* x, const float* add, float* sum, float* y, float* rstd,
                               std::size_t rows, std::size_t width) = 0;
  virtual void rmsnorm_backward(const float* dy, const float* y, const float* rstd, float* dx, std::size_t rows,
                                std::size_t width) = 0;
  virtual void rope(const kernels::RopeShape& shape, const float* cosine, const float* sine, float* qkv,
                    std::size_t rows, bool inverse) = 0;
  virtual void attention_forward(const kernels::AttentionShape& shape, const float* qkv, float* out, float* lse) = 0;
  virtual void attention_backward(const kernels::AttentionShape& shape, const float* qkv, const float* out,
                                  const float* lse, const float* dout, float* dqkv) = 0;
  virtual void relu_squared_forward(const float* x, float* y, std::size_t count) = 0;
  virtual void relu_squared_backward(const float* x, const float* dy, float* dx, std::size_t count) = 0;
  virtual void cross_entropy(float* logits, const std::int32_t* targets, float* loss, float scale, std::size_t rows,
                             std::size_t width) = 0;
  virtual void adamw(const kernels::AdamW& rule, float* parameters, const float* gradients, float* m, float* v,
                     std::size_t count) = 0;
  /// In fp64, summed in a fixed order.
  virtual double sum_squares(const float* data, std::size_t count) = 0;
  virtual void zero(float* data, std::size_t count) = 0;
  /// Between places in device memory.
  virtual void copy(float* to, const float* from, std::size_t count) = 0;
};

}  // namespace assay
