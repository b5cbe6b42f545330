// SPDX-License-Identifier: Apache-2.0
#include "suites/congestion/canaries.hpp"

#include <sched.h>

#include <numeric>

#include "base/clock.hpp"
#include "measure/statistics.hpp"

namespace assay::congestion {

Samples watch_pair(Communicator& comm, int peer, Canary canary, const workload::PayloadBuffer& arena,
                   std::uint64_t key, double seconds, std::size_t most, double deadline_s) {
  workload::Shape shape;
  shape.mode = canary == Canary::latency ? workload::Mode::latency : workload::Mode::uni;
  shape.bytes = canary == Canary::latency ? latency_bytes : bandwidth_bytes;
  shape.repetitions = 1;
  workload::Exchange exchange(comm, arena, key, shape);
  workload::Limits limits;
  limits.samples = most / 2;  // each way
  limits.blocks = 1;
  limits.seconds = seconds;
  limits.interval_s = seconds / static_cast<double>(most);
  limits.deadline_s = deadline_s;
  workload::Series series = exchange.run(peer, comm.rank() < peer, limits);
  // What a slow link did with less stands for what it would have taken, so that its parts can be compared.
  const double whole = static_cast<double>(shape.bytes) / static_cast<double>(series.batch.bytes);
  for (double& batch_s : series.batch_s) batch_s *= whole;
  return {std::move(series.batch_s), std::move(series.start_s), exchange.wrong(), 0};
}

namespace {

/// One number carries the check and the wish to end: 2^40 is beyond any sum of the others.
constexpr double end_mark = 1099511627776.0;

}  // namespace

double sum_part(int rank, std::size_t i, bool over) noexcept {
  return rank + static_cast<double>(i) + (over && rank == 0 ? end_mark : 0.0);
}

SumRead read_sum(double sum, int ranks, std::size_t i) noexcept {
  const double n = ranks;
  const bool last = sum >= end_mark;
  return {last, sum - (last ? end_mark : 0.0) != n * (n - 1) / 2 + n * static_cast<double>(i)};
}

Samples watch_sum(Communicator& comm, double seconds, std::size_t most) {
  const double begin = now_s();
  Samples samples;
  for (std::size_t i = 0; i < most; ++i) {
    while (now_s() < begin + seconds * static_cast<double>(i) / static_cast<double>(most)) sched_yield();
    const double mine = sum_part(comm.rank(), i, now_s() > begin + seconds);
    double sum = 0;
    comm.barrier();  // ranks begin apart, which is no part of the operation
    const double t0 = now_s();
    comm.all_reduce(&mine, &sum, 1, DataType::fp64, ReduceOp::sum);
    samples.seconds.push_back(now_s() - t0);
    samples.start_s.push_back(t0);
    const SumRead read = read_sum(sum, comm.size(), i);
    samples.wrong_sums += read.wrong ? 1 : 0;
    if (read.last) break;
  }
  return samples;
}

Impact impact_of(const std::vector<double>& alone, const std::vector<double>& congested) {
  const auto mean = [](const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  };
  return {mean(congested) / mean(alone), quantile(congested, 0.99) / quantile(alone, 0.99)};
}

}  // namespace assay::congestion
