// SPDX-License-Identifier: Apache-2.0
#include "transport/faulty_communicator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::Pair;

/// Messages of one word arrive with the value 7.
class Loopback final : public fakes::SelfCommunicator {
 public:
  std::vector<void*> posted;
  void recv(void* data, std::size_t bytes, int, int) override { deliver(data, bytes); }
  void irecv(void* data, std::size_t, int, int, Request&) override { posted.push_back(data); }
  void wait_all(std::span<Request>) override {
    for (void* data : posted) deliver(data, 8);
    posted.clear();
  }
  std::unique_ptr<Communicator> split(int color, int) override {
    return color < 0 ? nullptr : std::make_unique<Loopback>();
  }

 private:
  static void deliver(void* data, std::size_t bytes) {
    const std::uint64_t seven = 7;
    std::memcpy(data, &seven, std::min<std::size_t>(bytes, 8));
  }
};

class Script final : public MessageFaults {
 public:
  bool drop = false;
  double extra_s = 0;
  std::vector<int> asked, held;
  std::vector<std::pair<std::uint64_t, std::size_t>> seen;

  bool lost(int source) override {
    asked.push_back(source);
    return drop;
  }
  double hold_back_s(int source, double) override {
    held.push_back(source);
    return extra_s;
  }
  void arrived(void* data, std::size_t bytes) override {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    seen.emplace_back(word, bytes);
    static_cast<std::uint64_t*>(data)[0] = 8;
  }
};

struct Faulty : testing::Test {
  Loopback inner;
  Script faults;
  FaultyCommunicator comm{inner, faults, {17}};
  std::uint64_t word = 1, other = 1;
};

TEST_F(Faulty, ChangesPayloadThatArrivedAndNothingElse) {
  comm.recv(&word, 8, 0, payload_tag);
  comm.recv(&other, 8, 0, payload_tag + 1);
  EXPECT_EQ(word, 8u);
  EXPECT_EQ(other, 7u);
  EXPECT_THAT(faults.asked, ElementsAre(17));
  EXPECT_THAT(faults.seen, ElementsAre(Pair(7, 8)));
}

TEST_F(Faulty, ALostMessageLeavesWhatWasThere) {
  faults.drop = true;
  Request request;
  comm.recv(&word, 8, 0, payload_tag);
  comm.irecv(&other, 8, 0, payload_tag, request);
  comm.wait_all({&request, 1});
  EXPECT_EQ(word, 1u);
  EXPECT_EQ(other, 1u);
  EXPECT_TRUE(faults.seen.empty());
}

TEST_F(Faulty, FinishesOnlyWhatWasWaitedFor) {
  Request first, second;
  comm.irecv(&word, 8, 0, payload_tag, first);
  comm.irecv(&other, 8, 0, payload_tag, second);
  comm.wait_all({&second, 1});
  EXPECT_EQ(other, 8u);
  EXPECT_EQ(faults.seen.size(), 1u);
  comm.wait_all({&first, 1});
  EXPECT_EQ(word, 8u);
  EXPECT_EQ(faults.seen.size(), 2u);
}

TEST_F(Faulty, HoldsBackAGroupOfMessagesOnce) {
  faults.extra_s = 0.3;
  Request requests[2];
  comm.irecv(&word, 8, 0, payload_tag, requests[0]);
  comm.irecv(&other, 8, 0, payload_tag, requests[1]);
  const double begin = now_s();
  comm.wait_all(requests);
  const double seconds = now_s() - begin;
  EXPECT_GE(seconds, 0.3);
  EXPECT_LT(seconds, 0.6);
  EXPECT_THAT(faults.held, ElementsAre(17));
}

TEST_F(Faulty, SubgroupsUseTheRanksOfTheJob) {
  EXPECT_EQ(comm.split(-1, 0), nullptr);
  const auto part = comm.split(0, 0);
  part->recv(&word, 8, 0, payload_tag);
  EXPECT_THAT(faults.asked, ElementsAre(17));
}

}  // namespace
}  // namespace assay
