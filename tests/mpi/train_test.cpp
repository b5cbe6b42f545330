// SPDX-License-Identifier: Apache-2.0
// Training on several ranks: reductions that go on while a rank computes, and the same model whatever the
// number of ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "base/clock.hpp"
#include "suites/train/preset.hpp"
#include "suites/train/reducer.hpp"
#include "suites/train/source.hpp"
#include "transport/mpi_detail.hpp"

namespace assay::train {
namespace {

const ModelShape shape{128, 2, 4, 32, 32};

struct Rank {
  explicit Rank(std::size_t batch_size, const Storage& storage = {})
      : device(make_host_device({0}, {0}, false)),
        memory(Gpt::bytes(shape, batch_size, storage) + 64),
        batch(batch_size) {
    void* at = memory.data();
    std::size_t room = memory.size();
    auto* aligned = static_cast<std::byte*>(std::align(64, Gpt::bytes(shape, batch, storage), at, room));
    gpt.emplace(*device, shape, batch, std::span(aligned, room), storage);
    gpt->initialise(RandomStream(1, "parameters"));
  }
  void pass(std::uint64_t first, GradientReducer* reducer) {
    std::vector<std::int32_t> tokens(batch * shape.length), targets(tokens.size());
    for (std::size_t b = 0; b < batch; ++b)
      source.sequence(first + b, std::span(tokens).subspan(b * shape.length, shape.length),
                      std::span(targets).subspan(b * shape.length, shape.length));
    gpt->load(tokens, targets);
    gpt->forward();
    gpt->loss(1.0f / static_cast<float>(batch * source.counted(shape.length)));
    if (reducer == nullptr) return gpt->backward(nullptr, nullptr);
    gpt->backward([&](std::size_t b) { reducer->ready(b); }, [&] { reducer->tick(); });
    reducer->wait();
  }

  std::unique_ptr<Device> device;
  std::vector<std::byte> memory;
  std::size_t batch;
  LagSource source{{shape.vocabulary, 1, 8}, RandomStream(2, "source")};
  std::optional<Gpt> gpt;
};

TEST(Train, OneRankWithAllSequencesTrainsTheSameModel) {
  const auto world = mpi::duplicate_world();
  const int ranks = world->size();
  Rank part(2), whole(2 * static_cast<std::size_t>(ranks));
  GradientReducer reducer(*world, *part.gpt);
  const auto all = static_cast<std::uint64_t>(2 * ranks);
  for (int step = 0; step < 4; ++step) {
    const std::uint64_t first = static_cast<std::uint64_t>(step) * all;
    part.pass(first + 2 * static_cast<std::uint64_t>(world->rank()), &reducer);
    whole.pass(first, nullptr);
    kernels::AdamW rule;
    part.gpt->update([&] {
      rule.gradient_scale = 1.0f / static_cast<float>(ranks);
      return rule.at(step + 1);
    }());
    rule.gradient_scale = 1;
    whole.gpt->update(rule.at(step + 1));
  }
  double squares = 0, difference = 0;
  for (std::size_t i = 0; i < whole.gpt->table().size(); ++i) {
    const double a = part.gpt->parameters()[i], b = whole.gpt->parameters()[i];
    squares += b * b;
    difference += (a - b) * (a - b);
  }
  EXPECT_LT(std::sqrt(difference / squares), 2e-4);
  // And every replica has the same bits.
  const std::uint64_t mine = part.gpt->parameter_digest();
  std::vector<std::uint64_t> digests(static_cast<std::size_t>(ranks));
  world->all_gather(&mine, digests.data(), sizeof mine);
  for (const std::uint64_t digest : digests) EXPECT_EQ(digest, digests.front());
}

TEST(Train, BucketsAreSummedExactly) {
  const auto world = mpi::duplicate_world();
  Rank rank(1);
  const std::size_t n = rank.gpt->table().size();
  for (std::size_t i = 0; i < n; ++i)
    rank.gpt->gradients()[i] = static_cast<float>(i % 100 + static_cast<std::size_t>(world->rank()));
  GradientReducer reducer(*world, *rank.gpt);
  for (std::size_t b = 0; b < rank.gpt->table().buckets().size(); ++b) reducer.ready(b);
  reducer.wait();
  const int ranks = world->size(), sum = ranks * (ranks - 1) / 2;
  for (std::size_t i = 0; i < n; ++i)
    ASSERT_EQ(rank.gpt->gradients()[i], static_cast<float>(static_cast<int>(i % 100) * ranks + sum)) << i;
  EXPECT_EQ(reducer.busy_s() > 0, ranks > 1);
}

void expect_equal_replicas(Communicator& world, Gpt& gpt) {
  const std::uint64_t mine = gpt.parameter_digest();
  std::vector<std::uint64_t> digests(static_cast<std::size_t>(world.size()));
  world.all_gather(&mine, digests.data(), sizeof mine);
  for (const std::uint64_t digest : digests) EXPECT_EQ(digest, digests.front());
}

/// Gradients that are small integers, so that their sum is exact in any order: then both ways must give the
/// same bits.
TEST(Train, EveryRankUpdatingItsShareUpdatesTheSame) {
  const auto world = mpi::duplicate_world();
  Rank whole(1), part(1, {NumType::fp32, world->rank(), world->size()});
  GradientReducer all(*world, *whole.gpt), zero(*world, *part.gpt);
  const std::size_t n = whole.gpt->table().size(), buckets = whole.gpt->table().buckets().size();
  EXPECT_LE(part.gpt->share().size(), n / static_cast<std::size_t>(world->size()) +
                                          buckets * 17 * static_cast<std::size_t>(world->size()));
  for (int step = 1; step <= 3; ++step) {
    for (Gpt* gpt : {&*whole.gpt, &*part.gpt}) {
      for (std::size_t i = 0; i < n; ++i)
        gpt->gradients()[i] = static_cast<float>(
            static_cast<int>((i * 7 + static_cast<std::size_t>(step * 31 + world->rank() * 13)) % 200) - 100);
      GradientReducer& reducer = gpt == &*whole.gpt ? all : zero;
      for (std::size_t b = 0; b < buckets; ++b) reducer.ready(b);
      reducer.wait();
      gpt->save();
      gpt->update(kernels::AdamW{}.at(step));
      reducer.share();
    }
    ASSERT_EQ(part.gpt->parameter_digest(), whole.gpt->parameter_digest()) << "step " << step;
    const double mine = part.gpt->gradient_squares(world->rank() == 0);
    EXPECT_NEAR(world->sum(mine) / whole.gpt->gradient_squares(), 1, 1e-12);
  }
  // The last step once more, as where replicas differ.
  const std::uint64_t digest = part.gpt->parameter_digest();
  part.gpt->restore();
  part.gpt->update(kernels::AdamW{}.at(3));
  zero.share();
  EXPECT_EQ(part.gpt->parameter_digest(), digest);
}

TEST(Train, SharesTrainReplicasThatAreEqual) {
  const auto world = mpi::duplicate_world();
  Rank whole(2), part(2, {NumType::fp32, world->rank(), world->size()});
  GradientReducer all(*world, *whole.gpt), zero(*world, *part.gpt);
  for (int step = 0; step < 4; ++step) {
    const auto first = static_cast<std::uint64_t>(2 * (step * world->size() + world->rank()));
    whole.pass(first, &all);
    part.pass(first, &zero);
    for (Rank* rank : {&whole, &part}) rank->gpt->update(kernels::AdamW{}.at(step + 1));
    zero.share();
    expect_equal_replicas(*world, *part.gpt);
  }
  double squares = 0, difference = 0;
  for (std::size_t i = 0; i < whole.gpt->table().size(); ++i) {
    const double a = part.gpt->parameters()[i], b = whole.gpt->parameters()[i];
    squares += b * b;
    difference += (a - b) * (a - b);
  }
  EXPECT_LT(std::sqrt(difference / squares), 2e-4);
  // Two numbers have one sum.
  if (world->size() <= 2) {
    EXPECT_EQ(part.gpt->parameter_digest(), whole.gpt->parameter_digest());
  }
}

/// Seconds that wait() takes on the slowest rank after all ranks did something else, and called nothing, for
/// much longer than the reduction takes, as a fraction of what the reduction takes by itself.
double left_to_wait(Communicator& world, Rank& rank, Progress progress) {
  GradientReducer reducer(world, *rank.gpt, progress);
  const auto all_ready = [&] {
    world.barrier();
    const double begin = now_s();
    for (std::size_t b = 0; b < rank.gpt->table().buckets().size(); ++b) reducer.ready(b);
    return begin;
  };
  double begin = all_ready();
  reducer.wait();
  const double alone = now_s() - begin;
  all_ready();
  std::this_thread::sleep_for(std::chrono::duration<double>(20 * alone + 0.02));
  begin = now_s();
  reducer.wait();
  return world.max(now_s() - begin) / world.min(alone);
}

TEST(Train, ReductionsGoOnByThemselves) {
  const auto world = mpi::duplicate_world();
  if (world->size() < 2 || world->size() > 4) GTEST_SKIP() << "two to four ranks";
  if (!world->serialized()) GTEST_SKIP() << "this MPI allows no second thread";
  Rank rank(1), part(1, {NumType::fp32, world->rank(), world->size()});
  double with = 1, without = 0, scattered = 1;
  // The machine may be busy with other things; what is asked for must happen once.
  for (int attempt = 0; attempt < 10 && with >= 0.3; ++attempt)
    with = left_to_wait(*world, rank, Progress::thread);
  for (int attempt = 0; attempt < 10 && without <= 0.3; ++attempt)
    without = left_to_wait(*world, rank, Progress::none);
  for (int attempt = 0; attempt < 10 && scattered >= 0.3; ++attempt)
    scattered = left_to_wait(*world, part, Progress::thread);
  EXPECT_LT(scattered, 0.3) << "the sums of shares waited for the rank to come back";
  EXPECT_LT(with, 0.3) << "the reduction waited for the rank to come back";
  EXPECT_GT(without, 0.3) << "it goes on without the thread, so this test proves nothing of the thread";
}

}  // namespace
}  // namespace assay::train
