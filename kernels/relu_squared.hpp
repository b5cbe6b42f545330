// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/bfloat.hpp"

namespace assay::kernels {

/// The activation max(x, 0)^2 (So et al. 2021). Element-wise: 8 B and 12 B of traffic per element.
namespace host {
void relu_squared_forward(const float* x, float* y, std::size_t count) noexcept;
/// dx[i] = 2 max(x[i], 0) dy[i]; `dx` may be `dy`.
void relu_squared_backward(const float* x, const float* dy, float* dx, std::size_t count) noexcept;
}  // namespace host

namespace cuda {
void relu_squared_forward(const float* x, float* y, std::size_t count, void* stream);
void relu_squared_forward(const Bfloat* x, Bfloat* y, std::size_t count, void* stream);
void relu_squared_backward(const float* x, const float* dy, float* dx, std::size_t count, void* stream);
void relu_squared_backward(const Bfloat* x, const Bfloat* dy, Bfloat* dx, std::size_t count, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
