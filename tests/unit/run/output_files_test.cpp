// SPDX-License-Identifier: Apache-2.0
// Which files a launch has written, and where those of earlier launches are kept.
#include "run/output_files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;

class OutputFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { config_.out = dir_ / "r.h5"; }
  void write(const std::string& name) const { std::ofstream(dir_ / name) << "results"; }

  TemporaryFolder temporary_;
  fs::path dir_ = temporary_.path();
  Config config_;
};

TEST_F(OutputFilesTest, WhatWasThereBeforeIsNotWritten) {
  write("r.h5");
  fs::last_write_time(dir_ / "r.h5", fs::file_time_type::clock::now() - std::chrono::hours(1));
  const OutputFiles files(config_);
  EXPECT_FALSE(files.all_written());
  write("r.h5");
  EXPECT_TRUE(files.all_written());
  EXPECT_EQ(files.current(), dir_ / "r.h5");
}

TEST_F(OutputFilesTest, ASoakHasAFileForEachSegment) {
  config_.level = Level::soak;
  config_.duration_s = 6;
  config_.segment_s = 2;
  const OutputFiles files(config_);
  EXPECT_EQ(files.current(), dir_ / "r-seg01.h5");
  write("r-seg01.h5");
  write("r-seg02.h5");
  EXPECT_EQ(files.written(), 2);
  EXPECT_FALSE(files.all_written());
  EXPECT_EQ(files.current(), dir_ / "r-seg03.h5");
  write("r-seg03.h5");
  EXPECT_TRUE(files.all_written());
  EXPECT_EQ(files.current(), dir_ / "r-seg03.h5");
}

TEST_F(OutputFilesTest, APartialDirectoryOfAnotherRunIsNoBeginning) {
  const auto own = [&](const std::string& run) {
    fs::create_directory(dir_ / "r.h5.partial");
    std::ofstream(dir_ / "r.h5.partial" / "owner") << results::to_text({run, "elsewhere", 7, 7});
  };
  own("before");
  OutputFiles files(config_);
  EXPECT_FALSE(files.has_begun()) << "the launcher may wait in a queue";
  own("of this launch");
  EXPECT_TRUE(files.has_begun());
  ASSERT_TRUE(files.new_owner());
  EXPECT_EQ(files.new_owner()->run_id, "of this launch");
  files.remember_owner();
  EXPECT_FALSE(files.has_begun());
}

TEST_F(OutputFilesTest, AWriterShowsThatItLivesByTheTimeOfItsFile) {
  const OutputFiles files(config_);
  EXPECT_FALSE(files.shown_alive());
  fs::create_directory(dir_ / "r.h5.partial");
  const fs::path owner = dir_ / "r.h5.partial" / "owner";
  std::ofstream(owner) << results::to_text({"run", "elsewhere", 7, 7});
  const auto before = files.shown_alive();
  ASSERT_TRUE(before);
  fs::last_write_time(owner, *before + std::chrono::seconds(10));
  EXPECT_EQ(*files.shown_alive(), *before + std::chrono::seconds(10));
}

TEST_F(OutputFilesTest, WhatAnotherHostHasInItsSpoolIsOfUnknownSize) {
  const OutputFiles files(config_);
  const fs::path partial = dir_ / "r.h5.partial";
  fs::create_directories(partial / "cases");
  EXPECT_TRUE(files.bytes_to_close());
  fs::remove(partial / "cases");
  fs::create_symlink(dir_ / "spool" / "r.h5@elsewhere@1.cases", partial / "cases");
  EXPECT_FALSE(files.bytes_to_close());
}

TEST_F(OutputFilesTest, KeepsResultsUnderANameThatNobodyHas) {
  const OutputFiles files(config_);
  EXPECT_EQ(files.free_name(1), dir_ / "r.launch1.h5");
  write("r.launch1.h5");
  fs::create_directory(dir_ / "r.launch2.h5.partial");
  EXPECT_EQ(files.free_name(1), dir_ / "r.launch3.h5");
}

}  // namespace
}  // namespace assay
