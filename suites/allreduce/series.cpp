// SPDX-License-Identifier: Apache-2.0
#include "suites/allreduce/series.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "measure/sizing.hpp"
#include "suite/together.hpp"

namespace assay::allreduce {

std::uint64_t affordable_repetitions(double operation_s, double seconds) noexcept {
  for (const std::uint64_t k : {20u, 10u, 5u, 2u})
    if (5.0 * static_cast<double>(k) * operation_s <= seconds) return k;
  return 1;
}

Probe probe(Communicator& comm, std::size_t bytes, double share_s,
            const std::function<std::unique_ptr<Collective>(std::size_t)>& make) {
  Sizing sizing({bytes, 1}, share_s, 3 * share_s);
  std::unique_ptr<Collective> collective;
  std::size_t made = 0;
  Probe result;
  const auto run = [&] {
    collective->prepare(1);
    comm.barrier();
    const double begin = now_s();
    collective->run(1);
    const double seconds = now_s() - begin;
    collective->verify();
    return comm.max(seconds);
  };
  const auto keep_wrong = [&] {
    if (collective)
      result.wrong.insert(result.wrong.end(), collective->wrong().begin(), collective->wrong().end());
  };
  while (!sizing.done()) {
    if (made != sizing.next().bytes) {
      const bool first = made == 0;
      made = sizing.next().bytes;
      keep_wrong();
      collective = make(made);
      if (first) run();  // sets up connections
    }
    sizing.took(run());
  }
  keep_wrong();
  result.bytes = sizing.fitted().bytes;
  result.seconds = sizing.seconds();
  return result;
}

CollectiveSeries measure(Communicator& comm, Collective& collective, SamplingPlan plan, bool arrivals,
                         const ClockReading& clock) {
  CollectiveSeries result;
  const ClockOffset offset = arrivals ? estimate_clock_offset(comm, 20, false, clock) : ClockOffset{};
  if (arrivals) result.clock_error_s = comm.max(offset.error_s);

  // Warm-up runs on inputs that stay, in all slots; from the first sample on every batch gets new ones,
  // outside the clock.
  bool warm = false;
  double prepare_s = 0;
  collective.prepare(~std::uint64_t{0});
  Operation operation;
  operation.run = [&](std::uint64_t k) {
    // What a sample holds is what can be recorded, or done in place without new inputs.
    const std::uint64_t most = plan.repetitions == 0 ? k : plan.repetitions;
    for (std::uint64_t done = 0; done < k; done += most) collective.run(std::min(most, k - done));
  };
  operation.verify = [&](std::size_t) { collective.verify(); };
  operation.agree = [&](const SampleVote& mine) { return agreed(comm, mine); };
  operation.agree_k = [&](std::uint64_t k) {
    warm = true;
    return k;
  };
  operation.sync = [&] {
    const double begin = now_s();
    if (warm) {
      collective.prepare(plan.repetitions);
      collective.prime();
    }
    prepare_s += now_s() - begin;
    comm.barrier();
  };
  result.samples = sample(operation, plan);
  result.samples.verify_s += prepare_s;
  if (!arrivals) return result;

  std::vector<double> entry = result.samples.start_s;
  for (double& t : entry) t = (clock ? clock(t) : t) + offset.offset_s;
  std::vector<double> earliest(entry.size());
  comm.all_reduce(entry.data(), earliest.data(), entry.size(), DataType::fp64, ReduceOp::min);
  for (std::size_t i = 0; i < entry.size(); ++i) result.arrival_s.push_back(entry[i] - earliest[i]);
  return result;
}

}  // namespace assay::allreduce
