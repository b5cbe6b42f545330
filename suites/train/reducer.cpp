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
      stream_(gpt.device().stream()),
      progress_(progress == Progress::thread && !comm.serialized() ? Progress::calls : progress) {
  if (!alone_ && stream_ == nullptr && progress_ == Progress::thread)
    thread_ = std::thread([this] { drive(); });
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

void GradientReducer::finish() {
  if (stream_ == nullptr || requests_.empty() || pending_) return;
  comm_.wait_all(requests_);
  requests_.clear();
}

/// Under the lock.
void GradientReducer::start(const Bucket& bucket) {
  finish();
  if (!pending_) since_s_ = now_s();
  pending_ = true;
  resting_ = false;
  if (gpt_.storage().parts > 1) return scatter(bucket);
  if (stream_ != nullptr) comm_.order_after(stream_);
  comm_.iall_reduce(gpt_.gradients() + bucket.offset, bucket.size, DataType::fp32, ReduceOp::sum,
                    requests_.emplace_back());
}

/// A bucket's sum on its way to where the parts read it; what does not divide goes to all of them.
void GradientReducer::scatter(const Bucket& bucket) {
  std::vector<const Piece*> pieces;
  for (const Piece& piece : gpt_.share().pieces())
    if (piece.offset >= bucket.offset && piece.offset < bucket.offset + bucket.size && piece.size > 0)
      pieces.push_back(&piece);
  for (const Piece* piece : pieces)
    if (piece->shared)
      gpt_.ops().copy(gpt_.reduced() + piece->at, gpt_.gradients() + piece->offset,
                      piece->size * sizeof(float));
  if (stream_ != nullptr) comm_.order_after(stream_);
  for (const Piece* piece : pieces) {
    float* const to = gpt_.reduced() + piece->at;
    if (piece->shared)
      comm_.iall_reduce(to, piece->size, DataType::fp32, ReduceOp::sum, requests_.emplace_back());
    else
      comm_.ireduce_scatter(gpt_.gradients() + bucket.offset, to, gpt_.share().run(bucket), DataType::fp32,
                            ReduceOp::sum, requests_.emplace_back());
  }
}

void GradientReducer::ready(std::size_t bucket) {
  if (alone_) return;
  {
    const std::lock_guard guard(lock_);
    if (failure_) return;  // wait() throws it
    start(gpt_.table().buckets()[bucket]);
  }
  wake_.notify_one();
}

void GradientReducer::share() {
  if (alone_ || gpt_.storage().parts == 1) return;
  auto* const weights = static_cast<std::byte*>(gpt_.weights());
  const std::size_t element = gpt_.element_bytes(), part = static_cast<std::size_t>(gpt_.storage().part);
  for (const Bucket& bucket : gpt_.table().buckets()) {
    const std::size_t bytes = gpt_.share().run(bucket) * element;
    if (bytes == 0) continue;
    gpt_.ops().copy(gpt_.staging(), weights + bucket.offset * element + part * bytes, bytes);
    if (stream_ != nullptr) comm_.order_after(stream_);
    comm_.all_gather(gpt_.staging(), weights + bucket.offset * element, bytes);
  }
}

void GradientReducer::tick() {
  if (alone_ || stream_ != nullptr || progress_ != Progress::calls) return;
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
  if (stream_ != nullptr) {
    for (Request& request : requests_) comm_.order_before(stream_, request);
    pending_ = false;
    return;
  }
  comm_.wait_all(requests_);
  requests_.clear();
  if (pending_) busy_so_far_s_ += now_s() - since_s_;
  pending_ = false;
  busy_s_ = busy_so_far_s_;
  busy_so_far_s_ = 0;
}

}  // namespace assay::train
