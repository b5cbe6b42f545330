// SPDX-License-Identifier: Apache-2.0
// One series of samples of a collective on one communicator.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "suite/suite.hpp"
#include "transport/clock_sync.hpp"
#include "workload/collective.hpp"

namespace assay::allreduce {

using namespace workload;

struct CollectiveSeries {
  SampleSeries samples;           ///< seconds per batch
  std::vector<double> arrival_s;  ///< isolated only: entry after the earliest rank's, on one clock
  double clock_error_s = 0;       ///< of that, at most
};

/// The largest of 20, 10, 5, 2, 1 repetitions of which five batches fit in `seconds`, given what one
/// operation takes.
std::uint64_t affordable_repetitions(double operation_s, double seconds) noexcept;

/// What one operation takes, and on how much.
struct Probe {
  std::size_t bytes = 0;
  double seconds = 0;  ///< of the slowest rank
  std::vector<WrongResults> wrong;
};
/// Collective over `comm`: runs the operation on more and more, up to `bytes`, as long as it takes no longer
/// than `share_s`. `make` makes the collective of a size.
Probe probe(Communicator& comm, std::size_t bytes, double share_s,
            const std::function<std::unique_ptr<Collective>(std::size_t)>& make);

/// Collective over `comm`: warm-up, then samples until the median is precise on all ranks, or the plan's
/// count or time says stop on any. `clock` is null but where a clock is wrong on purpose.
CollectiveSeries measure(Communicator& comm, Collective& collective, SamplingPlan plan, bool arrivals,
                         const ClockReading& clock = {});

}  // namespace assay::allreduce
