// SPDX-License-Identifier: Apache-2.0
#include "suites/train/reducer.hpp"

#include <chrono>
#include <exception>

#include "base/clock.hpp"

namespace assay::train {
namespace {

constexpr std::chrono::microseconds nap(40);

}  // namespace

GradientReducer::GradientReducer(Communicator& comm, Gpt& gpt, Progress progress)
    : comm_(comm),
      gpt_(gpt),
      alone_(comm.size() == 1),
      progress_(progress == Progress::thread && !comm.serialized() ? Progress::calls : progress) {
  if (!alone_ && progress_ == Progress::thread) thread_ = std::thread([this] { drive(); });
}

GradientReducer::~GradientReducer() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard guard(lock_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void GradientReducer::ready(std::size_t bucket) {
  if (alone_) return;
  const Bucket& b = gpt_.table().buckets()[bucket];
  {
    const std::lock_guard guard(lock_);
    if (failure_) return;  // wait() throws it
    if (!pending_) since_s_ = now_s();
    pending_ = true;
    resting_ = false;
    comm_.iall_reduce(gpt_.gradients() + b.offset, b.size, DataType::fp32, ReduceOp::sum, requests_.emplace_back());
  }
  wake_.notify_one();
}

void GradientReducer::tick() {
  if (alone_ || progress_ != Progress::calls) return;
  const std::lock_guard guard(lock_);
  poll();
}

/// Under the lock.
void GradientReducer::poll() {
  if (!pending_ || !comm_.test_all(requests_)) return;
  pending_ = false;
  busy_so_far_s_ += now_s() - since_s_;
}

void GradientReducer::drive() {
  std::unique_lock guard(lock_);
  for (;;) {
    wake_.wait(guard, [this] { return stopping_ || (pending_ && !resting_); });
    if (stopping_) return;
    try {
      poll();
    } catch (...) {
      failure_ = std::current_exception();
      resting_ = true;
    }
    guard.unlock();
    std::this_thread::sleep_for(nap);
    guard.lock();
  }
}

void GradientReducer::wait() {
  if (alone_) return;
  const std::lock_guard guard(lock_);
  resting_ = true;  // the caller waits as MPI does, which reacts sooner than a thread that naps
  if (failure_) std::rethrow_exception(failure_);
  comm_.wait_all(requests_);
  requests_.clear();
  if (pending_) busy_so_far_s_ += now_s() - since_s_;
  pending_ = false;
  busy_s_ = busy_so_far_s_;
  busy_so_far_s_ = 0;
}

}  // namespace assay::train
