// SPDX-License-Identifier: Apache-2.0
// The sizing rule over rates from 1 kB/s to 1 TB/s and latencies from 100 ns to 100 ms.
#include "measure/sizing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay {
namespace {

/// A link or device whose batch takes a fixed time a repetition and the rest by bytes.
struct Medium {
  double latency_s, bytes_per_s;
  double batch_s(const Portion& p) const {
    return static_cast<double>(p.repetitions) * (latency_s + static_cast<double>(p.bytes) / bytes_per_s);
  }
};

struct Climb {
  Portion fitted;
  double spent_s = 0, longest_s = 0, fitted_s = 0;
  int steps = 0;
};

Climb climb(const Medium& part, Portion wanted, double share_s) {
  Sizing sizing(wanted, share_s, 1.5 * share_s);
  Climb out;
  while (!sizing.done()) {
    const double s = part.batch_s(sizing.next());
    out.spent_s += s;
    out.longest_s = std::max(out.longest_s, s);
    ++out.steps;
    sizing.took(s);
  }
  out.fitted = sizing.fitted();
  out.fitted_s = sizing.seconds();
  return out;
}

TEST(Sizing, EveryRateAndLatencyKeepsItsShare) {
  constexpr double share_s = 0.05;
  for (const std::size_t bytes :
       {std::size_t{8}, std::size_t{65536}, std::size_t{4} << 20, std::size_t{256} << 20})
    for (const std::uint64_t k : {std::uint64_t{1}, std::uint64_t{20}, std::uint64_t{64}})
      for (double rate = 1e3; rate <= 1e12; rate *= 3)
        for (double latency = 1e-7; latency <= 0.1; latency *= 10) {
          const Medium part{latency, rate};
          const Climb c = climb(part, {bytes, k}, share_s);
          const double least = part.batch_s({std::min(bytes, Sizing::first_bytes), 1});
          // What is measured with keeps the share, or is the least there is, or a quarter of it would have
          // been mostly latency.
          const Portion quarter{std::max(c.fitted.bytes / 4, std::size_t{1}), c.fitted.repetitions};
          const bool fixed_cost = part.batch_s(c.fitted) <= 3 * part.batch_s(quarter) * (1 + 1e-9);
          const double most_s = fixed_cost ? Sizing::overrun * std::max(share_s, Sizing::noise_s) : share_s;
          EXPECT_LE(part.batch_s(c.fitted), std::max(most_s * (1 + 1e-9), least))
              << rate << " " << latency << " " << bytes << " " << k;
          // One step may overrun it, by no more than its growth, and is not measured with.
          EXPECT_LE(c.longest_s, std::max(Sizing::growth * Sizing::noise_s * (1 + 1e-9), least))
              << rate << " " << latency;
          EXPECT_LE(c.spent_s, std::max(3 * share_s + 8 * Sizing::noise_s, 1.001 * least))
              << rate << " " << latency << " " << bytes << " " << k;
          EXPECT_LE(c.steps, 40);
          EXPECT_NEAR(c.fitted_s, part.batch_s(c.fitted), 1e-6 * c.fitted_s + 1e-12);
          // Nothing is given away: one that can do all that is wanted in a quarter of its share does it.
          if (part.batch_s({bytes, k}) * Sizing::growth < share_s / 2) {
            EXPECT_EQ(c.fitted, (Portion{bytes, k})) << rate << " " << latency;
          }
          // And no one measures with less than a quarter of what it could have done.
          if (c.fitted.bytes < bytes) {
            EXPECT_GT(part.batch_s({c.fitted.bytes * 4, 1}) * Sizing::growth, share_s / 4)
                << rate << " " << latency;
          }
        }
}

TEST(Sizing, AMomentWithoutTheCoreIsNotASlowPart) {
  Sizing sizing({4u << 20, 20}, 0.05, 0.075);
  sizing.took(0.06);  // set-up of a connection
  EXPECT_FALSE(sizing.done());
  EXPECT_EQ(sizing.next().bytes, Sizing::first_bytes);
  while (!sizing.done())
    sizing.took(1e-6 + static_cast<double>(sizing.next().bytes * sizing.next().repetitions) / 10e9);
  EXPECT_EQ(sizing.fitted(), (Portion{4u << 20, 20}));
}

TEST(Sizing, SmallBatchesThatStallAreNotASlowLink) {
  // From 32 KiB on a message waits 40 ms for an acknowledgement, until the batch is large.
  Sizing sizing({256u << 10, 20}, 0.025, 0.0375);
  int steps = 0;
  for (; !sizing.done(); ++steps) {
    const auto bytes = static_cast<double>(sizing.next().bytes * sizing.next().repetitions);
    sizing.took(1e-5 + bytes / 600e6 + (bytes >= 32e3 && bytes < 1e6 ? 0.04 : 0.0));
  }
  EXPECT_EQ(sizing.fitted(), (Portion{256u << 10, 20}));
  EXPECT_LE(steps, 20);
}

TEST(Sizing, ASlowLinkThatStallsIsMeasuredWithMoreThanItsStall) {
  // 200 Mbit/s, and each batch from 32 KiB on waits 40 ms for an acknowledgement.
  const auto batch_s = [](const Portion& p) {
    const double bytes = static_cast<double>(p.bytes * p.repetitions);
    return 1e-4 + bytes / 25e6 + (bytes >= 32e3 ? 0.04 : 0.0);
  };
  Sizing sizing({1u << 20, 20}, 0.015, 0.0225);
  while (!sizing.done()) sizing.took(batch_s(sizing.next()));
  const Portion fitted = sizing.fitted();
  EXPECT_GE(static_cast<double>(fitted.bytes * fitted.repetitions) / batch_s(fitted), 0.5 * 25e6);
}

TEST(Sizing, TheProbeEndsAtItsTimeLimit) {
  Sizing sizing({4u << 20, 20}, 0.05, 0.075);
  int steps = 0;
  for (; !sizing.done(); ++steps) sizing.took(1.0);
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(sizing.fitted(), (Portion{Sizing::first_bytes, 1}));
  EXPECT_EQ(sizing.seconds(), 1.0);
}

TEST(Sizing, RepetitionsFillTheShareBetweenTwoSteps) {
  // 4 MiB take 10 ms: of a share of 50 ms five.
  const Climb c = climb({0, (4 << 20) / 0.01}, {4u << 20, 20}, 0.055);
  EXPECT_EQ(c.fitted, (Portion{4u << 20, 5}));
}

TEST(Sizing, EqualPartsKeepTheirShareAtAnySpeed) {
  for (double part_s = 1e-9; part_s < 1e3; part_s *= 10) {
    const std::size_t fit = fitted_count(64, part_s, 0.5);
    EXPECT_TRUE(fit == 1 || static_cast<double>(fit) * part_s <= 0.5) << part_s;
    EXPECT_TRUE(fit == 64 || static_cast<double>(fit + 1) * part_s > 0.5) << part_s;
  }
  EXPECT_EQ(fitted_count(64, 1, -1), 1U);
}

}  // namespace
}  // namespace assay
