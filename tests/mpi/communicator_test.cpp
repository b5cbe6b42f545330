// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <mpi.h>

#include <bit>
#include <numeric>
#include <set>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "transport/mpi_communicator.hpp"
#include "transport/mpi_detail.hpp"
#include "transport/renumbered_communicator.hpp"
#include "transport/ucx_communicator.hpp"

namespace {
int cancelled = 0, freed = 0;
std::set<int> sources;  // of messages that were received
}  // namespace

// Counted by way of MPI's profiling interface.
extern "C" int MPI_Cancel(MPI_Request* request) {
  ++cancelled;
  return PMPI_Cancel(request);
}
extern "C" int MPI_Request_free(MPI_Request* request) {
  ++freed;
  return PMPI_Request_free(request);
}
extern "C" int MPI_Recv(void* data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                        MPI_Status* status) {
  sources.insert(source);
  return PMPI_Recv(data, count, type, source, tag, comm, status);
}

namespace assay {
namespace {

std::vector<unsigned char> bytes_of(int source, int destination, std::size_t n) {
  std::vector<unsigned char> data(n);
  const auto key = mix64(static_cast<std::uint64_t>(source), static_cast<std::uint64_t>(destination));
  for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<unsigned char>(mix64(key, i));
  return data;
}

struct Kind {
  const char* transport;
  std::size_t limit;
};

/// Over MPI once with the ordinary limit and once with one so small that every large-message path is taken.
class CommunicatorTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    comm = mpi::duplicate_world(GetParam().limit);
    if (GetParam().transport == std::string("mpi")) return;
    if (UcxCommunicator::version().empty()) GTEST_SKIP() << "built without UCX";
    below = std::move(comm);
    comm = UcxCommunicator::make(*below, *below, {"", "", true, nullptr});
  }
  int next() const { return (comm->rank() + 1) % comm->size(); }
  int previous() const { return (comm->rank() + comm->size() - 1) % comm->size(); }
  std::unique_ptr<Communicator> below, comm;
};
INSTANTIATE_TEST_SUITE_P(Kinds, CommunicatorTest,
                         testing::Values(Kind{"mpi", mpi::count_limit}, Kind{"mpi", 1000},
                                         Kind{"ucx", mpi::count_limit}));

constexpr std::size_t sizes[] = {0, 1, 7, 8, 999, 1000, 1001, 65536, 300001};

TEST_P(CommunicatorTest, SendsAndReceivesEveryByte) {
  if (comm->size() < 2) GTEST_SKIP() << "one rank";
  const int me = comm->rank();
  const int peer = me ^ 1;
  for (const std::size_t n : sizes) {
    if (peer >= comm->size()) continue;
    const auto out = bytes_of(me, peer, n);
    std::vector<unsigned char> in(n + 1, 0xee);
    if (me < peer) {
      comm->send(out.data(), n, peer, 5);
      comm->recv(in.data(), n, peer, 6);
    } else {
      comm->recv(in.data(), n, peer, 5);
      comm->send(out.data(), n, peer, 6);
    }
    auto expected = bytes_of(peer, me, n);
    expected.push_back(0xee);
    EXPECT_EQ(in, expected) << n << " bytes";
  }
}

TEST_P(CommunicatorTest, ManyRequestsCompleteInOneWait) {
  constexpr std::size_t messages = 150;  // more than wait_all takes at once
  const int me = comm->rank();
  for (const std::size_t n : {std::size_t{0}, std::size_t{33}, std::size_t{20011}}) {
    const auto out = bytes_of(me, next(), n * messages);
    std::vector<unsigned char> in(n * messages);
    std::vector<Request> requests(2 * messages + 3);  // the last three are never started
    for (std::size_t i = 0; i < messages; ++i) {
      comm->irecv(in.data() + i * n, n, previous(), static_cast<int>(i), requests[i]);
      comm->isend(out.data() + i * n, n, next(), static_cast<int>(i), requests[messages + i]);
    }
    comm->wait_all(requests);
    comm->wait_all(requests);  // nothing is left to wait for
    EXPECT_EQ(in, bytes_of(previous(), me, n * messages));
  }
  // Not every transport goes on with what was sent while its rank is elsewhere.
  const char here = 1;
  char answered = 0;
  Request answer;
  comm->irecv(&answered, 1, next(), 999, answer);
  comm->send(&here, 1, previous(), 999);
  comm->wait_all({&answer, 1});
}

TEST_P(CommunicatorTest, AllReduceIsRightForEveryTypeAndOperation) {
  const int n = comm->size();
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{999}, std::size_t{2500}, std::size_t{70000}}) {
    std::vector<float> f(count);
    std::vector<double> d(count);
    std::vector<std::int32_t> i32(count);
    std::vector<std::uint64_t> u(count, std::uint64_t{1} << comm->rank());
    for (std::size_t i = 0; i < count; ++i) {
      f[i] = static_cast<float>(comm->rank()) + static_cast<float>(i % 1000);
      d[i] = static_cast<double>(i) * (comm->rank() + 1);
      i32[i] = static_cast<std::int32_t>(i) - comm->rank();
    }
    std::vector<float> sum(count);
    std::vector<double> least(count);
    comm->all_reduce(f.data(), sum.data(), count, DataType::fp32, ReduceOp::sum);
    comm->all_reduce(d.data(), least.data(), count, DataType::fp64, ReduceOp::min);
    comm->all_reduce(i32.data(), i32.data(), count, DataType::int32, ReduceOp::max);  // in place
    comm->all_reduce(u.data(), u.data(), count, DataType::uint64, ReduceOp::bit_or);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(sum[i], static_cast<float>(n * (n - 1) / 2 + n * static_cast<int>(i % 1000)));
      ASSERT_EQ(least[i], static_cast<double>(i));
      ASSERT_EQ(i32[i], static_cast<std::int32_t>(i));
      ASSERT_EQ(u[i], (std::uint64_t{1} << n) - 1);
    }
  }
  std::uint64_t mine = comm->rank() == 0 ? 0b101 : 0b111, all = 0;
  comm->all_reduce(&mine, &all, 1, DataType::uint64, ReduceOp::bit_and);
  EXPECT_EQ(all, 0b101u);
  EXPECT_EQ(comm->max(comm->rank()), n - 1);
  EXPECT_EQ(comm->min(comm->rank() + 1), 1);
  EXPECT_EQ(comm->sum(1), n);
}

TEST_P(CommunicatorTest, ReduceScatterGivesEachRankItsBlock) {
  const auto n = static_cast<std::size_t>(comm->size());
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{2501}}) {
    std::vector<std::int32_t> in(count * n), out(count, -1);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::int32_t>(i) * (comm->rank() + 1);
    comm->reduce_scatter(in.data(), out.data(), count, DataType::int32, ReduceOp::sum);
    const auto total = static_cast<std::int32_t>(n * (n + 1) / 2);
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(out[i],
                static_cast<std::int32_t>(static_cast<std::size_t>(comm->rank()) * count + i) * total);
  }
}

TEST_P(CommunicatorTest, StartedReduceScattersGiveWhatTheBlockingOneGives) {
  const auto n = static_cast<std::size_t>(comm->size());
  const std::size_t counts[] = {1, 1000, 2501};
  std::vector<std::vector<float>> in, out, blocking;
  std::vector<Request> requests(std::size(counts));
  for (const std::size_t count : counts) {
    out.emplace_back(count, -1.0f);
    blocking.emplace_back(count);
    for (std::size_t i = 0; i < count * n; ++i)
      (i == 0 ? in.emplace_back(count * n) : in.back())[i] =
          static_cast<float>(static_cast<int>(i % 1000) * (comm->rank() + 1));
  }
  for (std::size_t k = 0; k < requests.size(); ++k)
    comm->ireduce_scatter(in[k].data(), out[k].data(), counts[k], DataType::fp32, ReduceOp::sum, requests[k]);
  while (!comm->test_all(requests)) {
  }
  for (std::size_t k = 0; k < requests.size(); ++k) {
    comm->reduce_scatter(in[k].data(), blocking[k].data(), counts[k], DataType::fp32, ReduceOp::sum);
    EXPECT_EQ(out[k], blocking[k]) << counts[k];
  }
}

TEST_P(CommunicatorTest, AllGatherAllToAllAndBroadcastPlaceEveryByte) {
  const int me = comm->rank(), n = comm->size();
  for (const std::size_t bytes : sizes) {
    const auto mine = bytes_of(me, 0, bytes);
    std::vector<unsigned char> gathered(bytes * static_cast<std::size_t>(n)), expected, sent,
        received(gathered.size()), exchanged;
    comm->all_gather(mine.data(), gathered.data(), bytes);
    for (int rank = 0; rank < n; ++rank) {
      const auto part = bytes_of(rank, 0, bytes), to = bytes_of(me, 100 + rank, bytes),
                 from = bytes_of(rank, 100 + me, bytes);
      expected.insert(expected.end(), part.begin(), part.end());
      sent.insert(sent.end(), to.begin(), to.end());
      exchanged.insert(exchanged.end(), from.begin(), from.end());
    }
    EXPECT_EQ(gathered, expected);
    comm->all_to_all(sent.data(), received.data(), bytes);
    EXPECT_EQ(received, exchanged);
    for (const int root : {0, n - 1}) {
      auto data = me == root ? bytes_of(root, 7, bytes) : std::vector<unsigned char>(bytes);
      comm->broadcast(data.data(), bytes, root);
      EXPECT_EQ(data, bytes_of(root, 7, bytes));
    }
  }
}

TEST_P(CommunicatorTest, SplitMakesGroupsInKeyOrder) {
  const int me = comm->rank();
  const auto half = comm->split(me % 2, -me);
  ASSERT_NE(half, nullptr);
  EXPECT_EQ(half->size(), me % 2 == 0 ? (comm->size() + 1) / 2 : comm->size() / 2);
  EXPECT_EQ(half->rank(), half->size() - 1 - me / 2);  // the negative key turns the order round
  EXPECT_EQ(half->max(me % 2), me % 2);
  const auto none = comm->split(me == 0 ? 3 : -1, 0);
  EXPECT_EQ(none != nullptr, me == 0);
}

TEST_P(CommunicatorTest, TextsOfDifferentLengthsArrive) {
  const auto text_of = [](int rank) {
    return rank % 3 == 1
               ? std::string()
               : std::string(static_cast<std::size_t>(rank) * 40000 + 3, static_cast<char>('a' + rank));
  };
  const int n = comm->size(), me = comm->rank(), root = n - 1;
  const auto at_root = comm->gather_text(text_of(me), root);
  const auto everywhere = comm->all_gather_text(text_of(me));
  ASSERT_EQ(at_root.size(), me == root ? static_cast<std::size_t>(n) : 0u);
  ASSERT_EQ(everywhere.size(), static_cast<std::size_t>(n));
  for (int rank = 0; rank < n; ++rank) {
    if (me == root) {
      EXPECT_EQ(at_root[static_cast<std::size_t>(rank)], text_of(rank));
    }
    EXPECT_EQ(everywhere[static_cast<std::size_t>(rank)], text_of(rank));
  }
  EXPECT_EQ(comm->broadcast_text(me == root ? "from the last" : "other", root), "from the last");
  EXPECT_EQ(comm->broadcast_text("", 0), "");
}

/// Over TCP each rank that a rank hears from directly takes an open file.
TEST(Texts, ComeFromFewRanks) {
  const auto comm = mpi::duplicate_world(mpi::count_limit);
  sources.clear();
  comm->gather_text("mine", 0);
  EXPECT_LE(sources.size(), std::bit_width(static_cast<unsigned>(comm->size() - 1)));
}

TEST_P(CommunicatorTest, BarriersHoldUntilTheLastRankArrives) {
  for (const bool quiet : {false, true}) {
    comm->barrier();
    const double begin = now_s();
    if (comm->rank() == comm->size() - 1)
      while (now_s() - begin < 0.05) {
      }
    const double entered = now_s();
    if (quiet)
      comm->quiet_barrier();
    else
      comm->barrier();
    const double left = now_s();
    // Tests run on one machine, whose ranks share a clock: nobody leaves before the last one entered.
    EXPECT_GE(comm->min(left), comm->max(entered));
  }
}

TEST_P(CommunicatorTest, ErrorsNameTheCall) {
  char byte = 0;
  try {
    comm->send(&byte, 1, comm->size() + 5, 1);
    FAIL() << "a send to a rank that does not exist went through";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::mpi);
    const char* call = GetParam().transport == std::string("mpi") ? "MPI_Send" : "UCX";
    EXPECT_NE(std::string(e.what()).find(call), std::string::npos) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
  }
  double value = 1;
  EXPECT_THROW(comm->all_reduce(&value, &value, 1, DataType::fp64, ReduceOp::bit_and), Error);
}

TEST(LaunchRanks, AreWhatHeartbeatsNamePeersBy) {
  const auto world = mpi::duplicate_world();
  const auto reversed = world->split(0, -world->rank());
  const int last = world->size() - 1;
  EXPECT_EQ(reversed->launch_rank(0), last);
  EXPECT_EQ(reversed->launch_rank(last + 1), supervisor::no_peer);
  RenumberedCommunicator renumbered(*reversed, *world);
  EXPECT_EQ(renumbered.launch_rank(0), last);
  if (last == 0 || UcxCommunicator::version().empty()) return;
  supervisor::Heartbeat heartbeat;
  const auto ucx = UcxCommunicator::make(*reversed, *reversed, {"", "", true, &heartbeat});
  char word = 'a';
  if (ucx->rank() == 0) ucx->recv(&word, 1, 1, 3);
  if (ucx->rank() == 1) ucx->send(&word, 1, 0, 3);
  if (ucx->rank() < 2) {
    EXPECT_EQ(heartbeat.peer, ucx->rank() == 0 ? last - 1 : last);
  }
  world->barrier();
}

TEST(MpiCollectives, AnAbandonedOneIsNeitherCancelledNorFreed) {
  static std::vector<double> sums(1000);  // its buffer must remain
  sums.assign(sums.size(), 1.0);
  const auto comm = mpi::duplicate_world();
  const int last = comm->size() - 1, me = comm->rank();
  Request request;
  char abandoned = 1;
  cancelled = freed = 0;
  if (me == last && me > 0) comm->recv(&abandoned, 1, 0, 1);
  comm->iall_reduce(sums.data(), sums.size(), DataType::fp64, ReduceOp::sum, request);
  if (me == 0) {
    comm->abandon({&request, 1});
    EXPECT_EQ(cancelled + freed, 0);
    comm->irecv(&abandoned, 1, 0, 2, request);
    comm->abandon({&request, 1});
    EXPECT_EQ(cancelled, 1);
    EXPECT_EQ(freed, 1);
    if (last > 0) comm->send(&abandoned, 1, last, 1);
  } else {
    comm->wait_all({&request, 1});
    EXPECT_EQ(sums, std::vector<double>(sums.size(), comm->size()));
  }
  comm->barrier();  // the first rank must move on for the others
}

TEST(MpiVersions, NameLibraryAndPath) {
  const auto comm = mpi::duplicate_world();
  const auto versions = mpi_versions(comm.get());
  EXPECT_FALSE(versions.at("mpi").empty());
  EXPECT_EQ(mpi_versions().count("mpi.path"), 0u);
  EXPECT_EQ(versions.at("mpi.path"), comm->path());
  EXPECT_FALSE(comm->path().empty());
  EXPECT_EQ(comm->transport(), "mpi");
  if (versions.at("mpi").rfind("Open MPI", 0) == 0) {
    EXPECT_NE(comm->path(), "mpi");
  }
}

}  // namespace
}  // namespace assay
