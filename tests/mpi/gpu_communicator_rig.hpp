// SPDX-License-Identifier: Apache-2.0
// A communicator over GPU memory on every rank, of the kind that the parameter of the test names.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "test_gpu.hpp"
#include "transport/gpu_transports.hpp"
#include "transport/mpi_detail.hpp"

namespace assay {

using test::OnGpu;

inline std::vector<unsigned char> bytes_of(int source, int destination, std::size_t n) {
  std::vector<unsigned char> data(n);
  const auto key = mix64(static_cast<std::uint64_t>(source), static_cast<std::uint64_t>(destination));
  for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<unsigned char>(mix64(key, i));
  return data;
}

constexpr std::size_t mib = std::size_t{1} << 20;

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
      return gpu_transports("cuda")->make_staged(*world, *gpu, GetParam() == std::string("direct"), nullptr);
    return gpu_transports("cuda")->make_nccl(*world, *gpu, settings);
  }
  int rank() const { return comm->rank(); }
  int size() const { return comm->size(); }
  int next() const { return (rank() + 1) % size(); }
  int previous() const { return (rank() + size() - 1) % size(); }

  std::unique_ptr<Communicator> world;
  std::unique_ptr<test::TestGpu> gpu;
  std::unique_ptr<Communicator> comm;
};

template <typename T>
std::vector<T> reduced(Communicator& comm, Device& gpu, const std::vector<T>& mine, DataType type,
                       ReduceOp op, bool in_place) {
  const OnGpu<T> in(gpu, 0, mine);
  const OnGpu<T> out(gpu, in_place ? 0 : 8 * mib, mine.size());
  comm.all_reduce(in.get(), out.get(), mine.size(), type, op);
  return out.host();
}

}  // namespace assay
