// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/communicator.hpp"

namespace assay {

/// Offset of this rank's now_s() to rank 0's: rank 0's clock = now_s() + offset. Cristian's method: the exchange with
/// the least round trip out of `exchanges`; the error is at most half that round trip. Collective.
struct ClockOffset {
  double offset_s = 0;
  double error_s = 0;
};
ClockOffset estimate_clock_offset(Communicator& comm, int exchanges = 20);

}  // namespace assay
