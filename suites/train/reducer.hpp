// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "suites/train/gpt.hpp"
#include "transport/communicator.hpp"

namespace assay::train {

/// What drives reductions on while the rank computes. `none` is for showing what the others are good for.
enum class Progress { thread, calls, none };

/// Sums gradients over ranks, bucket by bucket, while a backward pass makes the others: the reduction of a
/// bucket starts when its gradients are complete and goes on while the pass does. What drives it on is a
/// thread of its own, which asks the transport every few ten microseconds and sleeps in between, so that it
/// takes no core away; where the transport allows no second thread, tick() does. Of a device with a stream of
/// its own, a reduction begins after what was queued there when its bucket was ready, what is queued after
/// wait() begins after all reductions, and the host waits for nothing.
///
/// Where the replica is one part of several (ZeRO stage 1), a bucket's sum goes to the part that updates it,
/// by a reduction that goes on in the same way, and share() gives all parts the new weights.
class GradientReducer {
 public:
  /// `thread` becomes `calls` where the transport allows no second thread.
  GradientReducer(Communicator& comm, Gpt& gpt, Progress progress = Progress::thread);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// The local gradients of a bucket are complete: their sum over all ranks may replace them from now on. All
  /// ranks call it in the same order. Nothing else may use the transport until wait() returns.
  void ready(std::size_t bucket);
  /// Between operations of the pass.
  void tick();
  /// Returns when all buckets are reduced (on a stream: when that is queued); rethrows what the thread met.
  void wait();
  /// On a stream, before anybody waits for the device: waits for the reductions as the transport does, which
  /// notices a rank that is lost; the device alone would wait for ever.
  void finish();
  /// After an update: weights of all parts to all ranks. Nothing where every rank updates everything.
  void share();

  /// Seconds of the pass up to the last wait() in which at least one bucket was on its way; 0 on a stream.
  double busy_s() const noexcept { return busy_s_; }
  const char* progress() const noexcept {
    return stream_ != nullptr              ? "stream"
           : progress_ == Progress::thread ? "thread"
           : progress_ == Progress::calls  ? "calls"
                                           : "none";
  }

 private:
  void drive();
  void poll();
  void start(const Bucket& bucket);
  void scatter(const Bucket& bucket);

  Communicator& comm_;
  Gpt& gpt_;
  bool alone_;
  void* stream_;  ///< null: operations are complete when they return
  Progress progress_;
  double busy_s_ = 0;

  std::mutex lock_;  ///< over all that follows, and over every call of the transport
  std::condition_variable wake_;
  std::vector<Request> requests_;
  bool pending_ = false, resting_ = true, stopping_ = false;
  double since_s_ = 0, busy_so_far_s_ = 0;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace assay::train
