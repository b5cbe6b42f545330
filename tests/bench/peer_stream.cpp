// SPDX-License-Identifier: Apache-2.0
// The triad loop as McCalpin's STREAM has it, a[i] = b[i] + s * c[i], for scripts/bench_peers.sh.
//
//   peer_stream BYTES_PER_ARRAY THREADS SECONDS
//
// Prints the best and the median rate in B/s, counted as STREAM counts: 24 bytes per element.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Share {
  double* a;
  const double* b;
  const double* c;
  std::size_t begin, end;
};

void triad(const Share& s) {
  for (std::size_t i = s.begin; i < s.end; ++i) s.a[i] = s.b[i] + 3.0 * s.c[i];
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc == 4 ? std::strtoull(argv[1], nullptr, 10) / sizeof(double) : 0;
  const int threads = argc == 4 ? std::atoi(argv[2]) : 0;
  const double seconds = argc == 4 ? std::atof(argv[3]) : 0;
  if (count < 1000 || threads < 1 || !(seconds > 0)) {
    std::fprintf(stderr, "usage: peer_stream BYTES_PER_ARRAY THREADS SECONDS\n");
    return 1;
  }
  const std::unique_ptr<double[]> a(new double[count]), b(new double[count]), c(new double[count]);
  std::vector<double> times;
  bool more = true;
  Clock::time_point begin;
  const auto start = Clock::now();
  // Runs on one thread between two sweeps.
  const auto between = [&]() noexcept {
    const auto now = Clock::now();
    if (begin != Clock::time_point{}) times.push_back(std::chrono::duration<double>(now - begin).count());
    more = times.size() < 5 || std::chrono::duration<double>(now - start).count() < seconds;
    begin = Clock::now();
  };
  std::barrier sync(threads, between);
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    const auto part = [&](int k) {
      return count * static_cast<std::size_t>(k) / static_cast<std::size_t>(threads);
    };
    pool.emplace_back([&, share = Share{a.get(), b.get(), c.get(), part(t), part(t + 1)}] {
      for (std::size_t i = share.begin; i < share.end; ++i) {  // first touch by the thread that will use it
        share.a[i] = 0.0;
        const_cast<double*>(share.b)[i] = 2.0;
        const_cast<double*>(share.c)[i] = 1.0;
      }
      sync.arrive_and_wait();
      while (more) {
        triad(share);
        sync.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  std::sort(times.begin(), times.end());
  const double bytes = 24.0 * static_cast<double>(count);
  std::printf("%.6e %.6e\n", bytes / times.front(), bytes / times[times.size() / 2]);
  return a[count / 2] == 5.0 ? 0 : 1;
}
