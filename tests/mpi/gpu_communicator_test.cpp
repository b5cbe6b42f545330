// SPDX-License-Identifier: Apache-2.0
// What every communicator over GPU memory must do. Compiled for the emulation and, where the CUDA Toolkit is,
// for GPUs.
#include <array>
#include <cmath>

#include "gpu_communicator_rig.hpp"
#include "transport/gpu_direct.hpp"

namespace assay {
namespace {

constexpr std::size_t sizes[] = {0, 1, 7, 999, 65536, 300001};

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

TEST_P(GpuCommunicator, StartsReduceScattersBetweenTheWorkOfADevice) {
  const auto n = static_cast<std::size_t>(size());
  const OnGpu<float> in(*gpu, 0, std::vector<float>(n, 0)), out(*gpu, 8 * mib, std::vector<float>(2, 0));
  std::vector<float> values(n);
  auto* stream = static_cast<cudaStream_t>(gpu->stream());
  for (int i = 0; i < 3; ++i) {
    for (std::size_t to = 0; to < n; ++to) values[to] = static_cast<float>(rank() * static_cast<int>(to) + i);
    ASSERT_EQ(cudaMemcpyAsync(in.get(), values.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    Request request;
    comm->order_after(stream);
    comm->ireduce_scatter(in.get(), out.get(), 1, DataType::fp32, ReduceOp::sum, request);
    comm->order_before(stream, request);
    ASSERT_EQ(cudaMemcpyAsync(out.get() + 1, out.get(), sizeof(float), cudaMemcpyDeviceToDevice, stream),
              cudaSuccess);
    gpu->synchronize();
    EXPECT_EQ(out.host()[1], static_cast<float>(size() * (size() - 1) / 2 * rank() + size() * i));
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

TEST_P(GpuCommunicator, DiscardedPayloadGoesToHostMemory) {
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

}  // namespace
}  // namespace assay
