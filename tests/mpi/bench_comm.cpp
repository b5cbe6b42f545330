// SPDX-License-Identifier: Apache-2.0
// assay's own measurement of pair latency, pair bandwidth and all-reduce beside the same loops written in
// plain MPI, in turns A-B-A-B in one process, so that the machine's mood hits both alike. Prints one line per
// case:
//   case <name> unit <unit> ours <median> plain <median> ratio <median of pairs> low <q25> high <q75> pairs
//   <n>
// ratio > 1 is better for assay (a rate, or the inverse of a time). Both loops work on the same huge pages of
// the same slots: on other memory of the same process, pair bandwidth differs by 30 % here, whoever sends.
// Usage: mpirun -n 2 assay_bench_comm [PAIRS]
#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "measure/statistics.hpp"
#include "suites/allreduce/series.hpp"
#include "transport/mpi_communicator.hpp"
#include "workload/exchange.hpp"

namespace {

using namespace assay;

/// Half the round trip of `bytes`, `loops` times back to back on one buffer.
double plain_latency(int rank, std::size_t bytes, int loops, std::span<std::byte> buffer) {
  const int n = static_cast<int>(bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < loops; ++i) {
    if (rank == 0) {
      MPI_Send(buffer.data(), n, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(buffer.data(), n, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer.data(), n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer.data(), n, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - begin) / (2.0 * loops);
}

/// Bytes per second of windows of `window` messages, an acknowledgement after each; `slots` buffers in
/// rotation.
double plain_bandwidth(int rank, std::size_t bytes, int window, std::size_t slots, int loops,
                       std::span<std::byte> memory) {
  std::vector<MPI_Request> requests(static_cast<std::size_t>(window));
  const int n = static_cast<int>(bytes);
  std::vector<double> seconds;
  for (int loop = 0; loop < loops; ++loop) {
    if (rank == 0)  // what assay does before every batch: the messages are new
      for (std::size_t i = 0; i < slots * bytes; i += 64)
        memory[i] = static_cast<std::byte>(loop + static_cast<int>(i));
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    char ack = 0;
    for (int i = 0; i < window; ++i) {
      std::byte* at = memory.data() + static_cast<std::size_t>(i) % slots * bytes;
      if (rank == 0)
        MPI_Isend(at, n, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
      else
        MPI_Irecv(at, n, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
    }
    MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE);
    if (rank == 0)
      MPI_Recv(&ack, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(&ack, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    seconds.push_back(MPI_Wtime() - begin);
    if (rank == 1) {  // assay checks every payload, which leaves it in the receiver's cache; so do we
      volatile std::byte seen{};
      for (std::size_t i = 0; i < slots * bytes; i += 64) seen = seen ^ memory[i];
    }
  }
  return static_cast<double>(bytes) * window / median(seconds);  // as ours: the median of the batches
}

/// In and out lie side by side in each slot, as assay keeps them.
double plain_allreduce(std::size_t count, int loops, std::span<std::byte> memory, std::size_t slots) {
  auto* data = reinterpret_cast<float*>(memory.data());
  const std::size_t side = (count + 15) / 16 * 16;  // whole cache lines
  for (std::size_t slot = 0; slot < slots; ++slot)  // new values for every batch, as ours
    for (std::size_t i = 0; i < count; i += 16) data[slot * 2 * side + i] = static_cast<float>(i % 7);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < loops; ++i) {
    float* in = data + static_cast<std::size_t>(i) % slots * 2 * side;
    MPI_Allreduce(in, in + side, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  double mine = (MPI_Wtime() - begin) / loops, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

/// Huge pages where the kernel gives them, touched once: what a run's arena is.
class Arena {
 public:
  explicit Arena(std::size_t bytes) : bytes_(bytes) {
    at_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at_ == MAP_FAILED) throw std::bad_alloc();
    madvise(at_, bytes, MADV_HUGEPAGE);
    auto* numbers = static_cast<float*>(at_);
    std::fill(numbers, numbers + bytes / sizeof(float), 1.0f);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { munmap(at_, bytes_); }
  std::span<std::byte> memory() { return {static_cast<std::byte*>(at_), bytes_}; }

 private:
  void* at_ = nullptr;
  std::size_t bytes_;
};

struct Bench {
  Communicator& world;
  Arena arena{std::size_t{256} << 20};
  int pairs = 11;

  std::span<std::byte> memory() { return arena.memory(); }

  /// `rate` says whether larger is better.
  void compare(const std::string& name, const char* unit, bool rate, const std::function<double()>& ours,
               const std::function<double()>& plain) {
    std::vector<double> mine, theirs, ratios;
    ours();
    plain();
    for (int i = 0; i < pairs; ++i) {
      double a = 0, b = 0;
      if (i % 2 == 0) {
        a = ours();
        b = plain();
      } else {
        b = plain();
        a = ours();
      }
      mine.push_back(a);
      theirs.push_back(b);
      ratios.push_back(rate ? a / b : b / a);
    }
    if (world.rank() == 0)
      std::printf("case %s unit %s ours %.6g plain %.6g ratio %.4f low %.4f high %.4f pairs %d\n",
                  name.c_str(), unit, median(mine), median(theirs), median(ratios), quantile(ratios, 0.25),
                  quantile(ratios, 0.75), pairs);
    std::fflush(stdout);
  }

  /// Median of assay's samples in the direction 0 -> 1.
  double link(workload::Mode mode, std::size_t bytes, std::size_t samples) {
    workload::Shape shape{mode, bytes, 20, 20};
    while (shape.arena_bytes() > memory().size()) shape.repetitions = shape.slots = shape.slots / 2;
    workload::Exchange exchange(world, memory(), 1, shape);
    workload::Limits limits;
    limits.samples = samples;
    limits.blocks = 1;
    limits.seconds = 10;
    limits.deadline_s = now_s() + 60;
    world.barrier();
    const auto series = exchange.run(1 - world.rank(), world.rank() == 0, limits);
    if (!exchange.wrong().empty()) std::printf("MISCOMPARE\n");
    const double seconds = median(series.batch_s);
    const auto k = static_cast<double>(shape.repetitions);
    return mode == workload::Mode::latency ? seconds / (2 * k) : k * static_cast<double>(bytes) / seconds;
  }

  double reduce(std::size_t bytes, std::size_t slots, std::size_t samples) {
    allreduce::Collective collective(world, allreduce::Op::all_reduce, bytes, memory(), slots, 3);
    SamplingPlan plan;
    plan.repetitions = 20;
    plan.min_samples = plan.max_samples = samples;
    plan.max_seconds = 10;
    plan.warmup_seconds = 0.002;
    const auto series = allreduce::measure(world, collective, plan, false);
    // The slowest rank of each sample, as the headline takes it.
    std::vector<double> seconds = series.samples.seconds;
    world.all_reduce(seconds.data(), seconds.data(), seconds.size(), DataType::fp64, ReduceOp::max);
    return median(seconds) / 20;
  }
};

void bench_links(Bench& bench) {
  const int rank = bench.world.rank();
  bench.compare(
      "latency-8", "s", false, [&] { return bench.link(workload::Mode::latency, 8, 200); },
      [&] {
        std::vector<double> batches;
        for (int i = 0; i < 200; ++i) batches.push_back(plain_latency(rank, 8, 20, bench.memory()));
        return median(batches);
      });
  for (const std::size_t bytes : {std::size_t{65536}, std::size_t{1} << 20, std::size_t{4} << 20})
    bench.compare(
        "bandwidth-uni-" + std::to_string(bytes), "B/s", true,
        [&] { return bench.link(workload::Mode::uni, bytes, 15); },
        [&] { return plain_bandwidth(rank, bytes, 20, 20, 15, bench.memory()); });
}

void bench_allreduce(Bench& bench) {
  for (const std::size_t bytes :
       {std::size_t{8}, std::size_t{65536}, std::size_t{1} << 20, std::size_t{16} << 20}) {
    const std::size_t slots = bytes > (1u << 20) ? 5 : 20;
    const std::size_t count = bytes / sizeof(float);
    const std::size_t samples = bytes > (1u << 20) ? 3 : 21;
    bench.compare(
        "allreduce-" + std::to_string(bytes), "s", false, [&] { return bench.reduce(bytes, slots, samples); },
        [&] {
          std::vector<double> batches;
          for (std::size_t i = 0; i < samples; ++i)
            batches.push_back(plain_allreduce(count, 20, bench.memory(), slots));
          return median(batches);
        });
  }
}

}  // namespace

int main(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  Bench bench{session.world()};
  if (argc > 1) bench.pairs = std::max(3, std::atoi(argv[1]));
  if (session.world().size() == 2) bench_links(bench);
  if (session.world().size() > 1) bench_allreduce(bench);
  return 0;
}
