// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "device/arena.hpp"
#include "device/team.hpp"
#include "fresh.hpp"

namespace assay {
namespace {

TEST(Team, RunsEveryWorkerOncePerCall) {
  for (const std::size_t threads : {1u, 2u, 3u, 5u}) {
    Team team(std::vector<int>(threads, 0), false);
    ASSERT_EQ(team.size(), static_cast<int>(threads));
    std::vector<std::size_t> calls(threads * 16);
    for (int round = 0; round < 300; ++round)
      team.run([&](int t) noexcept { ++calls[static_cast<std::size_t>(t) * 16]; });
    for (std::size_t t = 0; t < threads; ++t) EXPECT_EQ(calls[t * 16], 300u) << "worker " << t;
  }
}

TEST(Team, BindsItsThreadsAndGivesTheCallersBindingBack) {
  cpu_set_t before, after;
  pthread_getaffinity_np(pthread_self(), sizeof before, &before);
  std::vector<int> cpus;
  for (int c = 0; c < CPU_SETSIZE && cpus.size() < 2; ++c)
    if (CPU_ISSET(c, &before)) cpus.push_back(c);
  {
    Team team(cpus, true);
    std::vector<int> ran_on(cpus.size() * 16, -1);
    team.run([&](int t) noexcept { ran_on[static_cast<std::size_t>(t) * 16] = sched_getcpu(); });
    for (std::size_t t = 0; t < cpus.size(); ++t) EXPECT_EQ(ran_on[t * 16], cpus[t]);
  }
  pthread_getaffinity_np(pthread_self(), sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(Team, SleepsWhenIdle) {
  Team team(std::vector<int>(3, 0), false);
  team.run([](int) noexcept {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  timespec from{}, to{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
  const double cpu_s = static_cast<double>(to.tv_sec - from.tv_sec) + 1e-9 * static_cast<double>(to.tv_nsec - from.tv_nsec);
  EXPECT_LT(cpu_s, 0.03) << "two idle workers burnt CPU for 0.3 s";
}

class Shares : public test::Fresh {};

TEST_F(Shares, CoverEveryElementOnceAndAreEven) {
  alignas(64) static std::byte anchor[64];  // addresses are only computed with
  for (int trial = 0; trial < 300; ++trial) {
    const int threads = static_cast<int>(1 + below(7));
    const std::size_t count = trial % 3 == 0 ? below(1000) : below(12'000'000);
    const auto* data = reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(anchor) + 8 * below(1 << 20));
    std::size_t total = 0, most = 0;
    std::vector<std::pair<std::size_t, std::size_t>> ranges;
    for (int t = 0; t < threads; ++t) {
      std::size_t mine = 0, last = trial % 2 == 0 ? 0 : count;
      for_share(data, count, 8, t, threads, trial % 2 != 0, [&](std::size_t b, std::size_t e) {
        ASSERT_LT(b, e);
        if (trial % 2 == 0) {
          ASSERT_GE(b, last) << "not ascending";
          last = e;
        } else {
          ASSERT_LE(e, last) << "not descending";
          last = b;
        }
        ranges.emplace_back(b, e);
        mine += e - b;
      });
      total += mine;
      most = std::max(most, mine);
    }
    ASSERT_EQ(total, count);
    std::sort(ranges.begin(), ranges.end());
    std::size_t at = 0;
    for (const auto& [b, e] : ranges) {
      ASSERT_EQ(b, at);
      at = e;
    }
    EXPECT_LE(most, count / static_cast<std::size_t>(threads) + 40) << count << " elements, " << threads << " threads";
  }
}

TEST_F(Shares, GiveAGranuleToTheThreadThatItsAddressNames) {
  constexpr std::size_t granule = Arena::granule_bytes;
  for (const int threads : {1, 2, 3}) {
    const std::uintptr_t base = granule * static_cast<std::size_t>(threads) * 1000;
    const std::size_t start = granule / 2 + 3 * granule;
    const auto* data = reinterpret_cast<const void*>(base + start);
    for (int t = 0; t < threads; ++t) {
      for_share(data, 40 * granule / 8, 8, t, threads, false, [&](std::size_t b, std::size_t e) {
        const std::size_t address = start + b * 8;
        if (e - b != granule / 8 || address % granule != 0) return;
        EXPECT_EQ(address / granule % static_cast<std::size_t>(threads), static_cast<std::size_t>(t));
      });
    }
  }
}

TEST(ArenaMemory, IsZeroAlignedAndWhole) {
  Team team(std::vector<int>(3, 0), false);
  Arena arena;
  arena.reserve((13 << 20) + 5, team);
  ASSERT_GE(arena.bytes().size(), (std::size_t{13} << 20) + 5);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.bytes().data()) % (3 * Arena::granule_bytes), 0u);
  for (const std::byte b : arena.bytes()) ASSERT_EQ(b, std::byte{0});
  EXPECT_GT(available_memory_bytes(), std::size_t{1} << 20);
  EXPECT_LT(available_memory_bytes(), std::size_t{1} << 50);
}

}  // namespace
}  // namespace assay
