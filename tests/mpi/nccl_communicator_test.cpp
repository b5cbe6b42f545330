// SPDX-License-Identifier: Apache-2.0
// What NCCL's communicator does beyond those over GPU memory in general, and when something is broken.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gpu_communicator_rig.hpp"
#include "transport/cuda/nccl_communicator.hpp"

namespace assay {
namespace {

using Nccl = GpuCommunicator;
INSTANTIATE_TEST_SUITE_P(Nccl, Nccl, testing::Values("nccl"));

TEST_P(Nccl, SaysWhatItIs) {
  EXPECT_EQ(comm->transport(), "nccl");
  EXPECT_EQ(comm->path().rfind("nccl 2.", 0), 0u) << comm->path();
  EXPECT_NE(comm->path().find("nvls:"), std::string::npos) << comm->path();
  EXPECT_THROW(
      comm->all_reduce(gpu->arena().data(), gpu->arena().data(), 1, DataType::int32, ReduceOp::bit_and),
      Error);
}

/// Every rank puts in rank + 1 where `data` lies, `call` sums it, and the result is read.
std::vector<std::int32_t> summed(Communicator& comm, std::byte* data, const std::function<void()>& call) {
  std::vector<std::int32_t> values(100, comm.rank() + 1);
  const std::size_t bytes = values.size() * sizeof values[0];
  EXPECT_EQ(cudaMemcpy(data, values.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  call();
  EXPECT_EQ(cudaMemcpy(values.data(), data, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  return values;
}

TEST_P(Nccl, SumsWhereBuffersAreRegisteredAndBatchesRecorded) {
  const std::vector<std::int32_t> sum(100, size() * (size() + 1) / 2);
  DeviceCollectives& own = *comm->device_collectives();
  for (const Registration how : {Registration::buffer, Registration::window}) {
    std::string why;
    const auto memory = own.allocate(mib, how, why);
    if (memory == nullptr) {
      EXPECT_NE(why.find("NCCL"), std::string::npos) << why;
      continue;
    }
    std::byte* data = memory->bytes().data();
    const auto reduce = [&] { comm->all_reduce(data, data, 100, DataType::int32, ReduceOp::sum); };
    EXPECT_EQ(summed(*comm, data, reduce), sum);
    own.record(reduce);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(summed(*comm, data, [&] { own.replay(); }), sum);
  }
}

TEST_P(Nccl, HeartbeatsNameTheCallFromItsLaunchAndThePeerByItsRankOfTheLaunch) {
  if (size() < 2) GTEST_SKIP() << "one rank";
  supervisor::Heartbeat heartbeat;
  GpuSettings settings;
  settings.deadline_s = now_s() + 30;
  settings.heartbeat = &heartbeat;
  std::vector<supervisor::Call> calls;
  const auto whole = gpu_transports("cuda")->make_nccl(*world, *gpu, settings);
  const auto part = whole->split(0, -rank());  // in reverse
  const OnGpu<unsigned char> data(*gpu, 0, bytes_of(0, 1, 1000));
  part->while_waiting([&] { calls.push_back(heartbeat.call); });
  if (part->rank() == 0) part->recv(data.get(), 1000, 1, payload_tag);
  if (part->rank() == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    part->send(data.get(), 1000, 0, payload_tag);
  }
  if (part->rank() == 0) {
    EXPECT_FALSE(calls.empty());
  }
  EXPECT_EQ(std::count(calls.begin(), calls.end(), supervisor::Call::none), 0);
  if (part->rank() < 2) {
    EXPECT_EQ(heartbeat.peer, size() - 2 + part->rank());
  }
  part->broadcast(data.get(), 1000, 1);
  EXPECT_EQ(heartbeat.peer, supervisor::no_peer);
}

/// NCCL of thousands of ranks takes longer to set up than a short case may take.
TEST_P(Nccl, SettingUpHasATimeOfItsOwn) {
  GpuSettings settings;
  settings.deadline_s = now_s() - 1;
  settings.set_up_s = 60;
  const auto late = gpu_transports("cuda")->make_nccl(*world, *gpu, settings);
  EXPECT_TRUE(late->usable());
  late->give_up_at(now_s() + 60);
  const auto part = late->split(0, rank());
  EXPECT_EQ(reduced(*part, *gpu, std::vector<std::int32_t>{1}, DataType::int32, ReduceOp::sum, false),
            std::vector<std::int32_t>{size()});
}

#ifdef ASSAY_CUDA_EMULATION

/// The environment variable while it lives.
class Breaks {
 public:
  explicit Breaks(const char* what) { setenv("ASSAY_EMULATED_NCCL", what, 1); }
  ~Breaks() { unsetenv("ASSAY_EMULATED_NCCL"); }
  Breaks(const Breaks&) = delete;
  Breaks& operator=(const Breaks&) = delete;
};

/// NCCL refuses a send inside of a group, and the communicator is given up.
void fail_in_a_group(Communicator& communicator, const OnGpu<unsigned char>& data) {
  const Breaks refused("refuse");
  std::array<Request, 2> requests;
  for (Request& request : requests)
    communicator.isend(data.get(), 8, (communicator.rank() + 1) % communicator.size(), payload_tag, request);
  EXPECT_THROW(communicator.wait_all(requests), Error);
}

/// A thread of NCCL stores what it makes when setting up ends, also after a failure and during an abort.
TEST_P(Nccl, WhatArrivesAfterSettingUpFailedIsEnded) {
  const long before = emulatedNcclCommunicators();
  for (const char* fault : {"no-init", "no-split", "failed-split"}) {
    SCOPED_TRACE(fault);
    const Breaks broken(fault);
    EXPECT_THROW(make(2.0), Error);
    EXPECT_EQ(emulatedNcclCommunicators(), before);
  }
}

TEST_P(Nccl, APartThatFailedToSetUpIsEndedWithTheWhole) {
  const long before = emulatedNcclCommunicators();
  for (const char* fault : {"no-split", "failed-split"}) {
    SCOPED_TRACE(fault);
    auto whole = make(2.0);
    {
      const Breaks broken(fault);
      EXPECT_THROW(whole->split(0, rank()), Error);
    }
    whole.reset();
    EXPECT_EQ(emulatedNcclCommunicators(), before);
  }
}

TEST_P(Nccl, TheEnvironmentDoesNotReplaceTheConfiguration) {
  if (size() < 2) GTEST_SKIP() << "one rank";
  setenv("NCCL_COMM_BLOCKING", "1", 1);
  setenv("NCCL_COMM_SPLIT_SHARE_RESOURCES", "1", 1);
  const unsigned long threads = emulatedNcclThreads();
  const auto whole = make();
  EXPECT_GT(emulatedNcclThreads(), threads) << "setting up does not block";
  const std::string told =
      " NCCL_COMM_BLOCKING=1 (overridden) NCCL_COMM_SPLIT_SHARE_RESOURCES=1 (overridden)";
  EXPECT_NE(whole->path().find(told), std::string::npos) << whole->path();
  const OnGpu<unsigned char> data(*gpu, 0, bytes_of(rank(), 0, 1000));
  const auto part = whole->split(0, rank());
  fail_in_a_group(*part, data);
  EXPECT_NO_THROW(whole->split(0, rank())) << "what is shared was given up with the part";
}

TEST_P(Nccl, NoThreadIsStartedForAMessage) {
  const OnGpu<float> data(*gpu, 0, std::vector<float>(100, 1));
  const auto part = comm->split(rank() % 2, rank());
  for (Communicator* one : {comm.get(), part.get()}) {
    if (one->size() < 2) continue;
    const unsigned long before = emulatedNcclThreads();
    one->begin_batch();
    for (int i = 0; i < 20; ++i) one->all_reduce(data.get(), data.get(), 100, DataType::fp32, ReduceOp::max);
    one->end_batch();
    Request request;
    if (one->rank() < 2) {
      if (one->rank() == 0)
        one->isend(data.get(), 8, 1, payload_tag, request);
      else
        one->irecv(data.get(), 8, 0, payload_tag, request);
      one->wait_all({&request, 1});
    }
    EXPECT_EQ(emulatedNcclThreads(), before);
  }
}

TEST_P(Nccl, ACallThatNeverReturnsEndsAtTheDeadline) {
  if (size() < 2) GTEST_SKIP() << "one rank";
  const auto doomed = make(1.0);
  const OnGpu<float> data(*gpu, 0, std::vector<float>(100, 1));
  const double begin = now_s();
  {
    const Breaks broken("stuck");
    EXPECT_THROW(doomed->all_reduce(data.get(), data.get(), 100, DataType::fp32, ReduceOp::sum), Error);
  }
  EXPECT_LT(now_s() - begin, 10);
  EXPECT_FALSE(doomed->usable());
}

TEST_P(Nccl, AFailureInAGroupSwallowsNothingOfOthers) {
  if (size() < 2) GTEST_SKIP() << "one rank";
  const OnGpu<unsigned char> out(*gpu, 0, bytes_of(rank(), next(), 1000));
  const OnGpu<unsigned char> in(*gpu, mib, std::vector<unsigned char>(1000, 0));
  const auto other = make(10);
  fail_in_a_group(*comm, out);
  std::array<Request, 2> requests;
  other->irecv(in.get(), 1000, previous(), payload_tag, requests[0]);
  other->isend(out.get(), 1000, next(), payload_tag, requests[1]);
  other->wait_all(requests);
  EXPECT_EQ(in.host(), bytes_of(previous(), rank(), 1000));
}

TEST_P(Nccl, APartThatIsGivenUpLeavesTheWholeAlone) {
  if (size() < 2) GTEST_SKIP() << "one rank";
  const OnGpu<unsigned char> data(*gpu, 0, bytes_of(rank(), 0, 1000));
  const auto part = comm->split(0, rank());
  fail_in_a_group(*part, data);
  const std::vector<std::int32_t> mine(100, rank() + 1);
  EXPECT_EQ(reduced(*comm, *gpu, mine, DataType::int32, ReduceOp::sum, false),
            std::vector<std::int32_t>(100, size() * (size() + 1) / 2));
}

TEST_P(Nccl, TwoRanksOnOneGpuAreRefusedByName) {
  if (size() < 2) GTEST_SKIP() << "one rank";
  ASSERT_EQ(cudaSetDevice(rank() == 1 ? 0 : rank()), cudaSuccess);
  try {
    make();
    ADD_FAILURE() << "ranks 0 and 1 share a GPU";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::mpi);
    EXPECT_NE(std::string(e.what()).find("ranks 0 and 1 share GPU-00112233-4455-6677-8899-aabbccddeef0"),
              std::string::npos)
        << e.what();
  }
  ASSERT_EQ(cudaSetDevice(rank()), cudaSuccess);
}

TEST_P(Nccl, AHangEndsAtTheDeadlineAndNamesOperationAndRank) {
  if (size() < 2) GTEST_SKIP() << "one rank";
  const auto doomed = make(1.0);
  const Breaks broken("hang:rank=1:nth=1:bytes=4000");
  const OnGpu<float> data(*gpu, 0, std::vector<float>(1000, 1));
  const double begin = now_s();
  try {
    doomed->all_reduce(data.get(), data.get(), 1000, DataType::fp32, ReduceOp::sum);
    ADD_FAILURE() << "rank 1 never took part";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::mpi);
    const std::string wanted =
        "ncclAllReduce of 4000 bytes) on rank " + std::to_string(rank()) + " of " + std::to_string(size());
    EXPECT_NE(std::string(e.what()).find(wanted), std::string::npos) << e.what();
  }
  EXPECT_LT(now_s() - begin, 10);
  EXPECT_THROW(doomed->barrier(), Error);
  gpu->synchronize();  // nothing is stuck behind it
}

TEST_P(Nccl, ARankThatNeverCallsEndsAtTheDeadlineOfTheOthers) {
  if (size() < 2) GTEST_SKIP() << "one rank";
  const auto doomed = make(1.0);
  const OnGpu<unsigned char> data(*gpu, 0, std::size_t{100});
  if (rank() == 0) {
    try {
      doomed->recv(data.get(), 100, 1, payload_tag);
      ADD_FAILURE() << "nobody sent";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("ncclRecv of 100 bytes with rank 1"), std::string::npos)
          << e.what();
    }
  }
  world->barrier();
}

TEST_P(Nccl, ACorruptedElementIsThere) {
  if (size() < 2) GTEST_SKIP() << "one rank";
  const Breaks broken("corrupt:rank=1:nth=2:element=7");
  for (int call = 1; call <= 3; ++call) {
    const auto sum =
        reduced(*comm, *gpu, std::vector<std::int32_t>(100, 0), DataType::int32, ReduceOp::sum, false);
    for (std::size_t i = 0; i < sum.size(); ++i)
      EXPECT_EQ(sum[i], rank() == 1 && call == 2 && i == 7 ? 0x10 : 0);
  }
}

#endif

}  // namespace
}  // namespace assay
