// SPDX-License-Identifier: Apache-2.0
// Checkpoints whose server does not answer, or whose run is killed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "suites/train/checkpoint_folder.hpp"
#include "suites/train/train_suite.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

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
  TrainSuite suite;
  Config config = fakes::config_of(suite, Level::quick);
  for (const OptionSpec& spec : suite.options()) {
    if (!spec.default_text.empty()) continue;
    config.options.set(spec, spec.name == "train.scratch" ? std::vector{scratch_.string()}
                             : spec.name == "train.batch" ? std::vector<std::string>{"1"}
                                                          : std::vector<std::string>{});
  }
  fakes::Bench bench(config);
  const auto cases = suite.plan({config, bench.topology(), 1u << 30, 7});
  const Case& c = *fakes::find(cases, "tiny-checkpoint");
  EXPECT_EQ(c.parameters.at("path"), scratch_.string()) << "the supervisor asks for it";
  bench.device.reserve(c.bytes);
  supervisor::Heartbeat heartbeat;
  Meeting world(heartbeat);
  Context context{{config, bench.topology(), bench.entities(), bench.device, world, world, nullptr},
                  RandomStream(7, c.path()),
                  now_s(),
                  now_s() + 60,
                  bench.record,
                  bench.entities().device_of_rank(0)};
  context.heartbeat = &heartbeat;
  suite.run(c, context);
  EXPECT_EQ(bench.record.state_, results::CaseState::pass) << bench.record.reason_;
  EXPECT_GE(world.at_files(), 3);
  EXPECT_EQ(heartbeat.call, supervisor::Call::none);
  EXPECT_GE(heartbeat.calls, 3U * 4) << "writes, sync, reads";
  EXPECT_EQ(entries(), 0U);
}

}  // namespace
}  // namespace assay::train
