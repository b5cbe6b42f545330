// SPDX-License-Identifier: Apache-2.0
// Both engines move the same bytes, and say what failed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "measure/cold.hpp"
#include "suites/storage/checkpoint_case.hpp"
#include "suites/storage/cufile.hpp"
#include "suites/storage/engine.hpp"
#include "suites/storage/evidence.hpp"
#include "suites/storage/histogram.hpp"
#include "suites/storage/random_case.hpp"
#include "suites/storage/refused.hpp"
#include "suites/storage/slow_clients.hpp"
#include "suites/storage/storage_plan.hpp"
#include "suites/storage/transfer.hpp"
#include "suites/storage/word.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay::storage {
namespace {

class EachEngine : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string why;
    engine_ = std::string(GetParam()) == "threads" ? make_thread_engine(4) : make_uring_engine(4, why);
    const bool built = why.find("not in this build") == std::string::npos;  // that is no want of a privilege
    if (!engine_) GTEST_SKIP() << (built ? "no privilege: " : "") << why;
    open_file();
  }
  void open_file() {
    std::string name = (std::filesystem::temp_directory_path() / "assay-engine-XXXXXX").string();
    fd_ = Descriptor(::mkstemp(name.data()));
    ::unlink(name.c_str());
    ASSERT_TRUE(static_cast<bool>(fd_));
  }
  std::vector<Request> requests(const Aligned& memory, std::size_t bytes) const {
    std::vector<Request> out;
    for (std::size_t at = 0; at < memory.bytes().size(); at += bytes)
      out.push_back({fd_.get(), at, memory.bytes().data() + at, static_cast<std::uint32_t>(bytes), 0, 0});
    return out;
  }
  std::unique_ptr<Engine> engine_;
  Descriptor fd_;
};

TEST_P(EachEngine, WhatIsWrittenIsRead) {
  Aligned out(1 << 20), in(1 << 20);
  fill(5, {1, 1, 0}, out.words());
  for (const bool use : {false, true}) {
    if (use) engine_->use_memory(in.bytes());
    auto writes = requests(out, 16384), reads = requests(in, 16384);
    engine_->run(true, writes);
    std::fill(in.words().begin(), in.words().end(), 0);
    engine_->run(false, reads);
    for (const Request& r : reads) {
      EXPECT_EQ(r.result, 16384);
      EXPECT_GT(r.latency_s, 0);
      EXPECT_LT(r.latency_s, 60);
    }
    EXPECT_TRUE(std::equal(in.words().begin(), in.words().end(), out.words().begin()));
  }
}

TEST_P(EachEngine, ErrorsAndShortReadsAreSaid) {
  Aligned memory(65536);
  auto some = requests(memory, 16384);
  some.resize(2);
  engine_->run(true, some);
  ASSERT_EQ(::ftruncate(fd_.get(), 16384 + 512), 0);
  auto all = requests(memory, 16384);
  all[3].fd = -1;
  engine_->run(false, all);
  EXPECT_EQ(all[0].result, 16384);
  EXPECT_EQ(all[1].result, 512);
  EXPECT_EQ(all[2].result, 0);
  EXPECT_EQ(all[3].result, -EBADF);
}

TEST_P(EachEngine, AWriteThatEndsEarlyGoesOnToItsReason) {
  Aligned memory(65536);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit less{16384 + 4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &less), 0);
  auto writes = requests(memory, 16384);
  writes.resize(2);
  engine_->run(true, writes);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_EQ(writes[0].result, 16384);
  EXPECT_EQ(writes[1].result, -EFBIG) << "not the 4096 bytes that there was room for";
}

TEST_P(EachEngine, ARestIsMovedFromWhereTheFirstTransferEnded) {
  Aligned out(65536), in(65536);
  fill(5, {1, 1, 0}, out.words());
  const Request write{fd_.get(), 0, out.bytes().data(), 65536, 0, 0},
      read{fd_.get(), 0, in.bytes().data(), 65536, 0, 0};
  ASSERT_EQ(::pwrite(fd_.get(), out.bytes().data(), 10000, 0), 10000);
  EXPECT_EQ(move_rest(true, write, 10000), 65536);
  EXPECT_EQ(move_rest(false, read, -EINTR), 65536);
  EXPECT_TRUE(std::equal(in.words().begin(), in.words().end(), out.words().begin()));
  ASSERT_EQ(::ftruncate(fd_.get(), 50000), 0);
  EXPECT_EQ(move_rest(false, read, 20000), 50000) << "the end of the file";
}

TEST_P(EachEngine, AFileIsNotTakenForOneThatHadItsNumberBefore) {
  Aligned memory(65536);
  const int number = fd_.get();
  for (const std::uint64_t seed : {5, 6}) {
    fill(seed, {1, 1, 0}, memory.words());
    auto writes = requests(memory, 16384);
    engine_->run(true, writes);
    std::uint64_t first = 0;
    ASSERT_EQ(::pread(fd_.get(), &first, sizeof first, 0), static_cast<ssize_t>(sizeof first));
    EXPECT_EQ(first, memory.words()[0]);
    fd_ = Descriptor();
    open_file();
    ASSERT_EQ(fd_.get(), number) << "the lowest number that is free";
  }
}

INSTANTIATE_TEST_SUITE_P(StorageEngine, EachEngine, testing::Values("threads", "io_uring"),
                         [](const auto& each) { return std::string(each.param); });

TEST(StorageScattered, EachNumberComesOnceAndOutOfOrder) {
  for (const int bits : {1, 2, 7, 10, 16}) {
    std::set<std::uint64_t> seen;
    std::uint64_t next = 0, steps = 0;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << bits; ++i) {
      const std::uint64_t x = scattered(i, bits, 99);
      steps += x == next ? 1 : 0;
      next = x + 1;
      ASSERT_LT(x, std::uint64_t{1} << bits);
      ASSERT_TRUE(seen.insert(x).second) << "bits " << bits << ", number " << i;
    }
    EXPECT_LE(steps, std::uint64_t{1} << std::max(bits - 5, bits > 2 ? 2 : bits)) << "sequential";
  }
}

TEST(StorageHistogram, QuantilesAreRightToItsBuckets) {
  LatencyHistogram histogram;
  EXPECT_TRUE(std::isnan(histogram.quantile(0.5)));
  for (int i = 1; i <= 10000; ++i) histogram.add(1e-6 * i);
  for (const double q : {0.001, 0.5, 0.99, 0.999, 1.0}) {
    EXPECT_GE(histogram.quantile(q), 0.9999 * 1e-2 * q) << q;
    EXPECT_LE(histogram.quantile(q), 1.017 * 1e-2 * q) << q;
  }
  histogram.add(0);
  histogram.add(1e9);
  EXPECT_EQ(histogram.count(), 10002u);
  const auto octaves = histogram.by_octave();
  EXPECT_EQ(std::accumulate(octaves.begin(), octaves.end(), std::uint64_t{0}), 10002u);
  EXPECT_EQ(octaves.front(), 1u);
  EXPECT_EQ(octaves.back(), 1u);
}

/// One of two ranks, each on a thread of its own.
class OneOfTwo final : public fakes::SelfCommunicator {
 public:
  struct Place {
    std::barrier<> both{2};
    double values[2] = {};
  };
  OneOfTwo(Place& place, int rank) : place_(place), rank_(rank) {}
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return 2; }
  void all_reduce(const void* in, void* out, std::size_t, DataType, ReduceOp op) override {
    std::memcpy(&place_.values[rank_], in, sizeof(double));
    place_.both.arrive_and_wait();
    const double a = place_.values[0], b = place_.values[1];
    const double result = op == ReduceOp::sum ? a + b : op == ReduceOp::max ? std::max(a, b) : std::min(a, b);
    place_.both.arrive_and_wait();
    std::memcpy(out, &result, sizeof result);
  }

 private:
  Place& place_;
  int rank_;
};

TEST(StorageCold, WhoLetsAnotherNodeMoveItsDataIsNotIdle) {
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  for (const double other : {0.0, unknown}) {
    OneOfTwo::Place place;
    Evidence evidence[2];
    std::vector<std::jthread> ranks;
    for (const int rank : {0, 1})
      ranks.emplace_back([&, rank] {
        OneOfTwo group(place, rank);
        evidence[rank].asked = 100;
        evidence[rank].moved = evidence[rank].device_moved = rank == 0 ? 200 : 0;
        if (rank == 1) evidence[rank].device_moved = other;
        evidence[rank].share_moved(group, true);
      });
    ranks.clear();
    for (const Evidence& e : evidence) {
      EXPECT_TRUE(e.cold());
      EXPECT_EQ(e.moved, 100);
      EXPECT_EQ(std::isnan(e.device_moved), std::isnan(other));
    }
  }
}

TEST(StorageCold, OnePathThatDoesNotTellIsEnough) {
  EXPECT_FALSE(std::isnan(StorageMeter(true, std::vector<std::string>{"/", "/proc"}).moved()));
  EXPECT_TRUE(std::isnan(StorageMeter(true, std::vector<std::string>{"/", "/nowhere"}).moved()));
}

TEST(StorageCheckpoint, ItsStateFitsTheMemoryThatIsLeft) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  EXPECT_EQ(state_limit(64 * gib, 8), 2 * gib);
  EXPECT_EQ(state_limit(51 * gib, 128), 51 * gib / 512);
}

TEST(StorageCold, IdleDisksDisproveIt) {
  Evidence evidence;
  evidence.asked = evidence.moved = 100;
  EXPECT_TRUE(evidence.cold()) << "disks that do not count prove nothing";
  evidence.device_moved = 94;
  EXPECT_FALSE(evidence.cold());
  Evidence other;  // of a rank that does not count for its node
  other.asked = other.moved = 100;
  evidence.device_moved = 195;
  evidence.add(Evidence::from(other.to_json()));
  EXPECT_TRUE(evidence.cold());
  EXPECT_EQ(Evidence::from(evidence.to_json()).device_moved, 195);
  evidence.device_moved = 1000;
  EXPECT_TRUE(evidence.cold()) << "others use the disks, too";
}

TEST(StorageCold, ResidentPagesAreSeen) {
  std::string name = (std::filesystem::temp_directory_path() / "assay-cold-XXXXXX").string();
  const Descriptor fd(::mkstemp(name.data()));
  ::unlink(name.c_str());
  const std::vector<char> data(1 << 20, 'x');
  ASSERT_EQ(::pwrite(fd.get(), data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
  const auto share = resident_share(fd.get(), 0, data.size());
  ASSERT_TRUE(share.has_value());
  EXPECT_DOUBLE_EQ(*share, 1.0);
}

TEST(BlocksOfSample, AreAsManyAsTheTimeHolds) {
  const std::uint64_t planned = 128;
  const double seconds = 0.15;
  std::uint64_t before = planned;
  for (double block_s = 1e-5; block_s < 1; block_s *= 1.05) {
    const double first_s = 2 * block_s;
    const std::uint64_t blocks = blocks_of_sample(planned, first_s, block_s, seconds);
    const double takes = first_s + block_s * static_cast<double>(blocks - 1);
    EXPECT_TRUE(blocks == 1 || takes <= seconds * 1.001) << block_s;
    EXPECT_TRUE(blocks == planned || takes + 2 * block_s > seconds / 2) << block_s;
    EXPECT_LE(blocks, before) << block_s;
    EXPECT_GE(static_cast<double>(blocks) + 2, 0.9 * static_cast<double>(before)) << block_s << ": no jump";
    before = blocks;
  }
  EXPECT_EQ(before, 1);
  EXPECT_EQ(blocks_of_sample(planned, 0.29, 0.001, seconds), 75) << "an fdatasync that takes long";
  EXPECT_EQ(blocks_of_sample(planned, 5, 0, seconds), planned);
}

TEST(NvidiaFs, BytesAreReadWhereItCounts) {
  const std::string head = "GDS Version: 1.0.0.71\nNVFS statistics(ver: 4.0)\n";
  const std::string counts =
      "Reads                           : n=6 ok=6 err=0 readMiB=12 io_state_err=0\n"
      "Reads                           : Bandwidth(MiB/s)=0 Avg-Latency(usec)=0\n"
      "Sparse Reads                    : n=6 io=0 holes=0 pages=0\n"
      "Writes                          : n=3 ok=3 err=0 writeMiB=3 io_state_err=0 pg-cache=0\n";
  const auto told = parse_nvidia_fs(head + "IO stats: Enabled, peer IO stats: Enabled\n" + counts);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->read, 12.0 * (1 << 20));
  EXPECT_EQ(told->written, 3.0 * (1 << 20));
  EXPECT_FALSE(parse_nvidia_fs(head + "IO stats: Disabled, peer IO stats: Disabled\n" + counts));
  EXPECT_FALSE(parse_nvidia_fs(head + "IO stats: Enabled\nReads : n=0 ok=0\n"));
  EXPECT_FALSE(parse_nvidia_fs(""));
}

TEST(StorageEvidence, TheWayToAGpuIsDirectWhereThatIsProven) {
  Evidence one, two;
  one.asked = two.asked = one.moved = two.moved = 100;
  EXPECT_EQ(one.shown_path(), GpuPath::direct) << "the module is not there";
  one.module_moved = 189;  // of the node, which both are on
  Evidence node = one;
  node.add(two);
  EXPECT_EQ(Evidence::from(node.to_json()).shown_path(), GpuPath::unproven) << "94.5 %";
  node.module_moved = 190;
  EXPECT_EQ(Evidence::from(node.to_json()).shown_path(), GpuPath::direct);
  node.add(Evidence::from(Evidence().to_json()));
  EXPECT_EQ(node.module_moved, 190);
  two.gpu_path = GpuPath::unproven;
  node.add(two);
  EXPECT_EQ(Evidence::from(node.to_json()).shown_path(), GpuPath::unproven) << "2 of 3 are counted";
  node.module_moved = 300;
  EXPECT_EQ(node.shown_path(), GpuPath::direct) << "the counters prove it";
  two.gpu_path = GpuPath::compat;
  node.add(two);
  EXPECT_EQ(Evidence::from(node.to_json()).shown_path(), GpuPath::compat);
}

TEST(ThreadEngine, AThreadThatCannotWorkIsAnErrorOfTheCaller) {
  std::atomic<int> begun{0};
  ThreadWork work;
  work.move = [](bool, const Request& r) { return std::int64_t{r.bytes}; };
  work.begin = [&] {
    if (++begun == 2) throw Error(ErrorKind::device, "no device");
  };
  const auto engine = make_thread_engine(4, work);
  std::vector<Request> requests(64);
  EXPECT_THROW(for (int i = 0; i < 3; ++i) engine->run(true, requests), Error);
}

TEST(Cold, FileSystemsThatCountTheirOwnCacheProveNothing) {
  constexpr long zfs = 0x2fc12fc1, ext4 = 0xef53, nfs = 0x6969;
  EXPECT_FALSE(counts_storage_alone(zfs));
  EXPECT_FALSE(counts_storage_alone(0x65735546L)) << "/proc/self/io has no reads of FUSE";
  EXPECT_TRUE(counts_storage_alone(ext4) && counts_storage_alone(nfs));
  EXPECT_FALSE(counts_storage_alone("/nowhere"));
  EXPECT_TRUE(std::isnan(StorageMeter(false, "/nowhere").moved()));
  EXPECT_EQ(StorageMeter(false, std::filesystem::temp_directory_path().string()).moved(), 0);
}

TEST(StorageLayout, FilesAreAsLargeAsTheyMustBeWhereThereIsSpace) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30, any = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(sequential_layout(Level::extended, any, 1).file_bytes(), 8 * gib);
  for (const std::uint64_t least : {20 * gib, 20 * gib + 1}) {
    const Layout layout = sequential_layout(Level::extended, any, 1, least);
    EXPECT_GE(layout.file_bytes(), least);
    EXPECT_LT(layout.file_bytes(), least + layout.chunk_bytes());
  }
  EXPECT_EQ(sequential_layout(Level::extended, 10 * gib, 1, 20 * gib).file_bytes(), 10 * gib);
}

TEST(StorageCold, SharesAreNotRoundedUp) {
  EXPECT_EQ(percent(0.9499), "94.9 %");
  EXPECT_EQ(percent(0.95), "95.0 %");
  EXPECT_EQ(percent(0), "0.0 %");
}

TEST(StorageRefused, WhatMostNodesAreRefusedIsTheServers) {
  const Refusal none{3, -1};
  const auto found = common_reason({{0, EIO}, {0, EIO}, {1, EIO}, {2, ESTALE}, none}, 3);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reason, EIO);
  EXPECT_EQ(found->nodes, 2u);
  EXPECT_FALSE(common_reason({{0, EIO}, {1, EIO}, {2, -1}, none}, 4)) << "half of them";
  EXPECT_FALSE(common_reason({{0, EIO}, {0, EIO}}, 1)) << "one node";
  EXPECT_FALSE(common_reason({{0, EIO}, {1, ESTALE}, {2, ENOSPC}}, 3));
  EXPECT_FALSE(common_reason({none, none}, 2));
}

TEST(StorageCold, ClientsThatNothingCountsAreComparedRoughly) {
  const double none = std::nan("");
  EXPECT_EQ(slow_clients({20, 1, 21, 19}), std::vector<std::size_t>{1});
  EXPECT_EQ(slow_clients({20, 1}), std::vector<std::size_t>{1});
  EXPECT_EQ(slow_clients({20, 7, 21, 60}), std::vector<std::size_t>{}) << "caches explain a factor of three";
  EXPECT_EQ(slow_clients({20, 1, none, 21}), std::vector<std::size_t>{1});
  EXPECT_EQ(slow_clients({1, none, none}), std::vector<std::size_t>{}) << "nobody to compare it with";
  EXPECT_EQ(slow_clients({}), std::vector<std::size_t>{});
}

}  // namespace
}  // namespace assay::storage
