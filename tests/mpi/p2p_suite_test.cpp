// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/p2p_suite.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "run/retest.hpp"
#include "suite_rig.hpp"
#include "transport/mpi_detail.hpp"
#include "transport/ucx_communicator.hpp"
#include "workload/exchange.hpp"

namespace assay {
namespace {

using results::CaseState;

/// Every link a rank reports has positive values, one start and one block each.
void expect_sound_rows(const CaseRecord& record, const std::string& metric, int source) {
  for (const auto& row : record.rows_) {
    EXPECT_EQ(row.source, source);
    EXPECT_NE(row.destination, source);
    const auto& values = row.values.at(metric);
    ASSERT_FALSE(values.empty());
    EXPECT_EQ(row.t.size(), values.size());
    EXPECT_EQ(row.block.size(), values.size());
    for (const double value : values) EXPECT_GT(value, 0);
  }
}

TEST(P2pSuite, OneRankHasNoPairsButItsSelftest) {
  P2pSuite suite;
  SuiteRig rig(suite);
  if (rig.size() > 1) GTEST_SKIP() << "several ranks";
  for (const Case& c : rig.plan()) EXPECT_EQ(c.not_applicable.empty(), c.name == "selftest-pair") << c.name;
}

TEST(P2pSuite, EveryRankCatchesItsCorruptedByte) {
  P2pSuite suite;
  SuiteRig rig(suite);
  const CaseRecord record = rig.run("selftest-pair");
  ASSERT_EQ(record.selftest_.size(), 1u);
  const auto& row = record.selftest_.front();
  EXPECT_EQ(row.checker, "pair");
  EXPECT_EQ(row.injected, 1);
  EXPECT_EQ(row.caught, 1);
  EXPECT_EQ(row.located, 1);
  EXPECT_EQ(row.counted, 1);
  EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
}

class P2pModeTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Cases, P2pModeTest,
                         testing::Values("latency-8-node-mpi", "bandwidth-uni-65536-node-mpi",
                                         "bandwidth-bi-65536-node-mpi", "bandwidth-bi-13-node-mpi",
                                         "latency-8-cross-mpi", "bandwidth-uni-65536-cross-mpi",
                                         "rate-8-node-mpi", "latency-8-node-ucx",
                                         "bandwidth-uni-65536-cross-ucx", "bandwidth-bi-13-node-ucx",
                                         "rate-8-cross-ucx", "bandwidth-put-65536-node-ucx",
                                         "bandwidth-get-65536-node-ucx", "bandwidth-put-65536-cross-ucx",
                                         "bandwidth-get-65536-cross-ucx"));

std::string metric_of(const std::string& name) {
  return name.starts_with("latency") ? "latency" : name.starts_with("rate") ? "message_rate" : "bandwidth";
}

TEST_P(P2pModeTest, MeasuresEveryLinkInBothDirections) {
  const std::string name = GetParam();
  const bool cross = name.find("cross") != std::string::npos;
  P2pSuite suite;
  SuiteRig rig(suite, cross ? 2 : 1);
  rig.option("p2p.sizes", "13,65536");
  const bool ucx = name.ends_with("ucx");
  if (ucx && UcxCommunicator::version().empty()) GTEST_SKIP() << "built without UCX";
  // Such a case takes four seconds on eight ranks; how these are paired is seen in MPI's cases.
  if (ucx && !cross && rig.size() > 4) GTEST_SKIP() << "more than four ranks";
  if (ucx) rig.option("p2p.transport", "mpi,ucx");
  rig.option("p2p.modes", "latency,rate,uni,bi,put,get");
  if (!rig.planned(name).not_applicable.empty()) GTEST_SKIP() << rig.planned(name).not_applicable;
  const CaseRecord record = rig.run(name);
  EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
  expect_sound_rows(record, metric_of(name), rig.entities().device_of_rank(rig.rank()));
  const Case planned = rig.planned(name);
  const double batch =
      planned.parameters.at("repetitions").get<double>() * planned.parameters.at("bytes").get<double>();
  for (const auto& row : record.rows_) {
    const double own_batch = row.values.at("repetitions").front() * row.values.at("message_bytes").front();
    EXPECT_LE(own_batch, batch) << "what the pair could end in its share of the time";
    const double least = own_batch * static_cast<double>(row.t.size());
    ASSERT_EQ(row.values.at("payload").size(), 1u);
    if (name.find("-get-") != std::string::npos)
      EXPECT_GT(row.values.at("payload").front(), 0) << "what the other one read here";
    else if (name.find("-uni-") != std::string::npos || name.find("-put-") != std::string::npos ||
             name.starts_with("rate")) {
      EXPECT_GE(row.values.at("payload").front(), least) << "what was timed";
      EXPECT_LE(row.values.at("payload").front(), least + 3 * batch)
          << "and the probes before it, the last of which warms up";
    } else
      EXPECT_GT(row.values.at("payload").front(), least) << "as the follower, too";
  }
  const double links = rig.total(static_cast<double>(record.rows_.size()));
  EXPECT_EQ(links, static_cast<double>(rig.planned(name).entities));
  if (!cross) {
    EXPECT_EQ(links, rig.size() * (rig.size() - 1));
  }
  if (ucx) {
    const std::string path = record.parameters_.at("path");
    EXPECT_NE(path.find('/'), std::string::npos) << path;
    EXPECT_EQ(path.find("requested"), std::string::npos) << path;
  }
}

/// The pair is in no scheduled round.
TEST(P2pSweep, ASlowPairThatIsNotScheduledIsMeasured) {
  P2pSuite suite;
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 4) GTEST_SKIP() << "fewer than four nodes";
  SuiteRig rig(suite, ranks, Level::standard);
  rig.option("p2p.sizes", "65536");
  rig.option("p2p.modes", "uni");
  rig.option("p2p.scopes", "cross");
  rig.option("p2p.transport", "mpi");
  rig.option("p2p.links", std::to_string(ranks));
  const std::string name = "bandwidth-uni-65536-cross-mpi";
  const Case planned = rig.planned(name);
  ASSERT_EQ(planned.entities, ranks - ranks % 2) << "one round";
  std::vector<int> partners(static_cast<std::size_t>(ranks));
  const CaseRecord healthy = rig.run(planned, 60, planned.seconds);
  ASSERT_EQ(healthy.state_, CaseState::pass) << healthy.reason_;
  EXPECT_EQ(healthy.parameters_.at("swept_rounds"), ranks - 2 + ranks % 2);
  const int mine = healthy.rows_.empty()
                       ? -1
                       : rank_for(healthy.rows_.front().destination, rig.topology(), rig.entities());
  rig.world().all_gather(&mine, partners.data(), sizeof mine);
  // The rows of a rank begin with its partner of the scheduled round. Rank 1 answers another one late.
  int late = 2;
  while (late == partners[1] || late == 1) ++late;
  rig.corruption() = {.rank = 1, .tag = workload::ack_tag, .times = 0, .slow_peer = late, .delay_s = 0.1};
  const CaseRecord record = rig.run(planned, 60, planned.seconds);
  ASSERT_EQ(record.state_, CaseState::pass) << record.reason_;
  const auto measured = [&](int a, int b) {
    const int from = rig.entities().device_of_rank(a), to = rig.entities().device_of_rank(b);
    for (const auto& row : record.rows_)
      if (row.source == from && row.destination == to) return !row.values.at("bandwidth").empty();
    return false;
  };
  if (rig.rank() == 1) {
    EXPECT_TRUE(measured(1, late));
  }
  if (rig.rank() == late) {
    EXPECT_TRUE(measured(late, 1));
  }
}

/// What MPI carries: that is where the rig corrupts.
class P2pFlippedBitTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Cases, P2pFlippedBitTest,
                         testing::Values("latency-8-node-mpi", "bandwidth-uni-65536-node-mpi",
                                         "bandwidth-bi-65536-node-mpi", "bandwidth-bi-13-node-mpi",
                                         "latency-8-cross-mpi", "bandwidth-uni-65536-cross-mpi",
                                         "rate-8-node-mpi"));

TEST_P(P2pFlippedBitTest, FailsTheCaseAndNamesTheWord) {
  const std::string name = GetParam();
  const bool eight_bytes = name.starts_with("latency") || name.starts_with("rate");
  P2pSuite suite;
  SuiteRig rig(suite, name.find("cross") != std::string::npos ? 2 : 1);
  rig.option("p2p.sizes", "13,65536");
  rig.option("p2p.modes", "latency,rate,uni,bi");
  if (!rig.planned(name).not_applicable.empty()) GTEST_SKIP() << rig.planned(name).not_applicable;
  const bool small = eight_bytes || name.find("-13-") != std::string::npos;
  rig.corruption() = {0, payload_tag, 0, 25, small ? 5u : 4099u};
  const CaseRecord record = rig.run(name);
  EXPECT_EQ(rig.corruption().hits, rig.rank() == 0 ? 1 : 0);
  if (rig.rank() != 0) {
    EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
    return;
  }
  EXPECT_EQ(record.state_, CaseState::fail);
  EXPECT_EQ(record.miscompares(), 1u);
  ASSERT_EQ(record.records_.size(), 1u);
  const auto& bad = record.records_.front();
  EXPECT_EQ(bad.entity, rig.entities().device_of_rank(0));
  EXPECT_EQ(bad.index, small ? 0u : 4096u / 8);
  EXPECT_EQ(bad.expected ^ bad.actual, 0x10ULL << (8 * (small ? 5 : 3)));
  EXPECT_EQ(bad.reread, bad.actual);
}

/// Flips one bit of the third thing written or read, on its way.
class Flipping final : public RemoteMemory {
 public:
  explicit Flipping(RemoteMemory& inner) : inner_(inner) {}
  void put(const void* data, std::size_t bytes, int peer, std::size_t offset) override {
    if (++count_ != 3) return inner_.put(data, bytes, peer, offset);
    wrong_.assign(static_cast<const std::byte*>(data), static_cast<const std::byte*>(data) + bytes);
    wrong_[100] ^= std::byte{8};
    inner_.put(wrong_.data(), bytes, peer, offset);
  }
  void get(void* data, std::size_t bytes, int peer, std::size_t offset) override {
    inner_.get(data, bytes, peer, offset);
    if (++count_ == 3) read_ = static_cast<std::byte*>(data);
  }
  void complete(int peer) override {
    inner_.complete(peer);
    if (read_ != nullptr) std::exchange(read_, nullptr)[100] ^= std::byte{8};
  }

 private:
  RemoteMemory& inner_;
  std::vector<std::byte> wrong_;
  std::byte* read_ = nullptr;
  int count_ = 0;
};

TEST(OneSided, AWrongByteIsFoundWhereItArrived) {
  if (UcxCommunicator::version().empty()) GTEST_SKIP() << "built without UCX";
  const auto world = mpi::duplicate_world();
  const auto pair = world->split(world->rank() < 2 ? 0 : -1, world->rank());
  if (world->size() < 2 || pair == nullptr) return;
  for (const workload::Mode mode : {workload::Mode::put, workload::Mode::get}) {
    workload::Shape shape;
    shape.mode = mode;
    shape.bytes = 4096;
    std::vector<std::byte> arena(shape.arena_bytes());
    const int peer = 1 - world->rank();
    const auto ucx =
        UcxCommunicator::make(*world, *pair, {"", "", true, nullptr, true, std::vector<int>{peer, peer}});
    ASSERT_EQ(ucx->connect(std::span(&peer, 1)), "");
    RemoteMemory& remote = ucx->expose(*pair, arena);
    Flipping flipping(remote);
    workload::Exchange exchange(*ucx, arena, 7, shape, {}, world->rank() == 0 ? &flipping : &remote);
    workload::Limits limits;
    limits.deadline_s = now_s() + 60;
    exchange.run(peer, world->rank() == 0, limits);
    const bool here = world->rank() == (mode == workload::Mode::put ? 1 : 0);
    ASSERT_EQ(exchange.wrong().size(), here ? 1U : 0U) << world->rank();
    if (here) {
      EXPECT_EQ(exchange.wrong().front().byte_index, 96U);
      EXPECT_EQ(exchange.wrong().front().expected ^ exchange.wrong().front().actual, 8ULL << 32);
    }
    pair->barrier();
  }
}

TEST(Exchange, ABatchThatOverranIsNotTheSampleOfASmallerOne) {
  // Each message takes 10 ms: four keep to the time, sixteen overrun it, and four are measured with.
  const auto world = mpi::duplicate_world();
  const auto pair = world->split(world->rank() < 2 ? 0 : -1, world->rank());
  if (world->size() < 2 || pair == nullptr) return;
  const double message_s = 0.01;
  workload::Shape shape;
  shape.mode = workload::Mode::uni;
  shape.bytes = 4096;
  std::vector<std::byte> arena(shape.arena_bytes());
  std::size_t timed = 0;
  const auto slow = [&](double begin_s, std::uint64_t repetitions, bool warmup) {
    timed += warmup ? 0 : 1;
    while (now_s() < begin_s + message_s * static_cast<double>(repetitions)) {
    }
    return 0.0;
  };
  workload::Exchange exchange(*pair, arena, 7, shape, slow);
  workload::Limits limits;
  limits.seconds = 0.2;
  limits.samples = 2;
  limits.blocks = 1;
  limits.deadline_s = now_s() + 60;
  const auto series = exchange.run(1 - world->rank(), world->rank() == 0, limits);
  ASSERT_FALSE(series.batch_s.empty());
  const double batch_s = message_s * static_cast<double>(series.batch.repetitions);
  double longest = 0;
  for (const double seconds : series.batch_s) {
    EXPECT_GE(seconds, batch_s);
    longest = std::max(longest, seconds / batch_s);
  }
  // Both ranks see each batch that either leads. A sample that is not among them was a step on the way, of
  // four times as many messages, unless it is the first one.
  const bool first_step = series.batch.bytes < shape.bytes;
  const double known = pair->max(first_step ? 1.0 : 0.0);
  const double mine = static_cast<double>(series.batch_s.size());
  const double both = pair->max(mine) - pair->max(-mine);
  if (known == 0) {
    EXPECT_TRUE(static_cast<double>(timed) == both || longest < 3)
        << timed << " timed, " << both << " samples, " << longest;
  }
  pair->barrier();
}

TEST(P2pSuite, AnIsolatedSeriesHasOneRepetition) {
  P2pSuite suite;
  SuiteRig rig(suite, 1, Level::quick);
  const Case c = rig.planned("latency-8-node-mpi-isolated");
  EXPECT_EQ(c.parameters.at("repetitions"), 1);
  if (!c.not_applicable.empty()) GTEST_SKIP() << c.not_applicable;
  const CaseRecord record = rig.run(c.name);
  EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
  expect_sound_rows(record, "latency", rig.entities().device_of_rank(rig.rank()));
}

}  // namespace
}  // namespace assay
