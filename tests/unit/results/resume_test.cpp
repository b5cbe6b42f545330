// SPDX-License-Identifier: Apache-2.0
// Going on with what a run left behind: only what is missing, never two writers, never another run's plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "results/carry.hpp"
#include "results/reader.hpp"
#include "results/resume.hpp"
#include "results/schema.hpp"
#include "results/writer.hpp"
#include "tests/results/example_results.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay::results {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr int cases = 14;  // 6 and 13 are skipped for want of budget

/// Runs `act` in a process of its own, which ends without tidying up, as after a crash.
int in_child(const std::function<void()>& act) {
  ChildProcess child("a process that resumes", [&] {
    try {
      act();
      return 0;
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 10 + static_cast<int>(error.kind());
    }
  });
  return exit_code_of(child.wait());
}
constexpr int usage_error = 10 + static_cast<int>(ErrorKind::usage),
              io_error = 10 + static_cast<int>(ErrorKind::io);

/// With the cases beside the other files, and in a spool.
class Resume : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    file_ = dir_ / "run.h5";
    partial_ = partial_of(file_);
    if (!GetParam()) return;
    spool_ = dir_ / "spool";
    fs::create_directory(spool_);
  }

  /// What a run of `cases` that died after `n` of them leaves behind.
  void crash_after(int n) {
    ASSERT_EQ(in_child([&] {
                Writer writer = Writer::create(file_, example::start(cases), false, spool_);
                writer.add_event({0.5, -1, "note", "before"});
                for (int i = 0; i < n; ++i) writer.add_case(example::bundle(i));
              }),
              0);
  }
  void go_on(Writer& writer) {
    writer.go_on();
    for (int i = 0; i < cases; ++i) {
      const CaseBundle bundle = example::bundle(i);
      if (!writer.stored().contains(bundle.data.path())) writer.add_case(as_known(bundle, writer));
    }
    writer.add_event({1, -1, "note", "after"});
    writer.finish(example::verdict(cases), "complete");
  }
  /// A suite that meets a link again does not add it again.
  static CaseBundle as_known(CaseBundle bundle, const Writer& writer) {
    std::erase_if(bundle.new_entities, [&](const Entity& e) {
      return std::ranges::any_of(writer.known_entities(), [&](const Entity& k) { return k.id == e.id; });
    });
    return bundle;
  }
  void expect_whole_run() {
    Results got = load(file_), whole = example::write(dir_ / "whole.h5", cases);
    EXPECT_THAT(check_file(file_), testing::IsEmpty());
    for (Results* r : {&got, &whole}) {
      std::ranges::sort(r->cases, {}, [](const CaseData& c) { return c.path(); });
      std::ranges::stable_sort(r->counters, {}, &CounterRow::case_path);
      r->events.clear();
      r->info.ended.clear();
    }
    EXPECT_EQ(example::difference(got, whole), "");
    EXPECT_TRUE(spool_.empty() || fs::is_empty(spool_));
  }
  template <class F>
  static void expect_usage(const testing::Matcher<std::string>& text, F&& act) {
    try {
      act();
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
      EXPECT_THAT(std::string(error.what()), AllOf(text, Not(HasSubstr("\n"))));
    }
  }
  void expect_refused(const std::function<void(Writer::Start&)>& change, const std::string& text) {
    Writer::Start start = example::start(cases);
    change(start);
    expect_usage(AllOf(HasSubstr("run.h5.partial"), HasSubstr(text)),
                 [&] { Writer::resume(partial_, start, false); });
  }
  void own(const std::string& text) const { std::ofstream(partial_ / "owner") << text; }

  const TemporaryFolder folder_;
  const fs::path dir_ = folder_.path();
  fs::path file_, partial_, spool_;
};

TEST_P(Resume, RunsOnlyWhatIsMissing) {
  crash_after(8);
  Writer writer = Writer::resume(partial_, example::start(cases), false);
  EXPECT_THAT(writer.stored(), SizeIs(7));  // the one skipped for want of budget gets another chance
  EXPECT_FALSE(writer.stored().contains(example::bundle(6).data.path()));
  EXPECT_THAT(writer.known_entities(), SizeIs(7 + 4));
  go_on(writer);
  expect_whole_run();
  const Results r = load(file_);
  EXPECT_EQ(r.info.run_id, "run-0001");
  ASSERT_THAT(r.events, SizeIs(3));
  EXPECT_EQ(r.events[1].kind, "resumed");
  EXPECT_EQ(r.events[2].text, "after");
  EXPECT_FALSE(fs::exists(partial_));
}

TEST_P(Resume, TornFilesAndLinesAreIgnored) {
  crash_after(8);
  fs::resize_file(partial_ / "cases" / "000005.h5", 3000);  // it had brought two links
  std::ofstream(partial_ / "cases" / "000008.h5.tmp") << "in flight";
  std::ofstream(partial_ / "events.jsonl", std::ios::app) << "{\"t\": 3, \"ki";
  Writer writer = Writer::resume(partial_, example::start(cases), false);
  EXPECT_FALSE(writer.stored().contains(example::bundle(5).data.path()));
  for (int i = 0; i < cases; ++i) {
    if (!writer.stored().contains(example::bundle(i).data.path())) writer.add_case(example::bundle(i));
  }
  writer.add_event({1, -1, "note", "after"});
  writer.finish(example::verdict(cases), "complete");
  const Results r = load(file_);
  EXPECT_THAT(r.cases, SizeIs(cases));
  ASSERT_THAT(r.events, SizeIs(2));
  EXPECT_EQ(r.events[1].text, "after");
}

TEST_P(Resume, TwiceInARow) {
  crash_after(3);
  ASSERT_EQ(in_child([&] {
              Writer writer = Writer::resume(partial_, example::start(cases), false);
              for (int i = 3; i < 8; ++i) writer.add_case(as_known(example::bundle(i), writer));
            }),
            0);
  Writer writer = Writer::resume(partial_, example::start(cases), false);
  EXPECT_THAT(writer.stored(), SizeIs(7));
  go_on(writer);
  expect_whole_run();
}

TEST_P(Resume, CasesThatDidNotEndWellRunAgain) {
  ASSERT_EQ(in_child([&] {
              Writer writer = Writer::create(file_, example::start(cases), false, spool_);
              for (int i = 0; i < 8; ++i) {
                CaseBundle bundle = example::bundle(i);
                if (i == 5)
                  bundle.data.state = CaseState::incomplete;  // with links that later cases refer to
                if (i == 7) bundle.data.state = CaseState::error;
                if (i == 5 || i == 7) bundle.errors.clear(), bundle.counters.clear();  // facts_test.cpp
                writer.add_case(bundle);
              }
            }),
            0);
  Writer writer = Writer::resume(partial_, example::start(cases), false);
  EXPECT_THAT(writer.stored(), SizeIs(5));
  go_on(writer);
  expect_whole_run();
}

TEST_P(Resume, EndOfAnAbortedRunIsForgotten) {
  crash_after(4);
  ASSERT_EQ(in_child([&] {
              Writer writer = Writer::resume(partial_, example::start(cases), false);
              std::ofstream(file_) << "in the way";
              writer.finish(example::verdict(4), "aborted");
            }),
            usage_error);
  fs::remove(file_);
  EXPECT_EQ(load(partial_).info.state, "aborted");
  Writer writer = Writer::resume(partial_, example::start(cases), false);
  EXPECT_EQ(load(partial_).info.state, "running");
  go_on(writer);
  expect_whole_run();
}

TEST_P(Resume, AStartThatFailsKeepsWhatWasMeasured) {
  crash_after(8);
  auto with_faults = example::start(cases);
  with_faults.info.injected = true;
  for (int i = 0; i < 2; ++i) {  // the same process may try again
    Writer writer = Writer::resume(partial_, with_faults, false);
    writer.discard();
  }
  const Results left = load(partial_);
  EXPECT_FALSE(left.info.injected);
  EXPECT_THAT(left.cases, SizeIs(8));
  EXPECT_THAT(left.events, SizeIs(1));  // no attempt that failed is told as a resumption
  Writer writer = Writer::resume(partial_, with_faults, false);
  EXPECT_THAT(writer.stored(), SizeIs(7));
  writer.go_on();
  EXPECT_TRUE(load(partial_).info.injected);
  go_on(writer);
  EXPECT_TRUE(load(file_).info.injected);
  EXPECT_THAT(load(file_).cases, SizeIs(cases));
}

TEST_P(Resume, NamesTheFirstDifference) {
  crash_after(3);
  const auto other = [](const std::string& name) {
    return std::string(name == "hash" ? "the plan hash is other, and was 0123456789abcdef" : name);
  };
  expect_refused([](Writer::Start& s) { s.info.plan_hash = "other"; }, other("hash"));
  expect_refused([](Writer::Start& s) { s.info.seed = 5; }, "the seed is 5, and was 18364758544493064720");
  expect_refused([](Writer::Start& s) { s.info.assay_version = "9"; },
                 "the version of assay is 9, and was 0.1.0");
  expect_refused([](Writer::Start& s) { s.entities[1].id = "uuid-9"; }, "node 0 is node node01 (uuid-9)");
  expect_refused([](Writer::Start& s) { std::swap(s.entities[1], s.entities[2]); },
                 "node 0 is node node02 (uuid-2)");
  expect_refused(
      [](Writer::Start& s) {
        s.entities[3].rank = 1;
        s.entities[4].rank = 0;
      },
      "rank 0 runs on node01/cores2-3, and ran on node01/cores0-1");
  expect_refused([](Writer::Start& s) { s.entities.pop_back(); }, "the number of ranks is 3, and was 4");
  expect_refused([](Writer::Start& s) { s.config["memory_per_rank_bytes"] = 4096u; },
                 "the memory per rank is 4096");
  expect_refused(
      [](Writer::Start& s) {
        s.info.plan_hash = "other";
        s.config["gemm.dtypes"] = {"fp32"};
      },
      "--gemm.dtypes is fp32, and was fp32,fp64");
  expect_refused(
      [](Writer::Start& s) {
        s.info.plan_hash = "other";
        s.plan.erase(s.plan.begin());
      },
      "planned case 0 is memory/op1-n4096-together, and was gemm/op0-n4096-together");
  EXPECT_TRUE(fs::exists(partial_ / "cases"));  // nothing was touched
}

TEST_P(Resume, OptionsOfPresentationMayDiffer) {
  Writer::Start then = example::start(cases), now = then;
  then.config["presentation"] = now.config["presentation"] = {"out", "coverage"};
  now.config["out"] = "b.h5";
  now.config["coverage"] = "c.csv";
  EXPECT_EQ(carry_over_problem(then, now), "");
  now.config["cases"] = "gemm/*";
  EXPECT_THAT(carry_over_problem(then, now), HasSubstr("--cases is gemm/*, and was not given"));
}

TEST_P(Resume, ARunThatGoesOnWithoutALostNodeKeepsRetestsThatHadEnded) {
  CaseBundle again = example::bundle(0);
  again.data.name += ".c1";
  ASSERT_EQ(in_child([&] {
              Writer writer = Writer::create(file_, example::start(cases), false, spool_);
              writer.add_case(example::bundle(0));
              writer.add_case(again);
            }),
            0);
  const Writer::Start now = example::start(cases);
  Writer writer = Writer::create(dir_ / "next.h5", now, false);
  carry_over(writer, load_earlier(partial_), now);
  EXPECT_THAT(writer.stored(),
              testing::UnorderedElementsAre(example::bundle(0).data.path(), again.data.path()));
}

TEST_P(Resume, TellsWhatItNeedsBeforehand) {
  Writer::Start start = example::start(cases);
  start.config["memory_per_rank_bytes"] = std::uint64_t{256} << 20;
  start.config["seed-given"] = true;
  ASSERT_EQ(in_child([&] { Writer::create(file_, start, false); }), 0);
  const ResumeInfo info = read_resume(partial_.string() + "/");
  EXPECT_EQ(info.memory_per_rank_bytes, std::uint64_t{256} << 20);
  EXPECT_EQ(info.info.seed, start.info.seed);
  EXPECT_TRUE(info.seed_given);
  EXPECT_EQ(info.file, file_);
  EXPECT_GT(info.elapsed_s, 3600);  // it was started on 1 January
  expect_usage(HasSubstr("neither NAME.h5.partial nor NAME.h5"), [&] { read_resume(dir_ / "run.txt"); });
  expect_usage(HasSubstr("none.h5.partial"), [&] { read_resume(dir_ / "none.h5.partial"); });
}

TEST_P(Resume, ALiveRunIsNotTaken) {
  Writer writer = Writer::create(file_, example::start(cases), false, spool_);
  expect_usage(
      AllOf(HasSubstr("is being written by process " + std::to_string(getpid())), HasSubstr(host_name())),
      [&] { Writer::resume(partial_, example::start(cases), false); });
  EXPECT_EQ(in_child([&] { Writer::resume(partial_, example::start(cases), false); }), usage_error);
  writer.add_case(example::bundle(0));
}

TEST_P(Resume, AnotherHostMustHaveBeenQuiet) {
  crash_after(2);
  own(R"({"run_id":"run-0001","host":"elsewhere","pid":1,"start":1})");
  expect_usage(AllOf(HasSubstr("process 1 on elsewhere"), HasSubstr("60 s")),
               [&] { Writer::resume(partial_, example::start(cases), false); });
  expect_usage(HasSubstr("elsewhere"), [&] { Writer::create(file_, example::start(cases), true, spool_); });
  expect_usage(HasSubstr("elsewhere"), [&] { recover(partial_, file_, false); });
  EXPECT_TRUE(fs::exists(partial_ / "plan.json"));
  const auto old = fs::file_time_type::clock::now() - std::chrono::seconds(61);
  for (const char* name : {"owner", "plan.json", "events.jsonl", "cases"})
    fs::last_write_time(partial_ / name, old);
  Writer writer = Writer::resume(partial_, example::start(cases), false);
  EXPECT_THAT(writer.stored(), SizeIs(2));
}

TEST_P(Resume, AFormerOwnerThatLivesCannotWrite) {
  EXPECT_EQ(
      in_child([&] {
        Writer former = Writer::create(file_, example::start(cases), false, spool_);
        former.add_case(example::bundle(0));
        own(R"({"run_id":"run-0001","host":")" + host_name() + R"(","pid":999999999,"start":1})");
        Writer writer = Writer::resume(partial_, example::start(cases), false);
        writer.add_case(example::bundle(2));
        former.add_case(example::bundle(1));  // same run, same process, yet the directory has another name
      }),
      io_error);
  EXPECT_EQ(in_child([&] {
              Writer former = Writer::resume(partial_, example::start(cases), false);
              own(R"({"run_id":"run-0001","host":"elsewhere","pid":1,"start":1})");
              former.add_event({0, -1, "note", "x"});
            }),
            io_error);
}

TEST_P(Resume, OfTwoAtOnceOneWins) {
  crash_after(2);
  for (int round = 0; round < 10; ++round) {
    constexpr int contenders = 6;
    int start[2], end[2], wins = 0;
    std::vector<ChildProcess> children;
    ASSERT_EQ(pipe(start), 0);
    ASSERT_EQ(pipe(end), 0);
    const auto wait_for = [](const int* gate) {
      char byte = 0;
      close(gate[1]);
      if (read(gate[0], &byte, 1) < 0) _exit(98);  // until nobody holds the other end
    };
    for (int i = 0; i < contenders; ++i) {
      children.emplace_back("a contender", [&] {
        wait_for(start);
        try {
          const Writer writer = Writer::resume(partial_, example::start(cases), false);
          wait_for(end);  // lives until all others have tried
          return 0;
        } catch (const Error& error) {
          return error.kind() == ErrorKind::usage ? 1 : 2;
        }
      });
    }
    close(start[0]);
    close(start[1]);
    for (int i = 0; i < contenders; ++i) {
      if (i == contenders - 1) close(end[1]);
      int status = 0;
      ASSERT_GT(waitpid(-1, &status, 0), 0);
      ASSERT_TRUE(WIFEXITED(status));
      ASSERT_LE(WEXITSTATUS(status), 1);
      wins += WEXITSTATUS(status) == 0;
    }
    close(end[0]);
    EXPECT_EQ(wins, 1);
  }
}

TEST_P(Resume, AnExistingFileIsLeftAlone) {
  crash_after(2);
  std::ofstream(file_) << "somebody's results";
  expect_usage(AllOf(HasSubstr("run.h5 exists"), HasSubstr("--force")),
               [&] { Writer::resume(partial_, example::start(cases), false); });
  Writer writer = Writer::resume(partial_, example::start(cases), true);
  go_on(writer);
  expect_whole_run();
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutSpool, Resume, testing::Bool());

}  // namespace
}  // namespace assay::results
