// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "transport/communicator.hpp"

namespace assay {

/// What a clock shows when now_s() is `t`.
using ClockReading = std::function<double(double t)>;

/// Offset of this rank's now_s() to rank 0's: rank 0's clock = now_s() + offset. Cristian's method along a
/// binomial tree: of each step the exchange with the least round trip out of `exchanges`; the error is at
/// most half of these round trips. Collective.
struct ClockOffset {
  double offset_s = 0;
  double error_s = 0;
};

/// Ranks that run on one kernel share its clock, so only the first rank of each kernel takes part in the
/// exchange and its answer holds for the others; `every_rank` makes every rank measure for itself.
/// `reading` is null but where a clock is wrong on purpose: such a rank has a clock of its own.
ClockOffset estimate_clock_offset(Communicator& comm, int exchanges = 20, bool every_rank = false,
                                  const ClockReading& reading = {});

}  // namespace assay
