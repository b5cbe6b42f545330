// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bfloat.hpp"

namespace assay::kernels {

/// out[r, :] = table[tokens[r], :] for rows [0, rows); all row-major with `width` columns.
/// Work: 8 B per element. Aliasing: none.
namespace host {
void embedding_forward(const float* table, const std::int32_t* tokens, float* out, std::size_t rows,
                       std::size_t width) noexcept;

/// dtable[v, :] = sum over rows r with tokens[r] == v of dout[r, :], for v in [first, last) only: who owns a
/// range of the vocabulary writes it, so threads need no atomics and the order of summation (ascending r)
/// never changes.
void embedding_backward(const float* dout, const std::int32_t* tokens, float* dtable, std::size_t rows,
                        std::size_t width, std::int32_t first, std::int32_t last) noexcept;
}  // namespace host

/// The same on a GPU, in device memory and 16-byte aligned, width a multiple of 16. Backward writes all of
/// dtable [vocabulary, width] in fp32; a row of the vocabulary belongs to one block, and its sum goes by
/// ascending r as on the host.
namespace cuda {
void embedding_forward(const float* table, const std::int32_t* tokens, float* out, std::size_t rows,
                       std::size_t width, void* stream);
void embedding_forward(const Bfloat* table, const std::int32_t* tokens, Bfloat* out, std::size_t rows,
                       std::size_t width, void* stream);
void embedding_backward(const float* dout, const std::int32_t* tokens, float* dtable, std::size_t rows,
                        std::size_t width, std::size_t vocabulary, void* stream);
void embedding_backward(const Bfloat* dout, const std::int32_t* tokens, float* dtable, std::size_t rows,
                        std::size_t width, std::size_t vocabulary, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
