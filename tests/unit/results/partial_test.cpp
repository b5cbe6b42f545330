// SPDX-License-Identifier: Apache-2.0
// Partial directories that cannot be read or written as they should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "base/error.hpp"
#include "base/system.hpp"
#include "results/disk.hpp"
#include "results/reader.hpp"
#include "results/writer.hpp"
#include "tests/results/example_results.hpp"

namespace assay::results {
namespace {

namespace fs = std::filesystem;

class Partial : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "assay-partial-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    file_ = dir_ / "run.h5";
    partial_ = partial_of(file_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  /// What a run of this host leaves that died after `count` cases.
  void leave(int count) {
    Writer writer = Writer::create(file_, example::start(), false);
    for (int i = 0; i < count; ++i) writer.add_case(example::bundle(i));
    own(host_name());
  }
  void own(const std::string& host) const {
    std::ofstream(partial_ / "owner")
        << R"({"run_id":"run-0001","host":")" + host + R"(","pid":1,"start":1})";
  }

  fs::path dir_, file_, partial_;
};

TEST_F(Partial, RecoverTellsHowManyCasesItLacks) {
  leave(4);
  for (const char* name : {"000001.h5", "000002.h5"}) fs::resize_file(partial_ / "cases" / name, 3000);
  const Recovered lacking = recover(partial_, file_, false);
  EXPECT_EQ(lacking.skipped_cases, 2U);
  EXPECT_TRUE(lacking.damaged);
  EXPECT_EQ(load(file_).cases.size(), 2U);
  EXPECT_TRUE(fs::exists(partial_ / "cases" / "000001.h5"));
  for (const char* name : {"000001.h5", "000002.h5"}) fs::remove(partial_ / "cases" / name);
  const Recovered whole = recover(partial_, file_, true);
  EXPECT_EQ(whole.skipped_cases, 0U);
  EXPECT_FALSE(whole.damaged);
}

TEST_F(Partial, AnEventThatTheDiskRefusesSpoilsNoOther) {
  Writer writer = Writer::create(file_, example::start(), false);
  writer.add_event({1, -1, "note", "first"});
  rlimit former{};
  getrlimit(RLIMIT_FSIZE, &former);
  const rlimit little{fs::file_size(partial_ / "events.jsonl") + 20, former.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &little);
  EXPECT_THROW(writer.add_event({2, -1, "note", "second"}), Error);
  setrlimit(RLIMIT_FSIZE, &former);
  std::signal(SIGXFSZ, handler);
  writer.add_event({3, -1, "note", "third"});
  const Results r = load(partial_);
  ASSERT_EQ(r.events.size(), 2U);
  EXPECT_EQ(r.events[0].text, "first");
  EXPECT_EQ(r.events[1].text, "third");
}

/// A directory that cannot be listed: no privilege helps with one that is none.
TEST_F(Partial, CasesThatCannotBeListedAreNotTakenForNone) {
  leave(3);
  fs::rename(partial_ / "cases", dir_ / "kept");
  std::ofstream(partial_ / "cases") << "no directory";
  const std::function<void()> acts[] = {[&] { recover(partial_, file_, false); }, [&] { load(partial_); },
                                        [&] { Writer::resume(partial_, example::start(), false); }};
  for (const auto& act : acts) {
    try {
      act();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("cannot read"));
    }
    EXPECT_FALSE(fs::exists(file_));
  }
  EXPECT_TRUE(fs::exists(partial_ / "plan.json"));
}

TEST_F(Partial, ARunWhoseCasesCannotBeListedKeepsThem) {
  Writer writer = Writer::create(file_, example::start(), false);
  writer.add_case(example::bundle(0));
  fs::rename(partial_ / "cases", dir_ / "kept");
  std::ofstream(partial_ / "cases") << "no directory";
  try {
    writer.finish(example::verdict(1), "complete");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), testing::HasSubstr("everything measured is kept in"));
  }
  EXPECT_TRUE(fs::exists(partial_));
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(Partial, ARunOfAnotherHostIsRunningWhileItTouchesItsDirectory) {
  leave(2);
  EXPECT_EQ(load(partial_).info.state, "aborted") << "of this host its process is looked for";
  own("elsewhere");
  EXPECT_EQ(load(partial_).info.state, "running");
  const auto old = fs::file_time_type::clock::now() - std::chrono::seconds(61);
  for (const auto& entry : fs::directory_iterator(partial_)) fs::last_write_time(entry, old);
  EXPECT_EQ(load(partial_).info.state, "aborted");
}

TEST_F(Partial, ARunOfAnotherHostThatShowsItIsAliveIsNotTaken) {
  Writer writer = Writer::create(file_, example::start(), false);
  own("elsewhere");
  const auto old = fs::file_time_type::clock::now() - std::chrono::seconds(61);
  for (const auto& entry : fs::directory_iterator(partial_)) fs::last_write_time(entry, old);
  writer.show_alive();
  EXPECT_THROW(recover(partial_, file_, false), Error);
  EXPECT_EQ(load(partial_).info.state, "running");
  EXPECT_TRUE(fs::exists(partial_ / "cases"));
}

}  // namespace
}  // namespace assay::results
