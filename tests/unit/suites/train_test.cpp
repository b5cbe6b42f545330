// SPDX-License-Identifier: Apache-2.0
// Plan and whole cases of the training suite on one rank.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "measure/statistics.hpp"
#include "run/injector.hpp"
#include "suites/train/preset.hpp"
#include "suites/train/step_log.hpp"
#include "suites/train/train_suite.hpp"
#include "suites/train/train_work.hpp"
#include "suites/train/trust.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

/// Every option is in the table, given or not.
Config config_of(const TrainSuite& suite, Level level,
                 const std::map<std::string, std::vector<std::string>>& given = {}) {
  Config config = fakes::config_of(suite, level, given);
  for (const OptionSpec& spec : suite.options())
    if (!given.contains(spec.name) && spec.default_text.empty()) config.options.set(spec, {});
  return config;
}

TEST(TrainPlan, RequiredCasesFitTheirLevels) {
  TrainSuite suite;
  for (const auto& [level, most_s] :
       {std::pair{Level::smoke, 1.0}, {Level::quick, 20.0}, {Level::standard, 250.0}})
    for (const int ranks : {1, 2, 4}) {
      const Config config = config_of(suite, level);
      const Topology topology = fakes::cluster({1, ranks, 1, 2});
      const auto cases = suite.plan({config, topology, std::uint64_t{4} << 30, 7});
      EXPECT_TRUE(fakes::legal_and_unique(cases));
      EXPECT_LE(fakes::expected_s(cases), most_s) << to_string(level) << " " << ranks;
      EXPECT_TRUE(fakes::find(cases, "selftest-train")->required);
      const Case* alone = fakes::find(cases, "tiny-alone");
      ASSERT_EQ(alone == nullptr, level == Level::smoke);
      if (alone == nullptr) continue;
      EXPECT_TRUE(alone->required && alone->serial) << "measured again in turns, like any part of a node";
      EXPECT_EQ(alone->stage, Stage::node_local);
      EXPECT_EQ(alone->entities, ranks);
    }
}

TEST(TrainPlan, SaysWhenMemoryIsShortAndRefusesNonsense) {
  TrainSuite suite;
  const Topology topology = fakes::cluster({});
  const auto cases = suite.plan({config_of(suite, Level::standard), topology, 40u << 20, 7});
  EXPECT_NE(fakes::find(cases, "small-together")->not_applicable.find("needs"), std::string::npos);
  EXPECT_EQ(fakes::find(cases, "tiny-together")->not_applicable, "");
  EXPECT_THROW(config_of(suite, Level::quick, {{"train.steps", {"0"}}}), Error);
}

/// Times of a step with two passes: 4 s of reductions each, of which 1 s was waited for, and new weights for
/// all after the last one.
TEST(TrainStep, WhatIsExposedIsComparedWithAllCommunication) {
  train::StepReport step;
  step.add_communication(4, 1, 0);
  step.add_communication(4, 1, 2);
  EXPECT_EQ(step.exposed_s, 4);
  EXPECT_EQ(step.communication_s, 10);
  EXPECT_DOUBLE_EQ(step.overlap(), 0.6);
  train::StepReport stream;  // which does not say how long its reductions take
  stream.add_communication(0, 1, 2);
  EXPECT_EQ(stream.exposed_s, 3);
  EXPECT_TRUE(std::isnan(stream.overlap()));
}

CaseRecord run_case(const std::string& name, const std::map<std::string, std::vector<std::string>>& given,
                    const std::vector<FaultSpec>& faults = {}) {
  TrainSuite suite;
  const Config config = config_of(suite, Level::quick, given);
  fakes::Bench bench(config);
  const auto cases = suite.plan({config, bench.topology(), 1u << 30, 7});
  const Case* c = fakes::find(cases, name);
  if (c == nullptr) throw std::runtime_error("no case " + name);
  bench.device.reserve(c->bytes);
  Injector injector(faults, 7, {0, "node0", 0, 0, bench.entities().device_of_rank(0), 0.0}, bench.device);
  fakes::SelfCommunicator world;
  if (!faults.empty()) {
    bench.injector = &injector;
    Case faulty = *c;
    faulty.faults = suite.fault_points();
    injector.begin_case(faulty, suite.metrics(), world);
  }
  bench.run(suite, *c);
  return bench.record;
}

/// Each segment of a soak tunes anew.
TEST(TrainCases, TellsWhatWasNotTunedInThisSegment) {
  TrainSuite suite;
  const Config config = config_of(suite, Level::quick);
  fakes::Bench bench(config);
  bench.device.gpu = true;
  const auto cases = suite.plan({config, bench.topology(), 1u << 30, 7});
  const Case& c = *fakes::find(cases, "selftest-train");
  bench.device.reserve(c.bytes);
  fakes::SelfCommunicator world;
  for (int segment = 1; segment <= 2; ++segment)
    suite.prepare({c}, config, bench.device, world, [] { return false; });
  bench.run(suite, c);
  EXPECT_EQ(bench.record.parameters_.at("products_not_tuned"),
            train::products_to_tune({c}, bench.device).size());
}

TEST(TrainCases, SelftestFindsTheFlippedBitInItsBucket) {
  const CaseRecord record = run_case("selftest-train", {});
  ASSERT_EQ(record.selftest_.size(), 1u);
  EXPECT_EQ(record.selftest_[0].caught, 1);
  EXPECT_EQ(record.selftest_[0].located, 1);
  EXPECT_EQ(record.selftest_[0].counted, 1);
  EXPECT_EQ(record.state_, results::CaseState::pass) << record.reason_;
}

TEST(TrainCases, SameSeedSameBits) {
  const CaseRecord a = run_case("tiny-together", {{"train.steps", {"3"}}}),
                   b = run_case("tiny-together", {{"train.steps", {"3"}}});
  ASSERT_EQ(a.rows_.size(), 1u);
  EXPECT_EQ(a.rows_[0].integers.at("digest_parameter").size(), 3u);
  EXPECT_EQ(a.rows_[0].integers.at("digest_parameter"), b.rows_[0].integers.at("digest_parameter"));
}

/// Nine samples of tiny-alone, however slow the machine is: as many as a retest case asks for.
CaseRecord run_alone(const std::vector<FaultSpec>& faults) {
  TrainSuite suite;
  const Config config = config_of(suite, Level::quick, {{"train.batch", {"1"}}});
  fakes::Bench bench(config);
  const auto cases = suite.plan({config, bench.topology(), 1u << 30, 7});
  Case c = *fakes::find(cases, "tiny-alone");
  c.seconds = 60;
  c.faults = suite.fault_points();
  bench.device.reserve(c.bytes);
  fakes::SelfCommunicator world;
  Injector injector(faults, 7, {0, "node0", 0, 0, bench.entities().device_of_rank(0), 0.0}, bench.device);
  injector.begin_case(c, suite.metrics(), world);
  RetestOrder nine;
  nine.samples = 9 * RetestOrder::visits;
  nine.devices = {bench.entities().device_of_rank(0)};
  Context context{{config, bench.topology(), bench.entities(), bench.device, world, world, nullptr},
                  RandomStream(7, c.path()),
                  now_s(),
                  now_s() + 600,
                  bench.record,
                  bench.entities().device_of_rank(0),
                  &injector,
                  &nine};
  suite.run(c, context);
  return bench.record;
}

/// The same step each time: a bit flipped in what one sample made is wrong in that sample, and only there.
TEST(TrainCases, AloneRepeatsOneStepBitByBit) {
  const CaseRecord good = run_alone({});
  EXPECT_EQ(good.state_, results::CaseState::pass) << good.reason_;
  ASSERT_EQ(good.rows_.size(), 3u) << "a row a visit";
  const auto& values = good.rows_[0].values;
  ASSERT_EQ(values.at("throughput").size(), 9u);
  EXPECT_EQ(values.at("errors"), std::vector<double>(9, 0.0));
  std::vector<double> ratios;  // of the sample to its stages; a median, because the machine may be busy
  for (std::size_t i = 0; i < 9; ++i)
    ratios.push_back(64 / values.at("throughput")[i] /
                     (values.at("data")[i] + values.at("forward")[i] + values.at("backward")[i] +
                      values.at("optimizer")[i]));
  EXPECT_NEAR(median(ratios), 1, 0.1);
  for (const char* target : {"gradient", "parameter"}) {
    const CaseRecord bad = run_alone({parse_fault(std::string("bitflip:step=2,target=") + target)});
    std::vector<double> errors(9, 0.0);
    errors[2] = 1;
    EXPECT_EQ(bad.rows_.at(0).values.at("errors"), errors) << target;
    ASSERT_EQ(bad.records_.size(), 1u) << target;
    EXPECT_EQ(bad.records_[0].index, 2u);
    EXPECT_EQ(bad.records_[0].reread, bad.records_[0].expected) << "right when repeated";
    EXPECT_EQ(bad.rows_[0].integers.at("digest"), good.rows_[0].integers.at("digest"));
  }
}

TEST(TrainCases, BrokenAttentionLeavesTheRegretBand) {
  const CaseRecord good = run_case("tiny-together", {{"train.steps", {"120"}}});
  EXPECT_EQ(good.state_, results::CaseState::pass) << good.reason_;
  const auto& regret = good.rows_.at(0).values.at("regret");
  EXPECT_GT(regret.front(), 1.7);
  EXPECT_LT(regret.back(), 1.4);
  const CaseRecord broken =
      run_case("tiny-together", {{"train.steps", {"120"}}, {"train.break", {"attention"}}});
  EXPECT_EQ(broken.state_, results::CaseState::fail);
  EXPECT_NE(broken.reason_.find("outside its band"), std::string::npos) << broken.reason_;
}

/// Rank `me` of several whose others always have the same digests.
class Scripted final : public fakes::SelfCommunicator {
 public:
  Scripted(int me, int ranks, std::uint64_t others) : me_(me), ranks_(ranks), others_(others) {}
  int rank() const noexcept override { return me_; }
  int size() const noexcept override { return ranks_; }
  void all_gather(const void* in, void* out, std::size_t bytes) override {
    auto* to = static_cast<std::uint64_t*>(out);
    for (int r = 0; r < ranks_; ++r)
      for (std::size_t i = 0; i < bytes / 8; ++i)
        *to++ = r == me_ ? static_cast<const std::uint64_t*>(in)[i] : others_;
  }

 private:
  int me_, ranks_;
  std::uint64_t others_;
};

/// Rank 1 of `ranks` saw `seen` where all others saw 5, and `repeated` when it tried again. The others have
/// devices of another kind.
CaseRecord trusted(int ranks, std::uint64_t seen, std::uint64_t repeated, train::Outcome& outcome,
                   train::Alike alike = train::Alike::all) {
  const Config config;
  const Topology topology = fakes::cluster({1, ranks, 1, 8});
  const EntityTable entities(topology);
  fakes::HookedDevice device;
  Scripted world(1, ranks, 5);
  CaseRecord record;
  Context context{{config, topology, entities, device, world, world, nullptr},
                  RandomStream(7, "c"),
                  0.0,
                  1e9,
                  record,
                  entities.device_of_rank(1)};
  std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks), 5);
  all[1] = seen;
  outcome = train::Trust(context, alike)
                .check(7, all, {"the parameters"}, alike == train::Alike::equal_devices,
                       [&] { return std::vector<std::uint64_t>{repeated}; });
  return record;
}

TEST(TrainTrust, TellsTransientFromPersistentAndSettlesTies) {
  train::Outcome outcome;
  EXPECT_TRUE(trusted(3, 5, 5, outcome).events_.empty());
  EXPECT_EQ(outcome.mine, 0);

  CaseRecord record = trusted(3, 6, 5, outcome);
  ASSERT_EQ(record.events_.size(), 1u);
  EXPECT_NE(record.events_[0].text.find("rank 1 (node0"), std::string::npos) << record.events_[0].text;
  EXPECT_NE(record.events_[0].text.find("at step 7 is wrong; transient"), std::string::npos)
      << record.events_[0].text;
  EXPECT_EQ(outcome.mine, 1);
  EXPECT_FALSE(outcome.lasting);

  record = trusted(3, 6, 6, outcome);
  EXPECT_NE(record.events_.at(0).text.find("persistent"), std::string::npos);
  EXPECT_TRUE(outcome.lasting);

  record = trusted(2, 6, 5, outcome);  // who cannot repeat himself was wrong
  EXPECT_EQ(record.miscompares_, 1u);
  EXPECT_EQ(record.records_.at(0).expected, 5u);

  record = trusted(2, 6, 6, outcome);  // both can: nobody knows
  EXPECT_EQ(record.miscompares_, 0u);
  EXPECT_EQ(record.state_, results::CaseState::fail);
  EXPECT_TRUE(outcome.lasting);
}

TEST(TrainTrust, ADeviceThatNoOtherEqualsIsHeldAgainstItsOwnRepetition) {
  train::Outcome outcome;
  CaseRecord record = trusted(3, 6, 6, outcome, train::Alike::equal_devices);
  EXPECT_EQ(record.miscompares_, 0U) << "another processor rounds in another way by right";
  EXPECT_EQ(record.state_, results::CaseState::pass);
  EXPECT_FALSE(outcome.lasting);

  record = trusted(3, 6, 7, outcome, train::Alike::equal_devices);
  EXPECT_EQ(outcome.mine, 1);
  EXPECT_EQ(record.records_.at(0).expected, 7U);

  record = trusted(2, 6, 6, outcome, train::Alike::equal_devices);
  EXPECT_EQ(record.state_, results::CaseState::pass) << record.reason_;
}

TEST(TrainCases, CheckpointsRestartBitByBitAndLeaveNothing) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("assay-scratch-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::map<std::string, std::vector<std::string>> options = {
      {"train.scratch", {folder.string()}}, {"train.checkpoint-every", {"2"}}, {"train.batch", {"1"}}};
  const CaseRecord record = run_case("tiny-checkpoint", options);
  EXPECT_EQ(record.state_, results::CaseState::pass) << record.reason_;
  const auto& values = record.rows_.at(0).values;
  EXPECT_EQ(values.contains("write") + values.contains("write_cached"), 1);
  EXPECT_EQ(values.at(values.contains("write") ? "write" : "write_cached").size(), 3u);
  EXPECT_EQ(values.at("errors"), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(record.parameters_.at("restarted_from"), 4);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  auto keep = options;
  keep["train.keep"] = {"true"};
  run_case("tiny-checkpoint", keep);
  EXPECT_FALSE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

/// Flips a bit of the shard of a step on its way through the file system: when it is complete, before anybody
/// reads it.
class Damaging final : public fakes::SelfCommunicator {
 public:
  Damaging(std::filesystem::path scratch, std::string step)
      : scratch_(std::move(scratch)), step_(std::move(step)) {}
  void barrier() override {
    if (done_) return;
    for (const auto& run : std::filesystem::directory_iterator(scratch_)) {
      if (!std::filesystem::exists(run.path() / step_ / "DONE")) continue;
      std::fstream file(run.path() / step_ / "shard-000000", std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(5000);
      const int old = file.get();
      file.seekp(5000);
      file.put(static_cast<char>(old ^ 4));
      done_ = true;
    }
  }

 private:
  std::filesystem::path scratch_;
  std::string step_;
  bool done_ = false;
};

TEST(TrainCases, ACorruptedShardIsFoundByTheRankThatReadsIt) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("assay-damage-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  TrainSuite suite;
  const Config config = config_of(
      suite, Level::quick,
      {{"train.scratch", {folder.string()}}, {"train.checkpoint-every", {"1"}}, {"train.batch", {"1"}}});
  const auto run = [&](const std::string& step) {
    fakes::Bench bench(config);
    const auto cases = suite.plan({config, bench.topology(), 1u << 30, 7});
    const Case& c = *fakes::find(cases, "tiny-checkpoint");
    bench.device.reserve(c.bytes);
    Damaging world(folder, step);
    Context context{{config, bench.topology(), bench.entities(), bench.device, world, world, nullptr},
                    RandomStream(7, c.path()),
                    now_s(),
                    now_s() + 60,
                    bench.record,
                    bench.entities().device_of_rank(0)};
    suite.run(c, context);
    return bench.record;
  };
  const CaseRecord record = run("step-000001");
  EXPECT_EQ(record.rows_.at(0).values.at("errors"), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(record.miscompares_, 1u);
  ASSERT_EQ(record.events_.size(), 1u);
  EXPECT_NE(record.events_[0].text.find("step-000001/shard-000000: digest"), std::string::npos)
      << record.events_[0].text;
  try {  // the one to start from again
    run("step-000002");
    FAIL() << "started again from a corrupted checkpoint";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("step-000002/shard-000000: digest"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST(TrainCases, AScratchThatCannotBeWrittenIsAClearError) {
  try {
    run_case("tiny-checkpoint", {{"train.scratch", {"/proc/nowhere"}}, {"train.batch", {"1"}}});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("--train.scratch: '/proc/nowhere'"), std::string::npos) << e.what();
  }
}

/// Any bit of any gradient is found in the step it was flipped in: 100 of 100.
TEST(TrainCases, FindsEveryFlippedBitInItsStep) {
  int found = 0;
  for (int n = 0; n < 100; ++n) {
    const int step = n % 2;
    const auto fault =
        parse_fault("bitflip:target=gradient,step=" + std::to_string(step) + ",seed=" + std::to_string(n));
    const CaseRecord record =
        run_case("tiny-lockstep", {{"train.steps", {"2"}}, {"train.batch", {"1"}}}, {fault});
    const auto& errors = record.rows_.at(0).values.at("errors");
    const bool there =
        errors.at(static_cast<std::size_t>(step)) == 1 && errors.at(static_cast<std::size_t>(1 - step)) == 0;
    found += there && record.miscompares_ == 1 && record.events_.size() == 1 &&
             record.events_[0].text.find("transient") != std::string::npos &&
             record.events_[0].text.find("at step " + std::to_string(step)) != std::string::npos;
  }
  EXPECT_EQ(found, 100);
}

}  // namespace
}  // namespace assay
