// SPDX-License-Identifier: Apache-2.0
// What the canaries measure, alone and under congestion, and what the difference is.
#pragma once

#include <cstdint>
#include <vector>

#include "suites/congestion/congestion_plan.hpp"
#include "workload/exchange.hpp"

namespace assay::congestion {

/// Seconds of single operations, one after the other.
struct Samples {
  std::vector<double> seconds, start_s;
  std::vector<workload::PayloadError> wrong;
  std::uint64_t wrong_sums = 0;
};

/// For `seconds`, at most `most` of them, evenly spread over that time. Ping-pong or one message with the
/// partner; 8 bytes summed over all of `comm`.
Samples watch_pair(Communicator& comm, int peer, Canary canary, const workload::PayloadBuffer& arena,
                   std::uint64_t key, double seconds, std::size_t most, double deadline_s);
Samples watch_sum(Communicator& comm, double seconds, std::size_t most);
/// What a rank adds to sum `i`, and what the sum says. Rank 0 alone marks the last one, when its time is
/// `over`: marks of thousands of ranks would leave no bits for the check.
double sum_part(int rank, std::size_t i, bool over) noexcept;
struct SumRead {
  bool last = false, wrong = false;
};
SumRead read_sum(double sum, int ranks, std::size_t i) noexcept;

/// How many times longer operations take under congestion: means, and 99th percentiles.
struct Impact {
  double mean = 0, p99 = 0;
};
Impact impact_of(const std::vector<double>& alone, const std::vector<double>& congested);

}  // namespace assay::congestion
