// SPDX-License-Identifier: Apache-2.0
#include "kernels/stream.hpp"

#include <cstdint>

#define ASSAY_BODY "kernels/host/stream_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels {

const char* to_string(StreamOp op) noexcept {
  switch (op) {
    case StreamOp::read: return "read";
    case StreamOp::write: return "write";
    case StreamOp::copy: return "copy";
    case StreamOp::triad: return "triad";
  }
  return "";
}

namespace host {

double stream(StreamOp op, double* a, const double* b, const double* c, std::size_t count,
              Stores stores) noexcept {
  // A destination of 16 MiB and more does not come back from a private cache before it is evicted.
  const bool large = count * sizeof(double) >= (std::size_t{16} << 20);
  const bool streaming = stores == Stores::streaming || (stores == Stores::automatic && large);
  // Doubles that straddle their own alignment cannot be brought to a cache line by whole elements.
  const bool alignable = reinterpret_cast<std::uintptr_t>(a) % sizeof(double) == 0;
  return ASSAY_DISPATCH(stream_any, op, a, b, c, count, streaming && alignable);
}

}  // namespace host
}  // namespace assay::kernels
