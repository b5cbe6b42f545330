// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <utility>

#include "measure/sampler.hpp"
#include "suite/record.hpp"
#include "transport/communicator.hpp"

namespace assay {

/// The vote of all ranks of a group. Collective.
inline SampleVote agreed(Communicator& group, SampleVote vote) {
  static_assert(sizeof(SampleVote) == 3 * sizeof(double));
  group.all_reduce(&vote, &vote, 3, DataType::fp64, ReduceOp::max);
  return vote;
}

/// Lets all ranks of a group sample one operation at the same time, the same number of times, and survive a
/// rank that throws: the exception is kept until all finished the series, because a rank that left would hang
/// the others.
class Together {
 public:
  explicit Together(Communicator& group) : group_(group) {}

  /// Runs `f` unless this rank failed before; keeps what it throws.
  template <class F>
  void guarded(F&& f) {
    if (failure_) return;
    try {
      std::forward<F>(f)();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  bool failed() const noexcept { return static_cast<bool>(failure_); }
  /// Throws what this rank kept. Call when nothing collective is left to do.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  /// Collective: true if it is on any rank, or if any rank failed.
  bool any(bool mine) { return group_.max(mine || failed() ? 1.0 : 0.0) > 0; }

  /// The operation as the group runs it: lined up before each sample, ended together. Its own `sync` runs
  /// first.
  Operation wrap(Operation operation) {
    operation.run = [this, run = std::move(operation.run)](std::uint64_t k) { guarded([&] { run(k); }); };
    if (operation.verify)
      operation.verify = [this, verify = std::move(operation.verify)](std::size_t n) {
        guarded([&] { verify(n); });
      };
    operation.sync = [this, sync = std::move(operation.sync)] {
      if (sync) guarded(sync);
      group_.barrier();
    };
    operation.agree = [this](SampleVote mine) {
      if (failed()) mine.stop = 1;
      return agreed(group_, mine);
    };
    operation.agree_k = [this](std::uint64_t k) {
      group_.all_reduce(&k, &k, 1, DataType::uint64, ReduceOp::max);
      return k;
    };
    return operation;
  }

  /// The sampling plan; injected faults may throw, as the operation may.
  SamplingPlan wrap(SamplingPlan plan) {
    if (plan.fault)
      plan.fault = [this, fault = std::move(plan.fault)](double begin_s, std::uint64_t repetitions,
                                                         bool warmup) {
        double longer = 1.0;
        guarded([&] { longer = fault(begin_s, repetitions, warmup); });
        return longer;
      };
    return plan;
  }

 private:
  Communicator& group_;
  std::exception_ptr failure_;
};

/// For devices that took turns: what one of them spent was the case's time for its whole node. Collective.
inline void share_times(CaseRecord& record, Communicator& node) {
  record.warmup_s_ = node.sum(record.warmup_s_);
  record.timed_s_ = node.sum(record.timed_s_);
  record.verify_s_ = node.sum(record.verify_s_);
}

}  // namespace assay
