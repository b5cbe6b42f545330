// SPDX-License-Identifier: Apache-2.0
// The source of training data, and the vote on digests.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "suites/train/source.hpp"
#include "suites/train/vote.hpp"

namespace assay {
namespace {

using train::LagSource;

TEST(TrainSource, EntropyIsThatOfItsWeights) {
  const LagSource source({64, 1, 8}, RandomStream(1, "s"));
  EXPECT_NEAR(source.entropy(), 1.360635, 1e-6);
  EXPECT_NEAR(LagSource({16, 1, 2}, RandomStream(1, "s")).entropy(), std::log(3.0) - 2.0 / 3 * std::log(2.0),
              1e-12);
}

TEST(TrainSource, TokensHaveTheDistributionOfTheOracle) {
  constexpr std::size_t lag = 2, length = 100, sequences = 400;
  const LagSource source({32, lag, 4}, RandomStream(9, "s"));
  std::vector<std::int32_t> tokens(length), targets(length);
  std::vector<double> seen(4, 0.0);
  double oracle = 0, total = 0;
  for (std::uint64_t n = 0; n < sequences; ++n) {
    double own = 0;
    const double said = source.sequence(n, tokens, targets);
    for (std::size_t i = 0; i < length; ++i) {
      if (i + 1 < length && i >= lag) {
        ASSERT_EQ(targets[i], tokens[i + 1]);
      }
      if (i < lag) {
        ASSERT_EQ(targets[i], -1);
        continue;
      }
      std::size_t choice = 0;
      while (choice < 4 && source.successor(tokens[i - lag], choice) != targets[i]) ++choice;
      ASSERT_LT(choice, 4u) << "no successor of the token " << lag + 1 << " before it";
      seen[choice] += 1;
      total += 1;
      own -= std::log(source.weight(choice));
    }
    ASSERT_NEAR(said, own, 1e-9);
    oracle += said;
  }
  EXPECT_EQ(total, static_cast<double>(sequences * source.counted(length)));
  EXPECT_NEAR(oracle / total, source.entropy(), 0.02);
  for (std::size_t c = 0; c < 4; ++c) {
    const double p = source.weight(c);
    EXPECT_NEAR(seen[c] / total, p, 5 * std::sqrt(p * (1 - p) / total));
  }
}

TEST(TrainSource, SequencesAreFunctionsOfSeedAndNumber) {
  const LagSource a({64, 1, 8}, RandomStream(1, "s")), b({64, 1, 8}, RandomStream(1, "s")),
      c({64, 1, 8}, RandomStream(2, "s"));
  std::vector<std::int32_t> x(64), y(64), z(64), targets(64);
  a.sequence(77, x, targets);
  b.sequence(3, y, targets);
  b.sequence(77, y, targets);
  c.sequence(77, z, targets);
  EXPECT_EQ(x, y);
  EXPECT_NE(x, z);
}

TEST(TrainVote, NamesTheMinority) {
  EXPECT_TRUE(train::vote(std::vector<std::uint64_t>{4, 5, 4, 5, 4, 5}, 2).empty());
  const auto one = train::vote(std::vector<std::uint64_t>{4, 5, 4, 6, 4, 5}, 2);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].column, 1u);
  EXPECT_EQ(one[0].rank, 1);
  EXPECT_EQ(one[0].seen, 6u);
  EXPECT_EQ(one[0].expected, 5u);
  EXPECT_FALSE(one[0].tied);
  const auto tie = train::vote(std::vector<std::uint64_t>{1, 2}, 1);
  ASSERT_EQ(tie.size(), 2u);
  EXPECT_TRUE(tie[0].tied && tie[1].tied);
  EXPECT_EQ(train::vote(std::vector<std::uint64_t>{1, 2, 3, 3}, 1).size(), 4u) << "half is no majority";
  EXPECT_EQ(train::vote(std::vector<std::uint64_t>{1, 3, 2, 3, 3}, 1).size(), 2u);
}

}  // namespace
}  // namespace assay
