// SPDX-License-Identifier: Apache-2.0
// What a run takes over from an earlier one.
#include <gmock/gmock.h>

#include "results/carry.hpp"
#include "results/reader.hpp"
#include "results/resume.hpp"
#include "results/writer.hpp"
#include "tests/results/example_results.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay::results {
namespace {

TEST(CarryOver, EventsOfCasesThatAreTakenOverGoWithThem) {
  const TemporaryFolder temporary;
  const auto& dir = temporary.path();
  const auto start = example::start(14);
  auto first = start;
  first.info.started = "2026-01-31T04:00:00Z";
  {
    Writer writer = Writer::create(dir / "run.h5", first, false);
    auto kept = example::bundle(0), lost = example::bundle(1);
    kept.data.started = "2026-01-31T04:00:10Z", kept.data.ended = "2026-01-31T04:00:20Z";
    lost.data.started = "2026-01-31T04:00:30Z", lost.data.ended = "2026-01-31T04:00:40Z";
    lost.data.state = CaseState::incomplete;
    writer.add_case(kept);
    writer.add_case(lost);
    // Events count from the first case on, 10 s after the file was opened.
    writer.add_event({0, -1, "launch-warn", "of the launch"});
    writer.add_event({0, 0, "launch-info", "little memory", "uncovered"});
    writer.add_event({0.5, 1, "xid", "of the first"});
    writer.add_event({6, -1, "launch-fail", "found by the first"});
    writer.add_event({25, 1, "xid", "of the second"});
    writer.add_event({26, -1, "launch-fail", "found by the second"});
    writer.finish(example::verdict(14), "complete");
  }
  // Again and again: what was taken over once is by the clock of the first.
  auto from = dir / "run.h5";
  for (const char* name : {"next.h5", "last.h5"}) {
    auto next = start;
    next.info.started = "2026-01-31T05:00:00Z";
    Writer writer = Writer::create(dir / name, next, false);
    carry_over(writer, load_earlier(from), next);
    std::vector<std::string> texts;
    for (const auto& e : load(partial_of(dir / name)).events)
      if (e.kind != "resumed") texts.push_back(e.text);
    EXPECT_THAT(texts, testing::ElementsAre("little memory", "of the first", "found by the first",
                                            "found by the second"))
        << name;
    writer.finish(example::verdict(14), "complete");
    from = dir / name;
  }
}

TEST(CarryOver, OptionsAreToldAsTheyAreTyped) {
  const auto told = [](const char* name, const Json& before, const Json& after) {
    Writer::Start then = example::start(14), now = then;
    then.config[name] = before;
    now.config[name] = after;
    return carry_over_problem(then, now);
  };
  EXPECT_EQ(told("gemm.dtypes", nullptr, {"fp32", "fp64"}), "--gemm.dtypes is fp32,fp64, and was not given");
  EXPECT_EQ(told("gemm.dtypes", {"fp32", "fp64"}, Json::array()),
            "--gemm.dtypes is not given, and was fp32,fp64");
  EXPECT_EQ(told("threads", 2, 4), "--threads is 4, and was 2");
  EXPECT_EQ(told("share-gpus", false, true), "--share-gpus is given, and was not given");
  EXPECT_EQ(told("share-gpus", nullptr, false), "");
  EXPECT_EQ(told("limits_text", "", "[[limit]]"), "--limits is given, and was not given");
  EXPECT_EQ(told("limits_text", "[[limit]]", "[[limits]]"),
            "the content of the file of --limits has changed");
}

}  // namespace
}  // namespace assay::results
