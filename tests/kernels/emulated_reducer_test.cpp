// SPDX-License-Identifier: Apache-2.0
// Reductions on a device with a stream: each begins after its bucket's gradients were made, what follows
// begins after all of them, and the host waits for none.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "device/cuda/check.hpp"
#include "suites/train/reducer.hpp"
#include "tests/kernels/gpu_train_rig.hpp"

namespace assay::train {
namespace {

/// Two ranks of which the other one has the same gradients, on a stream of their own, like NCCL's.
class StreamCommunicator final : public Communicator {
 public:
  StreamCommunicator() { cuda::check(cudaStreamCreateWithFlags(&own_, cudaStreamNonBlocking), "stream"); }
  ~StreamCommunicator() override {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaStreamDestroy(own_);
  }

  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 2; }
  std::string_view transport() const noexcept override { return "test"; }
  std::string path() const override { return ""; }
  void order_after(void* stream) override {
    const cudaEvent_t event = record(static_cast<cudaStream_t>(stream));
    cuda::check(cudaStreamWaitEvent(own_, event, 0), "wait");
  }
  void order_before(void* stream, Request& request) override {
    cudaEvent_t event;
    std::memcpy(&event, request.storage, sizeof(event));
    cuda::check(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event, 0), "wait");
  }
  void iall_reduce(void* data, std::size_t count, DataType, ReduceOp, Request& request) override {
    start(data, data, count, request);
  }
  void ireduce_scatter(const void* in, void* out, std::size_t count, DataType, ReduceOp,
                       Request& request) override {
    ++scatters;
    start(in, out, count, request);  // rank 0 gets the first run
  }
  void wait_all(std::span<Request>) override {
    ++waits;
    cuda::check(cudaStreamSynchronize(own_), "wait_all");
  }

  std::unique_ptr<Communicator> split(int, int) override { return nullptr; }
  void send(const void*, std::size_t, int, int) override {}
  void recv(void*, std::size_t, int, int) override {}
  void isend(const void*, std::size_t, int, int, Request&) override {}
  void irecv(void*, std::size_t, int, int, Request&) override {}
  void barrier() override {}
  void all_reduce(const void*, void*, std::size_t, DataType, ReduceOp) override {}
  void reduce_scatter(const void*, void*, std::size_t, DataType, ReduceOp) override {}
  void all_gather(const void*, void*, std::size_t) override {}
  void all_to_all(const void*, void*, std::size_t) override {}
  void broadcast(void*, std::size_t, int) override {}
  void quiet_barrier() override {}
  std::vector<std::string> gather_text(const std::string&, int) override { return {}; }
  std::vector<std::string> all_gather_text(const std::string&) override { return {}; }
  std::string broadcast_text(const std::string& mine, int) override { return mine; }

  int done = 0, waits = 0, scatters = 0;
  bool eager = false;  ///< runs what it was given at once, as a GPU may that has nothing else to do

 private:
  void start(const void* in, void* out, std::size_t count, Request& request) {
    emulation::enqueue(own_, [this, in, out, count] {
      for (std::size_t i = 0; i < count; ++i)
        static_cast<float*>(out)[i] = 2 * static_cast<const float*>(in)[i];
      ++done;
    });
    const cudaEvent_t event = record(own_);
    std::memcpy(request.storage, &event, sizeof(event));
    if (eager) cuda::check(cudaStreamSynchronize(own_), "eager");
  }
  cudaEvent_t record(cudaStream_t stream) {
    cudaEvent_t event;
    cuda::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
    cuda::check(cudaEventRecord(event, stream), "record");
    events_.push_back(event);
    return event;
  }
  cudaStream_t own_ = nullptr;
  std::vector<cudaEvent_t> events_;
};

TEST(EmulatedReducer, OrdersStreamsAndLeavesTheHostFree) {
  Rig plain = Rig::cuda(NumType::bf16), rig = Rig::cuda(NumType::bf16);
  StreamCommunicator ranks;
  GradientReducer reducer(ranks, *rig.gpt);
  EXPECT_STREQ(reducer.progress(), "stream");
  for (int step = 0; step < 2; ++step) {
    plain.pass(0);
    rig.pass(0, [&](std::size_t bucket) { reducer.ready(bucket); });
    const int before = ranks.done;
    // All that is queued from here on comes after the reductions, though nobody has run them yet.
    ranks.done = 0;
    rig.gpt->ops().zero(rig.gpt->moments(0), sizeof(float));
    reducer.wait();
    EXPECT_EQ(ranks.done, 0) << "the host waited";
    EXPECT_EQ(ranks.waits, step) << "only for those of the step before";
    rig.gpt->ops().add(rig.gpt->gradients(), rig.gpt->gradients(), rig.gpt->table().size());
    reducer.finish();
    EXPECT_EQ(ranks.waits, step + 1) << "the transport has no say before the device waits";
    rig.device->synchronize();
    EXPECT_EQ(before + ranks.done, static_cast<int>(rig.gpt->table().buckets().size()));
    auto want = plain.gradients();
    for (float& g : want) g = 2 * (g + g);
    EXPECT_EQ(rig.gradients(), want);
    ranks.done = 0;
  }
}

/// ZeRO: the share's sums start behind each bucket's gradients, amid the backward pass, and the host waits
/// for none. With `eager` each runs as soon as it may, so one that is early would read unfinished gradients.
TEST(EmulatedReducer, SumsOfSharesStartWithinTheBackwardPass) {
  for (const bool eager : {false, true}) {
    Rig plain = Rig::cuda(NumType::bf16), rig(first_gpu(), NumType::bf16, 2);
    StreamCommunicator ranks;
    ranks.eager = eager;
    GradientReducer reducer(ranks, *rig.gpt);
    plain.pass(0);
    const int buckets = static_cast<int>(rig.gpt->table().buckets().size());
    int ready = 0;
    rig.pass(0, [&](std::size_t bucket) {
      reducer.ready(bucket);
      EXPECT_EQ(ranks.scatters, ++ready) << "nothing started when the bucket was ready";
    });
    EXPECT_EQ(ready, buckets);
    rig.gpt->ops().zero(rig.gpt->moments(0), sizeof(float));
    reducer.wait();
    EXPECT_EQ(ranks.waits, 0) << "the host waited";
    rig.device->synchronize();
    std::vector<float> sums(rig.gpt->share().size());
    rig.device->copy_to_host(sums.data(), rig.gpt->reduced(), sums.size() * sizeof(float));
    const auto gradients = plain.gradients();
    for (const Piece& piece : rig.gpt->share().pieces())
      for (std::size_t i = 0; i < piece.size; ++i)
        ASSERT_EQ(sums[piece.at + i], 2 * gradients[piece.offset + i]) << piece.offset + i;
    reducer.finish();
  }
}

TEST(EmulatedReducer, BucketWaitsForItsGradients) {
  Rig plain = Rig::cuda(NumType::bf16), rig = Rig::cuda(NumType::bf16);
  StreamCommunicator ranks;
  ranks.eager = true;
  GradientReducer reducer(ranks, *rig.gpt);
  plain.pass(0);
  rig.pass(0, [&](std::size_t bucket) { reducer.ready(bucket); });
  reducer.wait();
  auto want = plain.gradients();
  for (float& g : want) g *= 2;
  EXPECT_EQ(rig.gradients(), want);
}

}  // namespace
}  // namespace assay::train
