// SPDX-License-Identifier: Apache-2.0
// What every communicator over GPU memory must do; and what NCCL's does when something is broken. Compiled
// for the emulation and, where the CUDA Toolkit is, for GPUs.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "test_gpu.hpp"
#include "transport/cuda/nccl_communicator.hpp"
#include "transport/gpu_direct.hpp"
#include "transport/gpu_transports.hpp"
#include "transport/mpi_detail.hpp"

namespace assay {
namespace {

using test::OnGpu;

std::vector<unsigned char> bytes_of(int source, int destination, std::size_t n) {
  std::vector<unsigned char> data(n);
  const auto key = mix64(static_cast<std::uint64_t>(source), static_cast<std::uint64_t>(destination));
  for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<unsigned char>(mix64(key, i));
  return data;
}

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t sizes[] = {0, 1, 7, 999, 65536, 300001};

class GpuCommunicator : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    world = mpi::duplicate_world();
    std::string why;
    gpu = test::gpu_of_rank(world->rank(), why);
    if (world->min(gpu == nullptr ? 0 : 1) == 0) GTEST_SKIP() << why;
    gpu->reserve(16 * mib);
    comm = make();
  }
  std::unique_ptr<Communicator> make(double seconds = 30) {
    GpuSettings settings;
    settings.deadline_s = now_s() + seconds;
    if (GetParam() != std::string("nccl"))
      return gpu_transports()->make_staged(*world, *gpu, GetParam() == std::string("direct"));
    return gpu_transports()->make_nccl(*world, *gpu, settings);
  }
  int rank() const { return comm->rank(); }
  int size() const { return comm->size(); }
  int next() const { return (rank() + 1) % size(); }
  int previous() const { return (rank() + size() - 1) % size(); }

  std::unique_ptr<Communicator> world;
  std::unique_ptr<test::TestGpu> gpu;
  std::unique_ptr<Communicator> comm;
};
#ifdef ASSAY_CUDA_EMULATION
INSTANTIATE_TEST_SUITE_P(Kinds, GpuCommunicator, testing::Values("nccl", "staged", "direct"));
#else
INSTANTIATE_TEST_SUITE_P(Kinds, GpuCommunicator, testing::Values("nccl", "staged"));
#endif

TEST_P(GpuCommunicator, SendsAndReceivesEveryByte) {
  if (size() < 2) GTEST_SKIP() << "one rank";
  const int peer = rank() ^ 1;
  for (const std::size_t n : sizes) {
    if (peer >= size()) continue;
    const OnGpu<unsigned char> out(*gpu, 0, bytes_of(rank(), peer, n));
    const OnGpu<unsigned char> in(*gpu, mib, std::vector<unsigned char>(n + 1, 0xee));
    if (rank() < peer) {
      comm->send(out.get(), n, peer, payload_tag);
      comm->recv(in.get(), n, peer, payload_tag);
    } else {
      comm->recv(in.get(), n, peer, payload_tag);
      comm->send(out.get(), n, peer, payload_tag);
    }
    auto expected = bytes_of(peer, rank(), n);
    expected.push_back(0xee);
    EXPECT_EQ(in.host(), expected) << n << " bytes";
  }
}

TEST_P(GpuCommunicator, BothWaysAtOnceNeedNoOrder) {
  constexpr std::size_t messages = 20;
  for (const std::size_t n : {std::size_t{33}, std::size_t{20011}, std::size_t{200000}}) {
    const OnGpu<unsigned char> out(*gpu, 0, bytes_of(rank(), next(), n * messages));
    const OnGpu<unsigned char> in(*gpu, 8 * mib, n * messages);
    std::vector<Request> requests(2 * messages + 1);  // the last one is never started
    for (std::size_t i = 0; i < messages; ++i) {
      comm->isend(out.get() + i * n, n, next(), payload_tag, requests[messages + i]);
      comm->irecv(in.get() + i * n, n, previous(), payload_tag, requests[i]);
    }
    comm->wait_all(requests);
    comm->wait_all(requests);  // nothing is left to wait for
    EXPECT_EQ(in.host(), bytes_of(previous(), rank(), n * messages));
  }
}

TEST_P(GpuCommunicator, TestAllDrivesWhatWasStarted) {
  const OnGpu<unsigned char> out(*gpu, 0, bytes_of(rank(), next(), 70000));
  const OnGpu<unsigned char> in(*gpu, mib, 70000);
  std::array<Request, 2> requests;
  comm->irecv(in.get(), 70000, previous(), payload_tag, requests[0]);
  comm->isend(out.get(), 70000, next(), payload_tag, requests[1]);
  const double end = now_s() + 30;
  while (!comm->test_all(requests)) ASSERT_LT(now_s(), end);
  EXPECT_EQ(in.host(), bytes_of(previous(), rank(), 70000));
}

TEST_P(GpuCommunicator, HostMemoryGoesAnotherWay) {
  std::vector<unsigned char> in(100);
  const auto out = bytes_of(rank(), next(), 100);
  std::array<Request, 2> requests;
  comm->irecv(in.data(), 100, previous(), 7, requests[0]);
  comm->isend(out.data(), 100, next(), 7, requests[1]);
  comm->wait_all(requests);
  EXPECT_EQ(in, bytes_of(previous(), rank(), 100));
  EXPECT_EQ(comm->max(rank()), size() - 1);
  EXPECT_EQ(comm->sum(1), size());
  EXPECT_EQ(comm->broadcast_text(rank() == 0 ? "hello" : "", 0), "hello");
}

template <typename T>
std::vector<T> reduced(Communicator& comm, Device& gpu, const std::vector<T>& mine, DataType type,
                       ReduceOp op, bool in_place) {
  const OnGpu<T> in(gpu, 0, mine);
  const OnGpu<T> out(gpu, in_place ? 0 : 8 * mib, mine.size());
  comm.all_reduce(in.get(), out.get(), mine.size(), type, op);
  return out.host();
}

TEST_P(GpuCommunicator, AllReduceIsRightForEveryType) {
  const int n = size();
  for (const std::size_t count : {std::size_t{1}, std::size_t{999}, std::size_t{70000}}) {
    std::vector<float> f(count);
    std::vector<double> d(count);
    std::vector<std::int32_t> i32(count);
    std::vector<std::uint64_t> u(count, std::uint64_t{1} << rank());
    std::vector<std::uint16_t> b(count, 0x3f80);  // 1 in bf16
    for (std::size_t i = 0; i < count; ++i) {
      f[i] = static_cast<float>(rank()) + static_cast<float>(i % 1000);
      d[i] = static_cast<double>(i) * (rank() + 1);
      i32[i] = static_cast<std::int32_t>(i) - rank();
    }
    f = reduced(*comm, *gpu, f, DataType::fp32, ReduceOp::sum, false);
    d = reduced(*comm, *gpu, d, DataType::fp64, ReduceOp::min, false);
    i32 = reduced(*comm, *gpu, i32, DataType::int32, ReduceOp::max, true);
    u = reduced(*comm, *gpu, u, DataType::uint64, ReduceOp::sum, true);
    b = reduced(*comm, *gpu, b, DataType::bf16, ReduceOp::sum, true);
    const std::uint16_t powers[] = {0, 0x3f80, 0x4000, 0x4040, 0x4080};
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(f[i], static_cast<float>(n * (n - 1) / 2 + n * static_cast<int>(i % 1000)));
      ASSERT_EQ(d[i], static_cast<double>(i));
      ASSERT_EQ(i32[i], static_cast<std::int32_t>(i));
      ASSERT_EQ(u[i], (std::uint64_t{1} << n) - 1);
      ASSERT_EQ(b[i], powers[n]);
    }
  }
}

TEST_P(GpuCommunicator, OtherCollectivesPlaceEveryByte) {
  const auto n = static_cast<std::size_t>(size());
  for (const std::size_t bytes : sizes) {
    std::vector<unsigned char> everything, sent, expected;
    for (int r = 0; r < size(); ++r) {
      const auto part = bytes_of(r, 0, bytes), to = bytes_of(rank(), 100 + r, bytes),
                 from = bytes_of(r, 100 + rank(), bytes);
      everything.insert(everything.end(), part.begin(), part.end());
      sent.insert(sent.end(), to.begin(), to.end());
      expected.insert(expected.end(), from.begin(), from.end());
    }
    const OnGpu<unsigned char> mine(*gpu, 0, bytes_of(rank(), 0, bytes));
    const OnGpu<unsigned char> all(*gpu, 8 * mib, bytes * n);
    comm->all_gather(mine.get(), all.get(), bytes);
    EXPECT_EQ(all.host(), everything);
    const OnGpu<unsigned char> out(*gpu, 0, sent);
    comm->all_to_all(out.get(), all.get(), bytes);
    EXPECT_EQ(all.host(), expected);
    for (const int root : {0, size() - 1}) {
      const OnGpu<unsigned char> data(
          *gpu, 0, rank() == root ? bytes_of(root, 7, bytes) : std::vector<unsigned char>(bytes));
      comm->broadcast(data.get(), bytes, root);
      EXPECT_EQ(data.host(), bytes_of(root, 7, bytes));
    }
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{2501}, std::size_t{40000}}) {
    std::vector<std::int32_t> values(count * n);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i) * (rank() + 1);
    const OnGpu<std::int32_t> in(*gpu, 0, values);
    const OnGpu<std::int32_t> out(*gpu, 8 * mib, count);
    comm->reduce_scatter(in.get(), out.get(), count, DataType::int32, ReduceOp::sum);
    const auto got = out.host();
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(got[i], static_cast<std::int32_t>((static_cast<std::size_t>(rank()) * count + i) *
                                                  (n * (n + 1) / 2)));
  }
}

TEST_P(GpuCommunicator, ABatchIsCompleteAtItsEnd) {
  const OnGpu<float> data(*gpu, 0, std::vector<float>(5000, 1));
  comm->begin_batch();
  for (int i = 0; i < 5; ++i) comm->all_reduce(data.get(), data.get(), 5000, DataType::fp32, ReduceOp::sum);
  comm->end_batch();
  EXPECT_EQ(data.host(), std::vector<float>(5000, static_cast<float>(std::pow(size(), 5))));
}

TEST_P(GpuCommunicator, OrdersItselfBetweenTheWorkOfADevice) {
  const OnGpu<float> data(*gpu, 0, std::vector<float>(2, 0));
  Request request;
  for (int i = 0; i < 3; ++i) {
    const float value = static_cast<float>(rank() + i);
    auto* stream = static_cast<cudaStream_t>(gpu->stream());
    ASSERT_EQ(cudaMemcpyAsync(data.get(), &value, sizeof value, cudaMemcpyHostToDevice, stream), cudaSuccess);
    comm->order_after(stream);
    comm->iall_reduce(data.get(), 1, DataType::fp32, ReduceOp::sum, request);
    comm->order_before(stream, request);
    ASSERT_EQ(cudaMemcpyAsync(data.get() + 1, data.get(), sizeof value, cudaMemcpyDeviceToDevice, stream),
              cudaSuccess);
    gpu->synchronize();
    EXPECT_EQ(data.host()[1], static_cast<float>(size() * (size() - 1) / 2 + size() * i));
    comm->wait_all({&request, 1});
  }
}

TEST_P(GpuCommunicator, SplitsIntoGroupsThatWork) {
  const auto half = comm->split(rank() % 2, -rank());
  ASSERT_NE(half, nullptr);
  EXPECT_EQ(half->transport(), comm->transport());
  const int members = rank() % 2 == 0 ? (size() + 1) / 2 : size() / 2;
  EXPECT_EQ(half->size(), members);
  EXPECT_EQ(half->rank(), members - 1 - rank() / 2);  // the negative key turns the order round
  EXPECT_EQ(reduced(*half, *gpu, std::vector<float>{1}, DataType::fp32, ReduceOp::sum, false),
            std::vector<float>{static_cast<float>(members)});
  const auto again = half->split(0, half->rank());
  EXPECT_EQ(again->size(), members);
  const auto none = comm->split(rank() == 0 ? 3 : -1, 0);
  EXPECT_EQ(none != nullptr, rank() == 0);
}

TEST_P(GpuCommunicator, BarriersHoldUntilTheLastRankArrives) {
  comm->barrier();
  const double begin = now_s();
  if (rank() == size() - 1)
    while (now_s() - begin < 0.05) {
    }
  const double entered = now_s();
  comm->barrier();
  const double left = now_s();
  EXPECT_GE(world->min(left), world->max(entered));
}

TEST_P(GpuCommunicator, PayloadThatIsThrownAwayIsReceivedInHostMemory) {
  constexpr std::size_t n = 2 * mib + 77;
  const OnGpu<unsigned char> out(*gpu, 0, bytes_of(rank(), next(), n));
  std::vector<unsigned char> in(n);
  std::array<Request, 2> requests;
  comm->irecv(in.data(), n, previous(), payload_tag, requests[0]);
  comm->isend(out.get(), n, next(), payload_tag, requests[1]);
  comm->wait_all(requests);
  EXPECT_EQ(in, bytes_of(previous(), rank(), n));
}

TEST_P(GpuCommunicator, LargeMessagesAndSumsGoInParts) {
  constexpr std::size_t n = 5 * mib + 13;
  const OnGpu<unsigned char> out(*gpu, 0, bytes_of(rank(), next(), n));
  const OnGpu<unsigned char> in(*gpu, 8 * mib, n);
  std::array<Request, 2> requests;
  comm->irecv(in.get(), n, previous(), payload_tag, requests[0]);
  comm->isend(out.get(), n, next(), payload_tag, requests[1]);
  comm->wait_all(requests);
  EXPECT_EQ(in.host(), bytes_of(previous(), rank(), n));
  std::vector<std::int32_t> values(2 * mib - 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i) + rank();
  values = reduced(*comm, *gpu, values, DataType::int32, ReduceOp::sum, true);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], static_cast<std::int32_t>(i) * size() + size() * (size() - 1) / 2);
}

#ifdef ASSAY_CUDA_EMULATION
TEST(GpuDirect, AMemoryThatMpiCanReadIsProved) {
  const auto world = mpi::duplicate_world();
  std::string why;
  const auto gpu = test::gpu_of_rank(world->rank(), why);
  ASSERT_NE(gpu, nullptr) << why;
  gpu->reserve(16 * mib);
  EXPECT_EQ(test_gpu_direct(*world, *gpu), "");
  EXPECT_FALSE(mpi_says_cuda()) << "this build's MPI is expected to know nothing of GPUs";
}
#endif

// NCCL alone.

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
