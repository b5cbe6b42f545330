// SPDX-License-Identifier: Apache-2.0
// Shards on a file system, and who makes everybody wait.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "suites/train/checkpoint.hpp"
#include "suites/train/frontier.hpp"

namespace {

double advice_s = 0;  ///< that the kernel takes to let go of pages

}  // namespace

/// In place of the library's own.
extern "C" int posix_fadvise(int fd, off_t offset, off_t bytes, int advice) noexcept {
  ::usleep(static_cast<useconds_t>(1e6 * advice_s));
  return ::syscall(SYS_fadvise64, fd, offset, bytes, advice) == 0 ? 0 : errno;
}

namespace assay::train {
namespace {

namespace fs = std::filesystem;

class Shards : public testing::Test {
 protected:
  Shards() : folder_(fs::path(testing::TempDir()) / ("assay-shards-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    for (std::size_t i = 0; i < payload_.size(); ++i) payload_[i] = static_cast<std::byte>(i * 7 + i / 256);
  }
  ~Shards() override { fs::remove_all(folder_); }

  fs::path write(int rank = 3, std::uint64_t step = 12) {
    write_shard(shard_path(folder_, rank), header_of(step, rank, 4, payload_), payload_);
    return shard_path(folder_, rank);
  }
  /// What read_shard says, or "".
  std::string complaint(std::uint64_t step = 12, int rank = 3) {
    try {
      read_shard(shard_path(folder_, 3), step, rank, back_);
      return "";
    } catch (const Error& e) {
      kind_ = e.kind();
      return e.what();
    }
  }

  fs::path folder_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(100'003), back_ = payload_;
  ErrorKind kind_ = ErrorKind::internal;
};

TEST_F(Shards, ComeBackAsWritten) {
  write();
  back_.assign(back_.size(), std::byte{0});
  EXPECT_EQ(complaint(), "");
  EXPECT_EQ(back_, payload_);
}

TEST_F(Shards, AnyDamageIsFoundAndNamed) {
  const fs::path file = write();
  for (const std::uintmax_t at : {std::uintmax_t{3}, std::uintmax_t{60}, std::uintmax_t{64},
                                  std::uintmax_t{50'000}, fs::file_size(file) - 1}) {
    write();
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(static_cast<std::streamoff>(at));
    const char old = static_cast<char>(f.get());
    f.seekp(static_cast<std::streamoff>(at));
    f.put(static_cast<char>(old ^ 0x10));
    f.close();
    EXPECT_NE(complaint().find(file.string()), std::string::npos) << at;
    EXPECT_EQ(kind_, ErrorKind::data) << at;
  }
  write();
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_NE(complaint().find("ends after"), std::string::npos);
  write();
  EXPECT_NE(complaint(13).find("step 12 of rank 3, not step 13"), std::string::npos);
  EXPECT_NE(complaint(12, 4).find("not step 12 of rank 4"), std::string::npos);
}

TEST_F(Shards, AreTimedWithoutTheirDigests) {
  payload_.resize(std::size_t{64} << 20);
  back_ = payload_;
  ShardHeader header;
  double digest_s = 1;  // what it takes undisturbed
  for (int i = 0; i < 3; ++i) {
    const double begin = now_s();
    header = header_of(12, 3, 4, payload_);
    digest_s = std::min(digest_s, now_s() - begin);
  }
  header.digest ^= 1;
  write_shard(shard_path(folder_, 3), header, payload_);
  EXPECT_NE(complaint().find("digest"), std::string::npos) << "it is written as it was given";
  write_shard(shard_path(folder_, 3), header_of(12, 3, 4, payload_), payload_);
  const double begin = now_s();
  const ShardRead read = read_shard(shard_path(folder_, 3), 12, 3, back_);
  EXPECT_GT(now_s() - begin - read.read_s, 0.3 * digest_s);
}

TEST_F(Shards, AreTimedWithoutLettingGoOfTheirPages) {
  const ShardHeader header = header_of(12, 3, 4, payload_);
  advice_s = 0.2;
  double begin = now_s();
  const WriteTimes written = write_shard(shard_path(folder_, 3), header, payload_);
  const double write_s = now_s() - begin;
  begin = now_s();
  const ShardRead read = read_shard(shard_path(folder_, 3), 12, 3, back_);
  const double read_s = now_s() - begin;
  advice_s = 0;
  EXPECT_GE(write_s - written.write_s - written.sync_s, 0.2);
  EXPECT_GE(read_s - read.read_s, 0.2);
}

TEST_F(Shards, AFullDiskIsAnErrorThatSaysSo) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  try {
    write_shard("/dev/full", {}, payload_);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::resource);
    EXPECT_NE(std::string(e.what()).find("/dev/full: cannot write: No space left"), std::string::npos)
        << e.what();
  }
}

TEST_F(Shards, AMissingFolderIsAnErrorThatSaysSo) {
  try {
    write_shard(folder_ / "nowhere" / "shard", {}, payload_);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("cannot create: No such file"), std::string::npos) << e.what();
  }
}

TEST_F(Shards, DoneOnlyWhenMarked) {
  EXPECT_FALSE(is_done(folder_));
  mark_done(folder_);
  EXPECT_TRUE(is_done(folder_));
}

StepReport report(double data, double forward, double backward, double optimizer) {
  StepReport r;
  r.data_s = data;
  r.forward_s = forward;
  r.backward_s = backward;
  r.optimizer_s = optimizer;
  return r;
}

TEST(TrainFrontier, GrowthBelongsToTheLastAtEachBoundary) {
  // Rank 1 is slow in forward; rank 0 catches nothing up in backward; rank 2 is slow in the optimizer.
  const std::vector<StepReport> step{report(1, 2, 4, 1), report(1, 5, 4, 1), report(1, 2, 5, 3)};
  const Frontier f = frontier_of(step);
  EXPECT_EQ(f.rank[1], 1);
  EXPECT_DOUBLE_EQ(f.growth_s[1], 5);  // from 1 to 6
  EXPECT_EQ(f.rank[2], 1) << "still the last, though another one took longer in this stage";
  EXPECT_DOUBLE_EQ(f.growth_s[2], 4);
  EXPECT_EQ(f.rank[3], 2);
  EXPECT_DOUBLE_EQ(f.growth_s[3], 3);
  FrontierSum sum;
  sum.add(f, 1);
  EXPECT_EQ(sum.worst(), 1u);
  EXPECT_DOUBLE_EQ(sum.share(1), 5.0 / 13);
}

TEST(TrainFrontier, AStragglerIsFarFromTheOthers) {
  const std::vector<double> even{1.00, 1.01, 0.99, 1.00, 1.02, 0.98}, odd{1.00, 1.01, 0.99, 1.30, 1.02, 0.98};
  const std::vector<double> own(20, 1.3);
  EXPECT_FALSE(straggler_score(even, 4, own).straggles);
  EXPECT_TRUE(straggler_score(odd, 3, own).straggles);
  EXPECT_FALSE(straggler_score(odd, 4, own).straggles);
  EXPECT_NEAR(straggler_score(odd, 3, own).relative, 0.98 / 1.3, 1e-12);
  EXPECT_NEAR(straggler_score(odd, 3, own).individual, 1, 1e-12);
}

}  // namespace
}  // namespace assay::train
