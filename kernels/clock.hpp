// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::kernels {

/// What a multiprocessor's own clock and the GPU's common clock said at one moment.
struct ClockPair {
  std::uint64_t cycles = 0, nanoseconds = 0;
};

/// The mean rate in Hz over the multiprocessors that were read both times; 0 when none was. `before` and
/// `after` are by multiprocessor; an entry of zeros was not read.
double clock_rate(const ClockPair* before, const ClockPair* after, std::size_t count) noexcept;

namespace cuda {
/// Reads the clocks of as many multiprocessors as a grid of `count` blocks reaches into out[multiprocessor],
/// which has `count` entries and is zeroed first: an in-band clock, which neither a tool nor a privilege is
/// needed for.
void read_clocks(ClockPair* out, std::size_t count, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
