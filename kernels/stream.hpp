// SPDX-License-Identifier: Apache-2.0
// Bandwidth kernels on doubles. Bytes moved per element follow STREAM (McCalpin): what the program asks for,
// without the write-allocate read.
#pragma once

#include <cstddef>

namespace assay::kernels {

enum class StreamOp { read, write, copy, triad };
const char* to_string(StreamOp op) noexcept;

/// read: 8 (a), write: 8 (a), copy a = b: 16, triad a = b + s c: 24.
constexpr std::size_t stream_bytes_per_element(StreamOp op) noexcept {
  return op == StreamOp::copy ? 16 : op == StreamOp::triad ? 24 : 8;
}
constexpr std::size_t stream_arrays(StreamOp op) noexcept {
  return op == StreamOp::copy ? 2 : op == StreamOp::triad ? 3 : 1;
}

/// The scalar of triad and the value that `write` stores.
inline constexpr double stream_scalar = 3.0;
inline constexpr double stream_value = 0.75;

namespace host {
/// How results are stored: past the caches (non-temporal), through them, or past them when `count` is large.
enum class Stores { automatic, cached, streaming };

/// One thread's share of a bandwidth kernel; any alignment. `read` returns the sum of its elements so that it
/// cannot be dropped; the others return 0. A caller that cuts a large array into small parts says `streaming`
/// itself.
double stream(StreamOp op, double* a, const double* b, const double* c, std::size_t count,
              Stores stores = Stores::automatic) noexcept;
}  // namespace host

namespace cuda {
/// The whole of it; device memory, any alignment of doubles (16-byte accesses where all arrays lie alike
/// against 16 bytes). `read` adds the sum of its elements, in no fixed order, to `*sum` (device memory); the
/// others leave it, and it may be null.
void stream(StreamOp op, double* a, const double* b, const double* c, std::size_t count, double* sum,
            void* stream);
}  // namespace cuda
}  // namespace assay::kernels
