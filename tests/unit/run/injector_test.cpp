// SPDX-License-Identifier: Apache-2.0
#include "run/injector.hpp"
#include "base/child_process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <csignal>

#include "run/fault_plan.hpp"
#include "tests/unit/expect_error.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

using fakes::SelfCommunicator;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Case case_of(const std::string& suite, const std::string& name) {
  Case c;
  c.suite = suite;
  c.name = name;
  c.operation = name.starts_with("latency") ? "latency" : name.starts_with("fp32") ? "product" : "other";
  c.faults.messages = suite == "p2p";
  c.faults.times = suite != "inventory";
  c.faults.targets = {suite == "p2p" ? "message" : suite};
  if (suite == "train") c.faults.targets = {"gradient", "parameter"};
  if (suite == "burn") c.faults.targets = {"gemm", "memory", "allreduce"};
  return c;
}

/// One rank with faults.
class Rank {
 public:
  explicit Rank(const std::vector<std::string>& texts, int rank = 0, std::uint64_t seed = 42)
      : injector_(parsed(texts), seed, {rank, "node0", 0, rank, 5, now_s()}, device_) {}
  Injector* operator->() { return &injector_; }
  void begin(const std::string& suite, const std::string& name) {
    injector_.begin_case(case_of(suite, name), {}, world_);
  }
  std::vector<std::string> end() {
    CaseRecord record;
    injector_.end_case(record);
    std::vector<std::string> texts;
    for (const auto& event : record.events_) {
      EXPECT_EQ(event.kind, "inject");
      EXPECT_EQ(event.entity, 5);
      texts.push_back(event.text);
    }
    return texts;
  }
  static std::vector<FaultSpec> parsed(const std::vector<std::string>& texts) {
    std::vector<FaultSpec> faults;
    for (const std::string& text : texts) faults.push_back(parse_fault(text));
    return faults;
  }

 private:
  fakes::HookedDevice device_;
  SelfCommunicator world_;
  Injector injector_;
};

double busy_since(double seconds) {
  const double begin = now_s();
  while (now_s() < begin + seconds) {
  }
  return begin;
}

TEST(Injector, SlowStretchesTheRegionByItsFactor) {
  Rank rank({"slow:rank=0,suite=gemm,factor=0.25"});
  rank.begin("gemm", "x");
  const double begin = busy_since(0.01);
  EXPECT_GE(rank->timed(begin, 1, false), 4.0 * 0.999);
  EXPECT_GE(now_s() - begin, 0.04);
  EXPECT_THAT(rank.end(), ElementsAre(HasSubstr("slow:rank=0,suite=gemm,factor=0.25: rank 0, gemm/x: ")));
  rank.begin("memory", "x");
  EXPECT_EQ(rank->timed(busy_since(0.001), 1, false), 1.0);
  EXPECT_THAT(rank.end(), IsEmpty());
  EXPECT_THAT(rank->never_fired(), IsEmpty());
}

TEST(Injector, APartThatIsSlowInItsWarmUpAloneWasHit) {
  Rank rank({"slow:factor=0.5"});
  rank.begin("gemm", "x");
  EXPECT_NEAR(rank->timed(busy_since(0.001), 1, true), 2, 0.01);
  rank.end();
  EXPECT_THAT(rank->never_fired(), IsEmpty());
}

TEST(Injector, OtherRanksAreHealthyAndOweNothing) {
  Rank rank({"slow:rank=1,factor=0.25"});
  rank.begin("gemm", "x");
  EXPECT_EQ(rank->timed(busy_since(0.001), 1, false), 1.0);
  EXPECT_THAT(rank.end(), IsEmpty());
  EXPECT_THAT(rank->never_fired(), IsEmpty());
}

TEST(Injector, AStepIsOneTimedRepetition) {
  Rank rank({"slow:factor=0.5,step=25"});
  rank.begin("gemm", "x");
  EXPECT_EQ(rank->timed(busy_since(0.001), 1, true), 1.0);  // a warm-up counts no steps
  EXPECT_EQ(rank->timed(busy_since(0.001), 20, false), 1.0);
  EXPECT_NEAR(rank->timed(busy_since(0.002), 20, false), 1.05, 0.0001);  // one of twenty takes twice as long
  EXPECT_EQ(rank->timed(busy_since(0.001), 20, false), 1.0);
  rank.end();
  rank.begin("gemm", "y");  // every case counts its own
  EXPECT_EQ(rank->timed(busy_since(0.001), 20, false), 1.0);
  EXPECT_GT(rank->timed(busy_since(0.001), 20, false), 1.0);
}

TEST(Injector, DutyHitsThatShareOfTheRepetitionsAndIsRepeatable) {
  const auto pattern = [](std::uint64_t seed) {
    Rank rank({"stall:seconds=1us,duty=0.25"}, 0, seed);
    rank.begin("gemm", "x");
    std::string hits;
    for (int i = 0; i < 400; ++i) hits += rank->timed(now_s() - 1.0, 1, false) > 1.0 ? 'x' : '.';
    return hits;
  };
  const std::string hits = pattern(42);
  EXPECT_EQ(hits, pattern(42));
  EXPECT_NE(hits, pattern(43));
  EXPECT_NEAR(static_cast<double>(std::count(hits.begin(), hits.end(), 'x')), 100, 40);
}

TEST(Injector, RampFallsFromFullRateToTheFactor) {
  Rank rank({"slow:factor=0.5,ramp=1000h"});  // now at its begin
  rank.begin("gemm", "x");
  EXPECT_NEAR(rank->timed(busy_since(0.001), 1, false), 1.0, 1e-3);
  Rank later({"slow:factor=0.5,ramp=1us"});  // over
  later.begin("gemm", "x");
  EXPECT_NEAR(later->timed(busy_since(0.001), 1, false), 2.0, 0.01);
}

TEST(Injector, AfterHoldsAFaultBack) {
  Rank rank({"slow:factor=0.5,after=1h", "throw:after=1h"});
  rank.begin("gemm", "x");
  EXPECT_EQ(rank->timed(busy_since(0.001), 1, false), 1.0);
  EXPECT_THAT(rank->never_fired(), ElementsAre("slow:factor=0.5,after=1h", "throw:after=1h"));
}

TEST(Injector, FlipsOneBitOncePerCaseWhereItIsTold) {
  Rank rank({"bitflip:target=gemm,word=3,bit=7,step=1"});
  std::vector<std::uint32_t> data(8, 0);
  rank.begin("gemm", "x");
  EXPECT_FALSE(rank->corrupt("memory", data.data(), data.size(), 4));
  EXPECT_FALSE(rank->corrupt("gemm", data.data(), data.size(), 4));
  EXPECT_TRUE(rank->corrupt("gemm", data.data(), data.size(), 4));
  EXPECT_FALSE(rank->corrupt("gemm", data.data(), data.size(), 4));
  EXPECT_THAT(data, ElementsAre(0, 0, 0, 128, 0, 0, 0, 0));
  EXPECT_THAT(rank.end(), ElementsAre(HasSubstr("bit 7 flipped in element 3 of 8")));
}

TEST(Injector, DrawsWordAndBitFromTheSeed) {
  const auto flipped = [](std::uint64_t seed, const std::string& more, int at_rank) {
    Rank rank({"bitflip:target=memory" + more}, at_rank, seed);
    std::vector<std::uint64_t> data(1000, 0);
    rank.begin("memory", "pattern-x");
    EXPECT_TRUE(rank->corrupt("memory", data.data(), data.size(), 8));
    int bits = 0;
    for (const std::uint64_t word : data) bits += std::popcount(word);
    EXPECT_EQ(bits, 1);
    return data;
  };
  EXPECT_EQ(flipped(1, "", 0), flipped(1, "", 0));
  EXPECT_NE(flipped(1, "", 0), flipped(2, "", 0));
  EXPECT_NE(flipped(1, "", 0), flipped(1, "", 1));
  EXPECT_EQ(flipped(1, ",seed=5", 0), flipped(2, ",seed=5", 0));
}

TEST(Injector, AWordThatIsNotThereIsAFaultThatNeverFired) {
  Rank rank({"bitflip:target=gemm,word=8", "bitflip:target=gemm,word=0,bit=40"});
  std::vector<float> data(8, 1.0f);
  rank.begin("gemm", "x");
  EXPECT_FALSE(rank->corrupt("gemm", data.data(), data.size(), 4));
  EXPECT_THAT(data, testing::Each(1.0f));
  EXPECT_EQ(rank->never_fired().size(), 2u);
}

TEST(Injector, NanIsANanInEveryFormat) {
  Rank rank({"nan:target=gemm,word=1"});
  std::vector<double> wide(3, 1.0);
  std::vector<float> narrow(3, 1.0f);
  rank.begin("gemm", "x");
  EXPECT_TRUE(rank->corrupt("gemm", wide.data(), wide.size(), 8));
  rank.end();
  rank.begin("gemm", "y");
  EXPECT_TRUE(rank->corrupt("gemm", narrow.data(), narrow.size(), 4));
  EXPECT_TRUE(std::isnan(wide[1]) && std::isnan(narrow[1]));
  EXPECT_EQ(wide[0] + wide[2] + narrow[0] + narrow[2], 4.0);
}

TEST(Injector, LosesMessages) {
  Rank rank({"drop:step=2"});
  rank.begin("p2p", "latency");
  EXPECT_FALSE(rank->lost(1));
  EXPECT_FALSE(rank->lost(1));
  EXPECT_TRUE(rank->lost(1));
  EXPECT_FALSE(rank->lost(1));
  rank.end();
  rank.begin("gemm", "x");
  EXPECT_FALSE(rank->lost(1));
}

TEST(Injector, HoldsBackTheOneLink) {
  Rank rank({"slowlink:pair=3>0,factor=0.2"});
  rank.begin("p2p", "x");
  EXPECT_DOUBLE_EQ(rank->hold_back_s(3, 0.1), 0.4);
  EXPECT_EQ(rank->hold_back_s(2, 0.1), 0);
  EXPECT_THAT(rank.end(), ElementsAre(HasSubstr("transfer from rank 3 held back, 0.400000 s in all")));
}

TEST(Injector, ThrowsAtTheStartOfTheCaseOrAtAStep) {
  Rank rank({"throw:suite=gemm", "nomem:suite=memory", "throw:suite=p2p,step=3"});
  const auto message = [&](const std::string& suite) -> std::string {
    try {
      rank.begin(suite, "x");
    } catch (const Error& e) {
      rank.end();
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(message("gemm"), names({"rank 0", "injected exception", "gemm/x"}));
  EXPECT_THAT(message("memory"), names({"rank 0", "injected allocation", "memory/x"}));
  EXPECT_EQ(message("p2p"), "");
  EXPECT_EQ(rank->timed(now_s(), 3, false), 1.0);
  EXPECT_THROW(rank->timed(now_s(), 3, false), Error);
}

/// What becomes of a process in which the fault strikes.
int fate(const std::string& text) {
  ChildProcess child("a rank", [&] {
    Rank rank({text});
    rank.begin("gemm", "x");
    return 99;
  });
  if (text == "hang") {
    usleep(200'000);
    EXPECT_FALSE(child.ended()) << "it does not hang";
    child.kill(SIGTERM);
  }
  return child.wait();
}

TEST(Injector, EndsTheProcess) {
  const int exited = fate("exit:code=7");
  EXPECT_TRUE(WIFEXITED(exited));
  EXPECT_EQ(WEXITSTATUS(exited), 7);
  const int killed = fate("crash");
  EXPECT_TRUE(WIFSIGNALED(killed));
  EXPECT_EQ(WTERMSIG(killed), SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(fate("hang")));
}

TEST(Injector, AWrongClockDrifts) {
  Rank rank({"clock:ppm=1000,offset_s=5"});
  const double t = now_s() + 100;
  EXPECT_TRUE(rank->wrong_clock());
  EXPECT_NEAR(rank->clock_drift_s(t), 0.1, 0.001);
  EXPECT_NEAR(rank->clock_error_s(t), 5.1, 0.001);
  EXPECT_FALSE(Rank({"hang:rank=1"})->wrong_clock());
}

TEST(Injector, FullDiskAccusesNoRank) {
  Rank rank({"diskfull:after_bytes=1MiB", "hang"});
  EXPECT_THAT(rank->never_fired(), ElementsAre("hang"));
}

class OneSuite final : public Suite {
 public:
  std::string_view name() const noexcept override { return "p2p"; }
  std::string_view summary() const noexcept override { return "for tests"; }
  std::vector<OptionSpec> options() const override { return {}; }
  FaultPoints fault_points() const override { return {{"message"}, true}; }
  std::vector<results::MetricSpec> metrics() const override {
    results::MetricSpec rate{"throughput", "FLOP/s", results::Better::higher},
        latency{"latency", "s", results::Better::lower};
    rate.operation = "product";
    latency.operation = "latency";
    return {rate, latency};
  }
  std::vector<Case> plan(const PlanInput&) const override { return {}; }
  void run(const Case&, Context&) override {}
};

std::string check(const std::string& text) {
  Plan plan;
  plan.cases = {case_of("p2p", "fp32-n64-alone"), case_of("p2p", "latency-8"), case_of("p2p", "bandwidth-8")};
  plan.cases.back().not_applicable = "one rank";
  std::vector<std::unique_ptr<Suite>> suites;
  suites.push_back(std::make_unique<OneSuite>());
  try {
    check_faults({parse_fault(text)}, plan, fakes::cluster({2, 2}), suites);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    return e.what();
  }
  return "";
}

TEST(FaultPlan, NamesATargetThatNoSuiteOffers) {
  std::vector<std::unique_ptr<Suite>> suites;
  suites.push_back(std::make_unique<OneSuite>());
  EXPECT_NO_THROW(check_targets({parse_fault("nan:target=message"), parse_fault("drop")}, suites));
  try {
    check_targets({parse_fault("bitflip:target=disk")}, suites);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), names({"--inject: target=disk", "message"}));
  }
}

TEST(FaultPlan, NamesAFaultThatNothingPlannedMatches) {
  EXPECT_EQ(check("hang:rank=3,node=node1,device=1"), "");
  EXPECT_THAT(check("hang:rank=4"), names({"--inject: hang:rank=4:", "4 ranks"}));
  EXPECT_THAT(check("hang:rank=3,node=node0"), names({"--inject: hang:rank=3,node=node0:", "4 ranks"}));
  EXPECT_THAT(check("slowlink:pair=3>4,factor=0.5"),
              names({"--inject: slowlink:pair=3>4,factor=0.5:", "4 ranks"}));
  EXPECT_THAT(check("slowlink:pair=4>3,factor=0.5"),
              names({"--inject: slowlink:pair=4>3,factor=0.5:", "4 ranks"}));
  EXPECT_THAT(check("hang:suite=gemm"), names({"--inject: hang:suite=gemm:", "planned"}));
  EXPECT_THAT(check("hang:case=bandwidth-*"), names({"--inject: hang:case=bandwidth-*:", "planned"}));
  EXPECT_THAT(check("bitflip:target=gemm"), names({"--inject: bitflip:target=gemm:", "planned"}));
  EXPECT_THAT(check("bitflip:target=gradient"), names({"--inject: bitflip:target=gradient:", "planned"}));
  EXPECT_EQ(check("bitflip:target=message"), "");
  EXPECT_EQ(check("drop"), "");
  EXPECT_EQ(check("hang:metric=latency"), "");
  EXPECT_THAT(check("hang:metric=latency,case=fp32-*"),
              names({"--inject: hang:metric=latency,case=fp32-*:", "planned"}));
  EXPECT_EQ(check("hang:metric=through*,case=fp32-*"), "");
  EXPECT_EQ(check("diskfull"), "");
  EXPECT_EQ(check("clock:ppm=1"), "");
}

}  // namespace
}  // namespace assay
