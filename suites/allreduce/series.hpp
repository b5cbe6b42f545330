// SPDX-License-Identifier: Apache-2.0
// One series of samples of a collective on one communicator.
#pragma once

#include <vector>

#include "run/suite.hpp"
#include "collective/collective.hpp"
#include "transport/clock_sync.hpp"

namespace assay::allreduce {

struct CollectiveSeries {
  SampleSeries samples;           ///< seconds per batch
  std::vector<double> arrival_s;  ///< isolated only: entry after the earliest rank's, on one clock
  double clock_error_s = 0;       ///< of that, at most
};

/// The largest of 20, 10, 5, 2, 1 repetitions of which five batches fit in `seconds`, given what one
/// operation takes.
std::uint64_t affordable_repetitions(double operation_s, double seconds) noexcept;

/// Seconds of one operation after a first one that sets up connections; this rank's own.
double probe(Communicator& comm, Collective& collective);

/// Collective over `comm`: warm-up, then samples until the plan's criterion, count or time says stop on any
/// rank.
/// `clock` is null but where a clock is wrong on purpose.
CollectiveSeries measure(Communicator& comm, Collective& collective, SamplingPlan plan, bool arrivals,
                         const ClockReading& clock = {});

}  // namespace assay::allreduce
