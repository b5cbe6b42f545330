// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "run/injector.hpp"
#include "suite/suite.hpp"
#include "transport/faulty_communicator.hpp"

namespace assay {

double prepare_seconds(Level level) noexcept {
  switch (level) {
    case Level::smoke: return 3;
    case Level::quick: return 15;
    case Level::standard: return 60;
    case Level::extended:
    case Level::soak: break;
  }
  return 300;
}

double Context::since_start(double t) const noexcept {
  return t - run_start_s + (injector != nullptr ? injector->clock_drift_s(t) : 0.0);
}

double Context::apply_injected_delay(double begin_s, std::uint64_t repetitions, bool warmup,
                                     std::string_view server) const {
  return injector != nullptr ? injector->timed(begin_s, repetitions, warmup, server) : 1.0;
}

void Context::count_batch() const noexcept {
  if (heartbeat != nullptr) ++heartbeat->iteration;
}

std::unique_ptr<Communicator> Context::with_faults(Communicator& inner) const {
  if (injector == nullptr) return nullptr;
  std::vector<int> job_ranks(static_cast<std::size_t>(inner.size()));
  std::iota(job_ranks.begin(), job_ranks.end(), 0);
  return std::make_unique<FaultyCommunicator>(inner, *injector, std::move(job_ranks));
}

void Context::injection_point(std::string_view target, void* data, std::size_t count,
                              std::size_t element_bytes) const {
  if (injector != nullptr) injector->corrupt(target, data, count, element_bytes);
}

RandomStream case_stream(std::uint64_t seed, const std::string& path) {
  return RandomStream(seed, "case").child(path);
}

void Context::declare_arithmetic() const {
  for (const char* name : {"threads", "arithmetic"}) record.declare_integers(name, {}, {});
}

void Context::tell_arithmetic(CaseRecord::Row& row) const {
  row.integers["threads"] = {static_cast<std::uint64_t>(device.threads())};
  row.integers["arithmetic"] = {device.arithmetic()};
}

RandomStream Context::inputs() const {
  return retest == nullptr ? random : case_stream(config.seed, retest->path);
}

ClockReading Context::clock() const {
  if (injector == nullptr || !injector->wrong_clock()) return {};
  return [faults = injector](double t) { return t + faults->clock_error_s(t); };
}

SamplingPlan Context::sampling(double seconds) const {
  SamplingPlan plan;
  if (injector != nullptr)
    plan.fault = [faults = injector](double begin_s, std::uint64_t repetitions, bool warmup) {
      return faults->timed(begin_s, repetitions, warmup);
    };
  plan.batches = heartbeat != nullptr ? &heartbeat->iteration : nullptr;
  plan.max_seconds = seconds;
  plan.warmup_seconds = std::min(0.05, seconds / 8);
  if (retest != nullptr) {  // as many as were asked for, whatever their spread
    const int visits = retest->devices.empty() ? 1 : RetestOrder::visits;
    plan.min_samples = plan.max_samples = static_cast<std::size_t>((retest->samples + visits - 1) / visits);
    plan.relative_ci = 0;
    plan.blocks = static_cast<std::size_t>(RetestOrder::visits / visits);  // a visit is a block
    return plan;
  }
  switch (config.level) {
    case Level::smoke:
      plan.min_samples = 5;
      plan.relative_ci = 0.02;
      break;
    case Level::quick:
      plan.min_samples = 9;
      plan.relative_ci = 0.005;
      break;
    default:
      plan.min_samples =
          100;  // a fault in one sample of twenty shows in so many, if the case's time allows them
      plan.relative_ci = 0.0025;
      plan.warmup_seconds = std::min(0.25, seconds / 10);
      break;
  }
  return plan;
}

void Context::take_turns(int turns, const std::function<void()>& turn) {
  if (retest != nullptr && !retest->devices.empty()) {
    const auto ranks = topology.ranks_of(topology.me().node);
    for (int visit = 0; visit < RetestOrder::visits; ++visit)
      for (const std::size_t local :
           random.child("visit" + std::to_string(visit)).permutation(ranks.size())) {
        const int row = entities.device_of_rank(ranks[local]);
        if (std::find(retest->devices.begin(), retest->devices.end(), row) == retest->devices.end()) continue;
        if (node.rank() == static_cast<int>(local)) turn();
        node.quiet_barrier();
      }
    return;
  }
  auto order = random.child("turns").permutation(static_cast<std::size_t>(node.size()));
  if (turns > 0 && order.size() > static_cast<std::size_t>(turns))
    order.resize(static_cast<std::size_t>(turns));
  for (const std::size_t local : order) {
    if (node.rank() == static_cast<int>(local)) turn();
    node.quiet_barrier();
  }
}

}  // namespace assay
