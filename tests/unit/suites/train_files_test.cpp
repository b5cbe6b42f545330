// SPDX-License-Identifier: Apache-2.0
// Checkpoints whose server does not answer, or whose run is killed.
#include <gtest/gtest.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "suite/space.hpp"
#include "suites/train/checkpoint_folder.hpp"
#include "suites/train/train_suite.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace {

/// What every file system tells: tests do not depend on how full that of this machine is.
assay::Space told_space{std::uint64_t{1} << 40, std::uint64_t{1} << 39};
unsigned long told_flags = 0;

}  // namespace

/// In place of the library's own.
extern "C" int statvfs(const char*, struct statvfs* info) noexcept {
  *info = {};
  info->f_frsize = 4096;
  info->f_blocks = told_space.total / 4096;
  info->f_bavail = told_space.available / 4096;
  info->f_flag = told_flags;
  return 0;
}

namespace assay::train {
namespace {

namespace fs = std::filesystem;

class CheckpointFiles : public testing::Test {
 protected:
  CheckpointFiles() : scratch_(fs::path(testing::TempDir()) / ("assay-files-" + std::to_string(::getpid()))) {
    fs::create_directories(scratch_);
  }
  ~CheckpointFiles() override {
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(scratch_), {}));
  }
  /// A process that made a checkpoint and was killed.
  pid_t killed(bool keep, const std::string& file) const {
    ChildProcess child("a run", [&]() -> int {
      const fs::path step = scratch_ / folder_name(7, keep) / "step-000004";
      fs::create_directories(step);
      for (const std::string& name : {std::string("shard-000000"), std::string("DONE"), file})
        std::ofstream(step / name) << "x";
      for (;;) ::pause();
    });
    const pid_t pid = child.pid();
    const auto there = [&] {
      for (const auto& entry : fs::recursive_directory_iterator(scratch_))
        if (entry.path().filename() == file &&
            entry.path().string().find("-" + std::to_string(pid) + "-") != std::string::npos)
          return true;
      return false;
    };
    for (const double end_s = now_s() + 30; !there() && now_s() < end_s;) ::usleep(1000);
    EXPECT_EQ(remove_leftovers(scratch_, pid), 0) << "it lives";
    child.kill(SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
    child.wait();
    return pid;
  }
  /// What the case of checkpoints in this directory tells.
  CaseRecord run(Communicator& world, supervisor::Heartbeat& heartbeat, bool keep = false) const {
    TrainSuite suite;
    Config config = fakes::config_of(suite, Level::quick);
    for (const OptionSpec& spec : suite.options()) {
      if (!spec.default_text.empty()) continue;
      config.options.set(spec, spec.name == "train.scratch"        ? std::vector{scratch_.string()}
                               : spec.name == "train.batch"        ? std::vector<std::string>{"1"}
                               : spec.name == "train.keep" && keep ? std::vector<std::string>{"true"}
                                                                   : std::vector<std::string>{});
    }
    fakes::Bench bench(config);
    const auto cases = suite.plan({config, bench.topology(), 1u << 30, 7});
    const Case& c = *fakes::find(cases, "tiny-checkpoint");
    EXPECT_EQ(c.parameters.at("path"), scratch_.string()) << "the supervisor asks for it";
    bench.device.reserve(c.bytes);
    Context context{{config, bench.topology(), bench.entities(), bench.device, world, world, nullptr},
                    RandomStream(7, c.path()),
                    now_s(),
                    now_s() + 60,
                    bench.record,
                    bench.entities().device_of_rank(0)};
    context.heartbeat = &heartbeat;
    suite.run(c, context);
    return bench.record;
  }

  fs::path scratch_;
};

TEST_F(CheckpointFiles, OfAKilledRunNothingStays) {
  const pid_t first = killed(false, "shard-000001");
  killed(false, "shard-000002");
  EXPECT_EQ(remove_leftovers(scratch_, first), 1) << "of this process alone";
  EXPECT_EQ(entries(), 1U);
  EXPECT_EQ(remove_leftovers(scratch_), 1);
  EXPECT_EQ(entries(), 0U);
}

TEST_F(CheckpointFiles, WhatIsKeptOrOfOthersStays) {
  const pid_t keeps = killed(true, "shard-000001");
  EXPECT_EQ(remove_leftovers(scratch_, keeps), 0) << "--train.keep";
  const pid_t other = killed(false, "notes");
  EXPECT_EQ(remove_leftovers(scratch_, other), 0) << "a file of somebody else keeps the directory";
  EXPECT_EQ(entries(), 2U);
}

/// Where the ranks are by their heartbeat when they meet between files.
class Meeting final : public fakes::SelfCommunicator {
 public:
  explicit Meeting(const supervisor::Heartbeat& heartbeat) : heartbeat_(heartbeat) {}
  void barrier() override { at_files_ += heartbeat_.call == supervisor::Call::files ? 1 : 0; }
  int at_files() const noexcept { return at_files_; }

 private:
  const supervisor::Heartbeat& heartbeat_;
  int at_files_ = 0;
};

TEST_F(CheckpointFiles, ARankIsAtWorkOnFilesInItsDirectory) {
  supervisor::Heartbeat heartbeat;
  Meeting world(heartbeat);
  const CaseRecord record = run(world, heartbeat);
  EXPECT_EQ(record.state_, results::CaseState::pass) << record.reason_;
  EXPECT_GE(world.at_files(), 3);
  EXPECT_EQ(heartbeat.call, supervisor::Call::none);
  EXPECT_GE(heartbeat.calls, 3U * 4) << "writes, sync, reads";
  EXPECT_EQ(entries(), 0U);
}

TEST_F(CheckpointFiles, AllRanksTogetherAreTimedAsEachIs) {
  supervisor::Heartbeat heartbeat;
  Meeting world(heartbeat);
  const auto values = run(world, heartbeat).rows_.at(0).values;
  for (const std::string direction : {"write", "read"}) {
    const std::string kind = values.contains(direction) ? "" : "_cached";
    EXPECT_EQ(values.at(direction + "_all" + kind), values.at(direction + kind)) << "of one rank";
  }
}

TEST_F(CheckpointFiles, AFileSystemWithTooLittleRoomIsRefused) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  supervisor::Heartbeat heartbeat;
  Meeting world(heartbeat);
  const Space before = told_space;
  const auto refused = [&](const Space& space, bool keep = false) -> std::string {
    told_space = space;
    try {
      run(world, heartbeat, keep);
      return "";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::resource);
      return e.what();
    }
  };
  const std::string why = refused({200 * gib, 20 * gib + (1 << 20)});
  EXPECT_NE(why.find("--train.scratch: " + scratch_.string() + ": 20"), std::string::npos) << why;
  EXPECT_NE(why.find("of 200 GiB are free, 20 GiB must stay so"), std::string::npos) << why;
  EXPECT_NE(why.find("checkpoints, which need "), std::string::npos) << why;
  EXPECT_EQ(entries(), 0U);
  EXPECT_EQ(refused({200 * gib, 20 * gib + (1 << 20)}, true), why);
  EXPECT_EQ(entries(), 0U) << "--train.keep leaves checkpoints, not a directory without any";
  EXPECT_EQ(refused({200 * gib, 21 * gib}), "");
  EXPECT_EQ(refused({0, 0}), "") << "it tells no size";
  told_space = before;
}

TEST(TrainSpace, CheckpointsAndTheReserveFitExactlyOrNot) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  const Space before = told_space;
  told_space = {1000 * gib, 163 * gib};
  EXPECT_NO_THROW(require_space("/", 63 * gib));
  EXPECT_THROW(require_space("/", 63 * gib + 4096), Error);
  told_flags = ST_RDONLY;
  EXPECT_NO_THROW(require_space("/", 63 * gib + 4096)) << "what is created there tells that it is read-only";
  told_flags = 0;
  told_space = before;
}

}  // namespace
}  // namespace assay::train
