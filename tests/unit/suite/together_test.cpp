// SPDX-License-Identifier: Apache-2.0
#include "suite/together.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

/// The group of one rank of two. `others` is the other rank's part of each vote; `votes` is their number.
class TwoRanks final : public fakes::SelfCommunicator {
 public:
  SampleVote others;
  int votes = 0;
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) override {
    if (count != 3) return SelfCommunicator::all_reduce(in, out, count, type, op);
    EXPECT_EQ(type, DataType::fp64);
    EXPECT_EQ(op, ReduceOp::max);
    ++votes;
    SampleVote vote;
    std::memcpy(&vote, in, sizeof vote);
    vote = {std::max(vote.stop, others.stop), std::max(vote.imprecise, others.imprecise),
            std::max(vote.share, others.share)};
    std::memcpy(out, &vote, sizeof vote);
  }
};

TEST(Together, AVoteIsTheMaximumOfEachNumberInOneCollective) {
  TwoRanks group;
  group.others = {0, 1, 0.25};
  const SampleVote vote = agreed(group, {1, 0, 0.5});
  EXPECT_EQ(std::vector({vote.stop, vote.imprecise, vote.share}), std::vector({1.0, 1.0, 0.5}));
  EXPECT_EQ(group.votes, 1);
}

TEST(Together, ARankThatFailedEndsTheSeriesOfAll) {
  for (const bool fails : {false, true}) {
    TwoRanks group;
    group.others.imprecise = 1;  // the other one would go on
    Together together(group);
    int runs = 0;
    Operation op;
    op.run = [&](std::uint64_t) {
      if (++runs == 3 && fails) throw Error(ErrorKind::device, "the device fell off");
    };
    SamplingPlan plan;
    plan.warmup_seconds = 0;
    plan.max_seconds = 1000;
    plan.max_samples = 50;
    const SampleSeries series = sample(together.wrap(op), plan);
    EXPECT_EQ(series.seconds.size(), fails ? 2U : 50U);
    EXPECT_EQ(together.failed(), fails);
  }
}

}  // namespace
}  // namespace assay
