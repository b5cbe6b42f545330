// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/bfloat.hpp"

namespace assay::kernels {

inline constexpr float rmsnorm_epsilon = 1e-6f;

/// RMSNorm without weights (Zhang and Sennrich 2019), rows of `width` columns; width is a multiple of 16.
namespace host {
/// sum = x + add (add may be null: then sum is not written and may be null), s = add ? sum : x,
/// rstd[r] = 1 / sqrt(mean(s[r, :]^2) + epsilon), y[r, :] = s[r, :] rstd[r]. `sum` may be `x` or `add`.
void rmsnorm_forward(const float* x, const float* add, float* sum, float* y, float* rstd, std::size_t rows,
                     std::size_t width) noexcept;

/// dx[r, :] += rstd[r] (dy[r, :] - y[r, :] mean(dy[r, :] y[r, :])): added to the gradient of the residual
/// stream.
void rmsnorm_backward(const float* dy, const float* y, const float* rstd, float* dx, std::size_t rows,
                      std::size_t width) noexcept;
}  // namespace host

/// The same on a GPU. Of bf16, s is the sum as it is stored, and all else is computed in fp32.
namespace cuda {
void rmsnorm_forward(const float* x, const float* add, float* sum, float* y, float* rstd, std::size_t rows,
                     std::size_t width, void* stream);
void rmsnorm_forward(const Bfloat* x, const Bfloat* add, Bfloat* sum, Bfloat* y, float* rstd,
                     std::size_t rows, std::size_t width, void* stream);
void rmsnorm_backward(const float* dy, const float* y, const float* rstd, float* dx, std::size_t rows,
                      std::size_t width, void* stream);
void rmsnorm_backward(const Bfloat* dy, const Bfloat* y, const float* rstd, Bfloat* dx, std::size_t rows,
                      std::size_t width, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
