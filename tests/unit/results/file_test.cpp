// SPDX-License-Identifier: Apache-2.0
// Writing, reading and recovering results files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <thread>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "results/disk.hpp"
#include "results/reader.hpp"
#include "results/save.hpp"
#include "results/schema.hpp"
#include "results/writer.hpp"
#include "tests/results/example_results.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay::results {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ResultsFile : public testing::Test {
 protected:
  void SetUp() override {
    file_ = dir_ / "run.h5";
    partial_ = partial_of(file_);
  }

  template <class F>
  static void expect_error(ErrorKind kind, const testing::Matcher<std::string>& text, F&& act) {
    try {
      act();
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_THAT(std::string(error.what()), AllOf(text, Not(HasSubstr("\n"))));
    }
  }
  Writer started(int cases) {
    Writer writer = Writer::create(file_, example::start(cases), false);
    for (int i = 0; i < cases; ++i) writer.add_case(example::bundle(i));
    return writer;
  }
  /// Makes it look as if the writer had died: no process has this start time.
  void orphan() const {
    std::ofstream(partial_ / "owner")
        << R"({"run_id":"run-0001","host":")" + host_name() + R"(","pid":1,"start":1})";
  }

  const TemporaryFolder folder_;
  const fs::path dir_ = folder_.path();
  fs::path file_, partial_;
};

TEST_F(ResultsFile, ComesBackFieldByField) {
  Results written = example::write(file_, 15);
  EXPECT_FALSE(fs::exists(partial_));
  const Results read = load(file_);
  EXPECT_FALSE(read.info.ended.empty());
  written.info.ended = read.info.ended;
  EXPECT_EQ(example::difference(written, read), "");
  EXPECT_THAT(check_file(file_), testing::IsEmpty());
}

TEST_F(ResultsFile, CasesWithOtherCoordinatesKeepThem) {
  example::write(file_, 8);
  Results written = load(file_);
  for (std::size_t i = 0; i < written.cases.size(); ++i) {
    CaseData& data = written.cases[i];
    if (!data.t.empty()) data.t[0] += static_cast<double>(i);
    if (!data.block.empty()) data.block.back() += static_cast<std::int32_t>(i);
    if (!data.sample.empty()) data.sample.back() += static_cast<std::int32_t>(i / 3);
    if (data.entity.size() > 1 && i % 4 == 1) std::swap(data.entity[0], data.entity[1]);
  }
  save(written, file_, true);
  EXPECT_EQ(example::difference(written, load(file_)), "");
}

TEST_F(ResultsFile, DifferenceIsSeen) {
  const Results a = example::write(file_, 3);
  Results b = a;
  b.cases[1].metrics[0].values[2] += 1;
  EXPECT_EQ(example::difference(a, b), "cases[1].metrics[0].values");
}

TEST_F(ResultsFile, WithoutAnyCase) {
  Writer::create(file_, example::start(), false).finish(example::verdict(0), "aborted");
  EXPECT_EQ(load(file_).info.state, "aborted");
  EXPECT_THAT(check_file(file_), testing::IsEmpty());
}

TEST_F(ResultsFile, DirectoryAndRecoveredFileAreEqual) {
  {
    Writer writer = started(12);
    writer.add_event({2, -1, "note", "text"});
  }
  EXPECT_EQ(load(partial_).info.state, "running");
  orphan();
  const Results from_directory = load(partial_);
  EXPECT_EQ(from_directory.cases.size(), 12u);
  EXPECT_EQ(from_directory.info.state, "aborted");
  recover(partial_, file_, false);
  EXPECT_FALSE(fs::exists(partial_));
  EXPECT_EQ(example::difference(from_directory, load(file_)), "");
  EXPECT_THAT(check_file(file_), testing::IsEmpty());
}

TEST_F(ResultsFile, ALargeCaseIsWrittenWithoutAnImageInMemory) {
  constexpr std::size_t samples = 1 << 20;
  CaseBundle bundle = example::bundle(0);
  CaseData& data = bundle.data;
  const std::size_t rows = data.entity.size();
  data.sample.resize(samples), data.block.resize(samples);
  data.t.assign(rows * samples, 0.5);
  std::erase_if(data.metrics, [](const Metric& m) { return m.per_sample; });
  data.arrays.clear();
#ifdef __SANITIZE_ADDRESS__
  constexpr double most = 2;  // with what the sanitizer keeps of each allocation
#else
  constexpr double most = 0.5;
#endif
  const double bytes = 8.0 * static_cast<double>(data.t.size());
  const auto peak = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return 1024.0 * static_cast<double>(used.ru_maxrss);
  };
  ChildProcess child("a writer", [&] {
    Writer writer = Writer::create(file_, example::start(1), false);
    const double before = peak();
    writer.add_case(bundle);
    return peak() - before < most * bytes ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  const Results read = load(partial_);
  ASSERT_EQ(read.cases.size(), 1u);
  EXPECT_EQ(read.cases[0].t, data.t);
}

TEST_F(ResultsFile, FailedMergeKeepsTheVerdict) {
  {
    Writer writer = started(3);
    std::ofstream(file_) << "somebody was faster";
    expect_error(ErrorKind::usage, AllOf(HasSubstr("run.h5 exists"), HasSubstr("kept in")),
                 [&] { writer.finish(example::verdict(3), "complete"); });
  }
  const Results from_directory = load(partial_);
  EXPECT_EQ(from_directory.verdict->state, "FAIL");
  recover(partial_, dir_ / "other.h5", false);
  EXPECT_EQ(example::difference(from_directory, load(dir_ / "other.h5")), "");
}

TEST_F(ResultsFile, LastLineOfEventsMayBeTorn) {
  {
    Writer writer = started(1);
    writer.add_event({1, -1, "a", "first"});
    writer.add_event({2, -1, "b", "second"});
  }
  fs::resize_file(partial_ / "events.jsonl", fs::file_size(partial_ / "events.jsonl") - 5);
  const Results read = load(partial_);
  ASSERT_EQ(read.events.size(), 1u);
  EXPECT_EQ(read.events[0].text, "first");
}

TEST_F(ResultsFile, DamagedCaseIsSkippedNamedAndKept) {
  { started(7); }
  orphan();
  fs::resize_file(partial_ / "cases" / "000005.h5", 3000);  // the case that brought two links
  { std::ofstream(partial_ / "cases" / "000006.h5.tmp") << "in flight"; }
  recover(partial_, file_, false);
  EXPECT_TRUE(fs::exists(partial_));
  const Results read = load(file_);
  EXPECT_EQ(read.cases.size(), 6u);
  ASSERT_EQ(read.events.size(), 1u);
  EXPECT_THAT(read.events[0].text, HasSubstr("000005.h5"));
}

TEST_F(ResultsFile, LostEntitiesKeepTheirRows) {
  { started(11); }
  orphan();
  fs::resize_file(partial_ / "cases" / "000005.h5", 3000);
  recover(partial_, file_, false);
  const Results read = load(file_);
  ASSERT_EQ(read.entities.size(), 7u + 6u);
  EXPECT_EQ(read.entities[9].name, "lost:9");
  EXPECT_EQ(read.entities[11].name, "link11");
}

TEST_F(ResultsFile, RefusesWhatStandsInTheWay) {
  example::write(file_, 1);
  expect_error(ErrorKind::usage, AllOf(HasSubstr("run.h5"), HasSubstr("--force")),
               [&] { Writer::create(file_, example::start(), false); });
  EXPECT_FALSE(fs::exists(partial_));
  Writer::create(file_, example::start(), true).finish(example::verdict(0), "aborted");
  EXPECT_EQ(load(file_).info.state, "aborted");
}

TEST_F(ResultsFile, RefusesAStaleDirectory) {
  { started(1); }
  expect_error(ErrorKind::usage, AllOf(HasSubstr("a run is writing it"), testing::Not(HasSubstr("--force"))),
               [&] { Writer::create(file_, example::start(), false); });
  expect_error(ErrorKind::usage, HasSubstr("live run"),
               [&] { Writer::create(file_, example::start(), true); });
  orphan();
  expect_error(
      ErrorKind::usage,
      AllOf(HasSubstr("run.h5.partial"), HasSubstr("recover"), HasSubstr("--resume"), HasSubstr("--force")),
      [&] { Writer::create(file_, example::start(), false); });
  Writer::create(file_, example::start(), true).discard();
  EXPECT_FALSE(fs::exists(partial_));
}

TEST_F(ResultsFile, ForceDoesNotRemoveForeignDirectories) {
  fs::create_directory(partial_);
  std::ofstream(partial_ / "thesis.tex") << "years of work";
  expect_error(ErrorKind::usage, HasSubstr("cannot remove"),
               [&] { Writer::create(file_, example::start(), true); });
  EXPECT_TRUE(fs::exists(partial_ / "thesis.tex"));
}

TEST_F(ResultsFile, UnwritableDirectoryIsOneLine) {
  expect_error(ErrorKind::usage, HasSubstr("nowhere"),
               [&] { Writer::create(dir_ / "nowhere" / "run.h5", example::start(), false); });
  expect_error(ErrorKind::usage, HasSubstr("cannot create"),
               [&] { Writer::create("/proc/run.h5", example::start(), false); });
}

TEST_F(ResultsFile, DiscardLeavesNothing) {
  started(2).discard();
  EXPECT_TRUE(fs::is_empty(dir_));
}

TEST_F(ResultsFile, ModeFollowsUmask) {
  const mode_t before = umask(027);
  example::write(file_, 1);
  umask(before);
  EXPECT_EQ(fs::status(file_).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
}

TEST_F(ResultsFile, WrongCasesAreInternalErrors) {
  Writer writer = started(2);
  expect_error(ErrorKind::internal, HasSubstr("before"), [&] { writer.add_case(example::bundle(1)); });
  const auto expect_wrong = [&](const char* text, const std::function<void(CaseBundle&)>& change) {
    CaseBundle b = example::bundle(3);
    change(b);
    expect_error(ErrorKind::internal, HasSubstr(text), [&] { writer.add_case(b); });
  };
  expect_wrong("unit \"GB/s\"", [](CaseBundle& b) { b.data.metrics[0].unit = "GB/s"; });
  expect_wrong("cannot be named", [](CaseBundle& b) { b.data.metrics[0].name = "count"; });
  expect_wrong("cannot be named", [](CaseBundle& b) { b.data.name = "../x"; });
  expect_wrong("row 99", [](CaseBundle& b) { b.data.entity[0] = 99; });
  expect_wrong("count", [](CaseBundle& b) { b.data.count.pop_back(); });
  expect_wrong("every entity", [](CaseBundle& b) { b.data.metrics[0].values.own().pop_back(); });
  expect_wrong("shape", [](CaseBundle& b) { b.data.arrays[0].values.own().pop_back(); });
  expect_wrong("two lengths", [](CaseBundle& b) { b.data.arrays[0].dims = {"entity", "bucket", "step"}; });
  writer.add_case(example::bundle(3));
}

TEST_F(ResultsFile, FullDiskKeepsWhatIsThere) {
  {
    Writer writer = started(3);
    writer.inject_disk_full(1000);
    expect_error(ErrorKind::io, HasSubstr("No space left"), [&] { writer.add_case(example::bundle(3)); });
    expect_error(ErrorKind::io, HasSubstr("No space left"),
                 [&] { writer.finish(example::verdict(3), "complete"); });
  }
  orphan();
  EXPECT_FALSE(fs::exists(file_));
  recover(partial_, file_, false);
  EXPECT_EQ(load(file_).cases.size(), 3u);
}

/// A file size limit makes every write beyond it fail, as a full disk would; the merge needs more than one
/// case does.
TEST_F(ResultsFile, RealWriteErrorsAreOneLine) {
  ChildProcess child("a process that writes", [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    Writer writer = started(5);
    const rlimit limit{20000, 20000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      writer.finish(example::verdict(5), "complete");
    } catch (const Error& error) {
      const std::string text = error.what();
      return error.kind() == ErrorKind::io && text.find("cannot write") == 0 ? 7 : 8;
    }
    return 9;
  });
  EXPECT_EQ(exit_code_of(child.wait()), 7);
  EXPECT_FALSE(fs::exists(file_));
  recover(partial_, file_, false);
  EXPECT_EQ(load(file_).cases.size(), 5u);
}

TEST_F(ResultsFile, LiveRunIsNotRecovered) {
  started(1);
  ChildProcess child("a process that recovers", [&] {
    try {
      recover(partial_, file_, false);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::usage ? 7 : 8;
    }
    return 9;
  });
  EXPECT_EQ(exit_code_of(child.wait()), 7);
  EXPECT_TRUE(fs::exists(partial_));
}

TEST_F(ResultsFile, RecoveringWaitsForARunThatTakesOver) {
  started(1);
  orphan();
  std::optional<TakeOverLock> lock(partial_);
  std::thread taking([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::ofstream(partial_ / "owner") << to_text({"run-0001", "elsewhere", 1, 1});
    lock.reset();
  });
  expect_error(ErrorKind::usage, HasSubstr("process 1 on elsewhere"),
               [&] { recover(partial_, file_, false); });
  taking.join();
  EXPECT_TRUE(fs::exists(partial_ / "plan.json"));
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(ResultsFile, NamesWhatIsNoResultsFile) {
  expect_error(ErrorKind::usage, HasSubstr("nothing.h5"), [&] { load(dir_ / "nothing.h5"); });
  std::ofstream(dir_ / "text.h5") << std::string(5000, 'x');
  expect_error(ErrorKind::data, AllOf(HasSubstr("text.h5"), HasSubstr("no HDF5")),
               [&] { load(dir_ / "text.h5"); });
  fs::create_directory(dir_ / "empty");
  expect_error(ErrorKind::data, HasSubstr("is a directory"), [&] { load(dir_ / "empty"); });
  fs::create_directory(dir_ / "empty.h5.partial");
  expect_error(ErrorKind::data, HasSubstr("plan.json"), [&] { load(dir_ / "empty.h5.partial"); });
}

TEST_F(ResultsFile, NewerMajorVersionIsRefused) {
  example::write(file_, 1);
  const hid_t file = H5Fopen(file_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  H5Adelete(file, "schema_version");
  const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, H5T_VARIABLE);
  const hid_t attribute = H5Acreate2(file, "schema_version", type, space, H5P_DEFAULT, H5P_DEFAULT);
  const char* text = "3.0";
  H5Awrite(attribute, type, &text);
  H5Aclose(attribute), H5Sclose(space), H5Tclose(type), H5Fclose(file);
  expect_error(ErrorKind::data, HasSubstr("schema version 3.0"), [&] { load(file_); });
}

}  // namespace
}  // namespace assay::results
