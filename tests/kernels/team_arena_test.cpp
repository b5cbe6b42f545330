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

double cpu_s(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

TEST(Team, SleepsWhenIdle) {
  for (const std::vector<int>& cpus : {std::vector<int>{0, 0, 0}, std::vector<int>{0, 1}}) {
    Team team(cpus, false);
    // Clocks of the workers alone: other threads of this process (the BLAS library's) have habits of their
    // own.
    std::vector<clockid_t> clocks(cpus.size());
    team.run(
        [&](int t) noexcept { pthread_getcpuclockid(pthread_self(), &clocks[static_cast<std::size_t>(t)]); });
    double used_s = 0;
    for (std::size_t t = 1; t < cpus.size(); ++t) used_s -= cpu_s(clocks[t]);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    for (std::size_t t = 1; t < cpus.size(); ++t) used_s += cpu_s(clocks[t]);
    EXPECT_LT(used_s, 0.01) << cpus.size() - 1 << " idle workers burnt CPU for 0.2 s";
  }
}

class Shares : public test::LinkRetest {};

TEST_F(Shares, CoverEveryElementOnceAndAreEven) {
  alignas(64) static std::byte anchor[64];  // addresses are only computed with
  for (int trial = 0; trial < 300; ++trial) {
    const int threads = static_cast<int>(1 + below(7));
    const std::size_t count = trial % 3 == 0 ? below(1000) : below(12'000'000);
    const auto* data =
        reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(anchor) + 8 * below(1 << 20));
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
    EXPECT_LE(most, count / static_cast<std::size_t>(threads) + 40)
        << count << " elements, " << threads << " threads";
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
}

TEST(ArenaMemory, IsTouchedNoLongerThanAllowedAndGoesOnLater) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  Team team(std::vector<int>(3, 0), false);
  Arena arena;
  const std::size_t first = arena.reserve_until(100 * mib, 0, team);
  EXPECT_EQ(first, 18 * mib) << "16 MiB in whole rounds of three threads";
  EXPECT_EQ(arena.bytes().size(), first);
  arena.bytes()[5] = std::byte{7};
  arena.reserve(40 * mib, team);
  EXPECT_GE(arena.bytes().size(), 40 * mib);
  EXPECT_LE(arena.bytes().size(), 48 * mib) << "no more than is asked for";
  EXPECT_EQ(arena.bytes()[5], std::byte{7});
  EXPECT_EQ(arena.reserve_until(100 * mib, 1e300, team), 100 * mib);
  EXPECT_EQ(arena.bytes()[5], std::byte{7});
}

}  // namespace
}  // namespace assay
