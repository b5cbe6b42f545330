// SPDX-License-Identifier: Apache-2.0
// A case that did not end well runs again. What it showed that no later measurement takes back stays.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "base/error.hpp"
#include "results/carry.hpp"
#include "results/described.hpp"
#include "results/disk.hpp"
#include "results/facts.hpp"
#include "results/reader.hpp"
#include "results/schema.hpp"
#include "results/writer.hpp"
#include "tests/results/example_results.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay::results {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int few_cases = 4;

class FactsOfACase : public testing::Test {
 protected:
  /// Without what the examples have of their own.
  static CaseBundle clean(int i) {
    CaseBundle b = example::bundle(i);
    b.errors.clear(), b.counters.clear();
    b.data.state = CaseState::pass;
    b.data.reason.clear();
    return b;
  }
  /// One in `state` whose device gave a wrong value and counted an error.
  static CaseBundle faulty(int i, CaseState state = CaseState::error) {
    CaseBundle b = clean(i);
    b.data.state = state;
    Miscompare wrong;
    wrong.case_path = b.data.path();
    wrong.entity = 4, wrong.expected = 1, wrong.actual = 3;
    b.errors = {wrong};
    b.counters = {{b.data.path(), 1, "edac_ue", 0, 1},
                  {b.data.path(), 1, "edac_ce", 5, 5},
                  {b.data.path(), 1, "tx_bytes", 0, 1e9},
                  {b.data.path(), 1, "core_throttle_count", 0, 3}};
    return b;
  }
  void leave_behind(const std::vector<CaseBundle>& bundles, const std::vector<EventRow>& events = {}) const {
    Writer writer = Writer::create(file_, example::start(few_cases), false);
    for (const CaseBundle& b : bundles) writer.add_case(b);
    for (const EventRow& e : events) writer.add_event(e);
    release(partial_);
  }
  static std::vector<std::string> counters_of(const Results& r) {
    std::vector<std::string> out;
    for (const CounterRow& row : r.counters) out.push_back(row.counter);
    return out;
  }
  static std::vector<std::string> texts_of(const Results& r) {
    std::vector<std::string> out;
    for (const EventRow& e : r.events)
      if (e.kind != "resumed") out.push_back(e.text);
    return out;
  }

  const TemporaryFolder folder_;
  const fs::path dir_ = folder_.path(), file_ = dir_ / "run.h5", partial_ = partial_of(file_);
};

TEST_F(FactsOfACase, StayWhenItRunsAgainInPlace) {
  leave_behind({clean(0), faulty(1)});
  {
    Writer writer = Writer::resume(partial_, example::start(few_cases), false);
    EXPECT_FALSE(writer.stored().contains(clean(1).data.path()));
    writer.go_on();
    CaseBundle again = clean(1);
    again.counters = {{again.data.path(), 1, "tx_bytes", 0, 7}};
    writer.add_case(again);
    release(partial_);
  }
  // And once more, should that attempt not be the last.
  Writer::resume(partial_, example::start(few_cases), false).discard();
  const Results r = load(partial_);
  ASSERT_THAT(r.cases, SizeIs(2));
  EXPECT_EQ(r.cases[1].state, CaseState::pass);
  ASSERT_THAT(r.errors, SizeIs(1));
  EXPECT_EQ(r.errors[0].actual, 3U);
  // What moved and what was throttled belongs to samples that are replaced.
  EXPECT_THAT(counters_of(r), ElementsAre("edac_ue", "tx_bytes"));
  EXPECT_EQ(r.counters[1].after, 7);
}

TEST_F(FactsOfACase, GoWithThoseThatAreTakenOver) {
  leave_behind({clean(0), faulty(1)});
  Writer writer = Writer::create(dir_ / "next.h5", example::start(few_cases), false);
  carry_over(writer, load_earlier(partial_), example::start(few_cases));
  EXPECT_THAT(writer.stored(), ElementsAre(clean(0).data.path()));
  // Where it does not run again, the earlier attempt stands.
  Results r = load(partial_of(dir_ / "next.h5"));
  ASSERT_THAT(r.cases, SizeIs(2));
  EXPECT_EQ(r.cases[1].state, CaseState::error);
  EXPECT_THAT(r.errors, SizeIs(1));
  writer.add_case(clean(1));
  r = load(partial_of(dir_ / "next.h5"));
  ASSERT_THAT(r.cases, SizeIs(2));
  EXPECT_EQ(r.cases[1].state, CaseState::pass);
  EXPECT_THAT(r.errors, SizeIs(1));
  EXPECT_THAT(counters_of(r), ElementsAre("edac_ue"));
}

TEST_F(FactsOfACase, StandsThoughItIsNotPlannedAnyMoreFromRunToRun) {
  leave_behind({clean(0), faulty(1), faulty(2, CaseState::pass)});
  auto plan = example::start(few_cases).plan;
  plan.erase(plan.begin() + 1, plan.begin() + 3);
  fs::path from = partial_;
  for (const char* name : {"next.h5", "last.h5"}) {
    auto now = example::start(few_cases);
    now.plan = plan;
    const Results earlier = load_earlier(from);
    extend_start(earlier, now);
    Writer writer = Writer::create(dir_ / name, now, false);
    carry_over(writer, earlier, now);
    from = partial_of(dir_ / name);
    const Results r = load(from);
    EXPECT_THAT(r.cases, SizeIs(3)) << name;
    EXPECT_THAT(r.errors, SizeIs(2)) << name;
    EXPECT_EQ(std::ranges::count(counters_of(r), "edac_ue"), 2) << name;
    release(from);
  }
}

TEST_F(FactsOfACase, AFailedOneStandsThoughItIsNotPlannedAnyMore) {
  CaseBundle failed = clean(1);
  failed.data.state = CaseState::fail;
  leave_behind({clean(0), failed});
  auto now = example::start(few_cases);
  now.plan[1].state = "not_applicable";
  const Results earlier = load_earlier(partial_);
  extend_start(earlier, now);
  Writer writer = Writer::create(dir_ / "next.h5", now, false);
  carry_over(writer, earlier, now);
  writer.finish(example::verdict(few_cases), "complete");
  const Results r = load(dir_ / "next.h5");
  ASSERT_THAT(r.cases, SizeIs(2));
  EXPECT_EQ(r.cases[1].state, CaseState::fail);
  EXPECT_THAT(check_file(dir_ / "next.h5"), IsEmpty());
}

TEST_F(FactsOfACase, LeavesTheRestOfTheEarlierRunWhenItRunsAgain) {
  CaseBundle unfinished = faulty(1);
  unfinished.telemetry = {};
  leave_behind({unfinished, clean(0)});  // clean(0) brings the links of its rows
  auto now = example::start(few_cases);
  const Results earlier = load_earlier(partial_);
  extend_start(earlier, now);
  Writer writer = Writer::create(dir_ / "next.h5", now, false);
  carry_over(writer, earlier, now);
  writer.add_case(clean(1));
  const Results r = load(partial_of(dir_ / "next.h5"));
  EXPECT_EQ(r.telemetry.t.size(), earlier.telemetry.t.size() + clean(1).telemetry.t.size());
  EXPECT_THAT(r.flags, SizeIs(earlier.flags.size() + clean(1).flags.size()));
  EXPECT_TRUE(std::ranges::none_of(r.entities, [](const Entity& e) { return e.name.starts_with("lost:"); }));
}

TEST_F(FactsOfACase, OfPartsThatAreNotInTheRunStandWithThem) {
  CaseBundle links = faulty(0);  // which brings links
  links.errors[0].entity = links.data.entity[0];
  leave_behind({links, clean(1)});
  auto now = example::start(few_cases);
  now.plan[0].state = "not_applicable";
  const Results earlier = load_earlier(partial_);
  extend_start(earlier, now);
  Writer writer = Writer::create(dir_ / "next.h5", now, false);
  carry_over(writer, earlier, now);
  const Results r = load(partial_of(dir_ / "next.h5"));
  ASSERT_THAT(r.cases, SizeIs(2));
  ASSERT_THAT(r.errors, SizeIs(1));
  EXPECT_EQ(r.entities[static_cast<std::size_t>(r.errors[0].entity)].kind, "link");
}

TEST_F(FactsOfACase, ARetestThatDidNotEndRunsAgainUnderItsName) {
  CaseBundle again = faulty(1, CaseState::incomplete);
  again.data.name += ".c1";
  for (auto* row : {&again.errors[0].case_path}) *row = again.data.path();
  leave_behind({clean(1), again});
  auto now = example::start(few_cases);
  const Results earlier = load_earlier(partial_);
  extend_start(earlier, now);
  Writer writer = Writer::create(dir_ / "next.h5", now, false);
  carry_over(writer, earlier, now);
  EXPECT_FALSE(writer.stored().contains(again.data.path()));
  CaseBundle ended = clean(1);
  ended.data.name = again.data.name;
  writer.add_case(ended);
  EXPECT_THAT(load(partial_of(dir_ / "next.h5")).errors, SizeIs(1));
}

TEST_F(FactsOfACase, WhatCouldNotBeReadIsToldOn) {
  leave_behind({faulty(1), clean(0)});
  fs::resize_file(cases_directory(partial_) / "000000.h5", 3000);
  auto now = example::start(few_cases);
  const Results earlier = load_earlier(partial_);
  extend_start(earlier, now);
  Writer writer = Writer::create(dir_ / "next.h5", now, false);
  carry_over(writer, earlier, now);
  EXPECT_TRUE(has_damage(load(partial_of(dir_ / "next.h5")).events));
}

TEST_F(FactsOfACase, ADirectoryThatLacksSomeOfTheEarlierRunIsNotResumed) {
  leave_behind({clean(0)});
  auto now = example::start(few_cases);
  const Results earlier = load_earlier(partial_);
  const fs::path next = partial_of(dir_ / "next.h5");
  {
    Writer writer = Writer::create(dir_ / "next.h5", now, false);
    writer.inject_disk_full(100);
    EXPECT_THROW(carry_over(writer, earlier, now), Error);
    release(next);
  }
  EXPECT_TRUE(was_taking_over(next));
  EXPECT_THROW(Writer::resume(next, now, false), Error);
  Writer writer = Writer::create(dir_ / "next.h5", now, true);
  carry_over(writer, earlier, now);
  EXPECT_FALSE(was_taking_over(next));
}

TEST_F(FactsOfACase, WhatTheLaunchFoundOfANodeThatIsLeftOutIsToldOn) {
  leave_behind({clean(0)}, {{0, 1, "launch-fail", "here again", "missing"},
                            {0, 2, "launch-fail", "left out", "missing"},
                            {0, 2, "launch-warn", "no fault", "uneven"}});
  auto now = example::start(few_cases);
  for (Entity& e : now.entities)
    if (e.parent == 2) e.rank = -1;  // of node02
  const std::size_t parts = now.entities.size();
  const Results earlier = load_earlier(partial_);
  extend_start(earlier, now);
  EXPECT_THAT(now.entities, SizeIs(parts));
  Writer writer = Writer::create(dir_ / "next.h5", now, false);
  carry_over(writer, earlier, now);
  EXPECT_THAT(texts_of(load(partial_of(dir_ / "next.h5"))), ElementsAre("left out"));
}

TEST_F(FactsOfACase, ACaseFileThatCannotBeReadIsToldAndKept) {
  leave_behind({clean(0), clean(1)});
  fs::resize_file(cases_directory(partial_) / "000001.h5", 3000);
  // Of two that resume, the first ends before it tells.
  Writer::resume(partial_, example::start(few_cases), false).discard();
  Writer writer = Writer::resume(partial_, example::start(few_cases), false);
  writer.go_on();
  for (int i = 1; i < few_cases; ++i) writer.add_case(clean(i));
  writer.finish(example::verdict(few_cases), "complete");
  EXPECT_TRUE(has_damage(load(file_).events));
  EXPECT_TRUE(fs::exists(cases_directory(partial_) / "000001.h5.damaged"));
}

TEST_F(FactsOfACase, AreThoseOfErrorsOnly) {
  EXPECT_TRUE(facts_of(clean(1)).empty());
  CaseBundle b = clean(1);
  b.counters = {{b.data.path(), 1, "edac_ue", 3, 3}, {b.data.path(), 1, "edac_ce", 3, not_taken}};
  EXPECT_TRUE(facts_of(b).empty());
}

TEST(Publish, ALinkWhoseAnswerWasLostIsOurs) {
  const TemporaryFolder folder;
  const fs::path from = folder.path() / "merged.h5", to = folder.path() / "run.h5";
  std::ofstream(from) << "results";
  fs::create_hard_link(from, to);
  publish(from, to, false);
  EXPECT_FALSE(fs::exists(from));
  std::ofstream(from) << "others";
  EXPECT_THROW(publish(from, to, false), Error);
}

}  // namespace
}  // namespace assay::results
