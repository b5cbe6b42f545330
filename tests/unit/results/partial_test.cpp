// SPDX-License-Identifier: Apache-2.0
// Partial directories that cannot be read or written as they should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "results/disk.hpp"
#include "results/partial.hpp"
#include "results/reader.hpp"
#include "results/writer.hpp"
#include "tests/results/example_results.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay::results {
namespace {

namespace fs = std::filesystem;

class Partial : public testing::Test {
 protected:
  void SetUp() override {
    file_ = dir_ / "run.h5";
    partial_ = partial_of(file_);
  }

  /// What a run of this host leaves that died after `count` cases.
  void leave(int count) {
    Writer writer = Writer::create(file_, example::start(count), false);
    for (int i = 0; i < count; ++i) writer.add_case(example::bundle(i));
    own(host_name());
  }
  void own(const std::string& host) const {
    std::ofstream(partial_ / "owner")
        << R"({"run_id":"run-0001","host":")" + host + R"(","pid":1,"start":1})";
  }

  fs::path case_of(int number) const { return case_file(partial_ / "cases", number); }
  /// A case that cannot be read and takes so much of the disk.
  void leave_unreadable(int number, std::uintmax_t bytes) {
    std::ofstream{case_of(number)};
    fs::resize_file(case_of(number), bytes);
  }
  /// One that brings two links and whose file says that `lost` others come before them.
  void leave_after(int number, int example, std::size_t lost) {
    CaseBundle after = example::bundle(example);
    after.data.entity = {static_cast<std::int32_t>(7 + lost), static_cast<std::int32_t>(8 + lost)};
    write_bundle(case_of(number), after, number, example::start().entities.size() + lost, [](std::size_t) {});
  }

  const TemporaryFolder folder_;
  const fs::path dir_ = folder_.path();
  fs::path file_, partial_;
};

/// As of 12,500 nodes: a row of a link takes more than 32 bytes of a file.
TEST_F(Partial, ACaseIsKeptBehindALostOneOfMoreThanAMillionLinks) {
  constexpr std::size_t lost = 1'100'000;
  leave(0);
  leave_unreadable(0, 32 * lost);
  leave_after(1, 0, lost);
  PartialReader reader(partial_);
  std::vector<CaseData> kept;
  reader.read_cases([&](CaseData&& data) { kept.push_back(std::move(data)); });
  EXPECT_EQ(reader.skipped_cases, 1U);
  ASSERT_EQ(kept.size(), 1U);
  ASSERT_EQ(reader.entities.size(), example::start().entities.size() + lost + 2);
  EXPECT_EQ(reader.entities[static_cast<std::size_t>(kept[0].entity[0])].name, "link7");
}

TEST_F(Partial, MoreLostLinksThanTheFilesCanHoldTakeNoMemory) {
  leave(0);
  leave_unreadable(0, 3000);
  leave_after(1, 0, std::size_t{1} << 30);
  leave_after(2, 5, 900'000);
  leave_after(3, 10, 1'800'000);
  PartialReader reader(partial_);
  std::vector<std::string> names;
  reader.read_cases([&](CaseData&& data) { names.push_back(data.path()); });
  EXPECT_THAT(names, testing::ElementsAre(example::bundle(5).data.path()));
  EXPECT_EQ(reader.skipped_cases, 3U);
  EXPECT_EQ(reader.entities.size(), example::start().entities.size() + 900'002);
}

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
  EXPECT_EQ(whole.problem, "");
  EXPECT_FALSE(fs::exists(partial_));
}

TEST_F(Partial, RecoverMakesNoFileInTheDirectoryThatItRemoves) {
  leave(2);
  for (const fs::path& inside : {partial_ / "run.h5", partial_ / "cases" / "run.h5"}) {
    EXPECT_THROW(recover(partial_, inside, false), Error);
    EXPECT_FALSE(fs::exists(inside));
  }
  EXPECT_TRUE(fs::exists(case_of(0)));
  EXPECT_TRUE(recover(partial_, file_, false).complete());
}

/// An event that names a part that there is not: no reader takes the file.
TEST_F(Partial, RecoverKeepsWhatItMakesNoReadableFileOf) {
  {
    Writer writer = Writer::create(file_, example::start(1), false);
    writer.add_case(example::bundle(0));
    writer.add_event({1, 99, "note", "text"});
    own(host_name());
  }
  const Recovered made = recover(partial_, file_, false);
  EXPECT_FALSE(made.damaged);
  EXPECT_THAT(made.problem, testing::HasSubstr("99"));
  EXPECT_FALSE(made.complete());
  EXPECT_THROW(load(file_), Error);
  EXPECT_TRUE(fs::exists(case_of(0)));
}

TEST_F(Partial, ARunThatLacksADamagedCaseKeepsItsDirectory) {
  {
    Writer writer = Writer::create(file_, example::start(3), false);
    for (int i = 0; i < 3; ++i) writer.add_case(example::bundle(i));
    fs::resize_file(case_of(1), 3000);
    auto measured = load_own_partial(partial_);
    EXPECT_EQ(measured.cases.size(), 2U);
    measured.info.state = "complete";
    writer.finish(measured, example::verdict(3));
    EXPECT_TRUE(fs::exists(partial_)) << "samples are read from there";
  }
  EXPECT_TRUE(fs::exists(case_of(1)));
  EXPECT_EQ(load(file_).cases.size(), 2U);
}

TEST_F(Partial, ARunThatLacksNothingRemovesItsDirectory) {
  {
    Writer writer = Writer::create(file_, example::start(3), false);
    for (int i = 0; i < 3; ++i) writer.add_case(example::bundle(i));
    auto measured = load_own_partial(partial_);
    measured.info.state = "complete";
    writer.finish(measured, example::verdict(3));
    EXPECT_TRUE(fs::exists(partial_)) << "samples are read from there";
  }
  EXPECT_FALSE(fs::exists(partial_));
  EXPECT_EQ(load(file_).cases.size(), 3U);
}

/// It may look at any moment, from the making of the directory to its removal.
TEST_F(Partial, RecoverBesideARunReplacesNothing) {
  constexpr int rounds = 5, ended_cases = 3;
  for (int round = 0; round < rounds; ++round) {
    file_ = dir_ / (std::to_string(round) + ".h5");
    partial_ = partial_of(file_);
    ChildProcess run("a run", [&] {
      Writer writer = Writer::create(file_, example::start(ended_cases), false);
      for (int i = 0; i < ended_cases; ++i) writer.add_case(example::bundle(i));
      writer.finish(example::verdict(ended_cases), "complete");
      return 0;
    });
    while (!run.ended()) EXPECT_THROW(recover(partial_, file_, true), Error);
    EXPECT_EQ(load(file_).cases.size(), static_cast<std::size_t>(ended_cases)) << "round " << round;
  }
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
