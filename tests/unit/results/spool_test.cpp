// SPDX-License-Identifier: Apache-2.0
// Cases in a spool: what stands behind a link is touched only if a run has made it. resume_test.cpp continues
// runs with a spool.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "base/error.hpp"
#include "base/system.hpp"
#include "results/disk.hpp"
#include "results/reader.hpp"
#include "results/writer.hpp"
#include "tests/results/example_results.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay::results {
namespace {

namespace fs = std::filesystem;

class Spool : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(spool_ = dir_ / "spool");
    file_ = dir_ / "run.h5";
    partial_ = partial_of(file_);
  }

  /// What a run leaves that has died.
  void leave() {
    Writer writer = create(false);
    for (int i = 0; i < 3; ++i) writer.add_case(example::bundle(i));
    std::ofstream(partial_ / "owner")
        << R"({"run_id":"run-0001","host":")" + host_name() + R"(","pid":1,"start":1})";
  }
  Writer create(bool force) { return Writer::create(file_, example::start(3), force, spool_); }
  fs::path place() const { return fs::read_symlink(partial_ / "cases"); }
  /// Nobody reads or continues it, and the message tells why.
  void expect_refused(const std::string& why) {
    for (const std::function<void()>& act : std::initializer_list<std::function<void()>>{
             [&] { recover(partial_, dir_ / "new.h5", false); }, [&] { load(partial_); },
             [&] { Writer::resume(partial_, example::start(3), false); }}) {
      try {
        act();
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        EXPECT_THAT(error.what(), testing::HasSubstr(why));
      }
    }
  }

  const TemporaryFolder folder_;
  const fs::path dir_ = folder_.path();
  fs::path spool_, file_, partial_;
};

TEST_F(Spool, CasesAreReadInTheOrderOfTheirNumbers) {
  leave();
  const fs::path files = partial_ / "cases";
  fs::rename(files / "000001.h5", files / "999999.h5");
  fs::rename(files / "000002.h5", files / "1000000.h5");
  std::vector<std::string> names;
  for (const CaseData& c : load(partial_).cases) names.push_back(c.path());
  EXPECT_THAT(names, testing::ElementsAre(example::bundle(0).data.path(), example::bundle(1).data.path(),
                                          example::bundle(2).data.path()));
}

TEST_F(Spool, ADirectoryThatNoRunHasMadeIsLeftAlone) {
  leave();
  const fs::path theirs = dir_ / "thesis.cases";
  for (const fs::path& name : {dir_ / "thesis", fs::path("relative.cases"), theirs}) {
    fs::create_directory(dir_ / name);
    if (name.extension() == ".cases") std::ofstream(dir_ / name / "000000.h5") << "years of work";
    fs::remove(partial_ / "cases");
    fs::create_directory_symlink(name, partial_ / "cases");
    expect_refused("its cases are in " + name.string() + ", which ");
  }
  fs::remove_all(spool_), fs::create_directory(spool_);
  create(true).discard();
  EXPECT_TRUE(fs::exists(theirs / "000000.h5"));
}

/// Files that cannot be removed stand for a process that is killed while it removes them.
class Immutable {
 public:
  explicit Immutable(const fs::path& file) : fd_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    set_ = change(FS_IMMUTABLE_FL, 0);
  }
  ~Immutable() { end(); }
  void end() {
    if (set_) change(0, FS_IMMUTABLE_FL);
    if (fd_ >= 0) ::close(fd_);
    set_ = false;
    fd_ = -1;
  }
  bool set() const { return set_; }

 private:
  bool change(int on, int off) {
    int flags = 0;
    if (fd_ < 0 || ::ioctl(fd_, FS_IOC_GETFLAGS, &flags) != 0) return false;
    flags = (flags | on) & ~off;
    return ::ioctl(fd_, FS_IOC_SETFLAGS, &flags) == 0;
  }
  int fd_;
  bool set_ = false;
};

TEST_F(Spool, ARemovalThatWasCutShortCanBeRecoveredOrGoneOnWith) {
  for (const char* stays : {"000000.h5", "000002.h5"}) {
    leave();
    Immutable file(place() / stays);
    if (!file.set()) GTEST_SKIP() << "no privilege: files that cannot be removed";
    EXPECT_FALSE(remove_partial(partial_));
    file.end();
    EXPECT_TRUE(fs::exists(place() / "partial")) << "whose they are";
    EXPECT_EQ(recover(partial_, dir_ / "new.h5", true).problem, "");
    EXPECT_EQ(load(dir_ / "new.h5").cases.size(), 1U);
    EXPECT_TRUE(fs::is_empty(spool_));
  }
}

TEST_F(Spool, ADirectoryOfAnotherMachineIsNamed) {
  leave();
  fs::rename(place(), dir_ / "elsewhere");
  expect_refused(place().string() + ", which is not on this machine");
  create(true).discard();
  EXPECT_FALSE(fs::exists(partial_));
}

TEST_F(Spool, WhatADeadRunHasLeftIsRemovedWithItsCases) {
  leave();
  EXPECT_FALSE(fs::is_empty(spool_));
  create(true).discard();
  EXPECT_TRUE(fs::is_empty(spool_));
  leave();
  fs::remove_all(place());  // killed before it was made, or while it was removed
  fs::remove(partial_ / "plan.json");
  create(true).discard();
  leave();
  for (const auto& entry : fs::directory_iterator(place())) fs::remove(entry);
  create(true).discard();
  EXPECT_TRUE(fs::is_empty(spool_));
  EXPECT_FALSE(fs::exists(partial_));
}

TEST_F(Spool, ADirectoryThatIsThereIsNotTaken) {
  const fs::path there = spool_ / ("run.h5@" + host_name() + "@run-0001.cases");
  fs::create_directory(there);
  std::ofstream(there / "partial") << "another run";
  EXPECT_THROW(create(false), Error);
  EXPECT_TRUE(fs::exists(there / "partial"));
  EXPECT_FALSE(fs::exists(partial_));
}

/// From another machine only the time of `owner` shows that the run lives.
TEST_F(Spool, ACaseShowsThatTheRunLives) {
  Writer writer = create(false);
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(partial_ / "owner", old);
  writer.add_case(example::bundle(0));
  EXPECT_GT(fs::last_write_time(partial_ / "owner"), old + std::chrono::minutes(59));
}

}  // namespace
}  // namespace assay::results
