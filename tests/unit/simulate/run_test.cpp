// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <memory>

#include "measure/statistics.hpp"
#include "results/json_io.hpp"
#include "results/reader.hpp"
#include "results/save.hpp"
#include "results/schema.hpp"
#include "results/writer.hpp"
#include "simulate/cases.hpp"
#include "tests/unit/expect_error.hpp"
#include "verdict/verdict.hpp"

namespace {
std::atomic<int> syncs{0};
}

/// In place of the C library's: how often something waits for the disk.
extern "C" int fsync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace assay::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Spec spec_of(std::int64_t nodes, std::int64_t devices, const std::vector<std::string>& metrics) {
  Spec spec;
  spec.nodes = nodes;
  spec.devices_per_node = devices;
  spec.metrics = pick_metrics(metrics);
  return spec;
}

const results::CaseData& case_named(const results::Results& r, const std::string& path) {
  const auto it =
      std::find_if(r.cases.begin(), r.cases.end(), [&](const auto& c) { return c.path() == path; });
  if (it == r.cases.end()) throw std::runtime_error("no case " + path);
  return *it;
}

/// Medians of a metric per entity.
std::vector<double> medians(const results::CaseData& c, const std::string& metric) {
  std::vector<double> out;
  const auto values = c.find(metric)->values.held();
  for (std::size_t e = 0; e < c.entities(); ++e)
    out.push_back(median({values.data() + e * c.samples(), c.samples()}));
  return out;
}

TEST(Simulate, TheSeedAndTheRunDecideEverything) {
  Spec spec = spec_of(4, 2, {"memory", "p2p"});
  const auto a = screen(spec), b = screen(spec);
  ASSERT_EQ(a.cases.size(), b.cases.size());
  for (std::size_t i = 0; i < a.cases.size(); ++i)
    EXPECT_EQ(a.cases[i].metrics[0].values, b.cases[i].metrics[0].values);
  spec.run = 1;
  const auto c = screen(spec);
  EXPECT_NE(a.cases[0].metrics[0].values, c.cases[0].metrics[0].values);
  // Another run measures the same machine: its spread of 0.5 % is there again, to the noise of a median.
  const auto first = medians(a.cases[0], "bandwidth"), second = medians(c.cases[0], "bandwidth");
  for (std::size_t e = 0; e < first.size(); ++e) EXPECT_NEAR(second[e] / first[e], 1, 0.005);
}

TEST(Simulate, ASlowDeviceIsSlowInEveryMetricThatTheFaultNames) {
  Spec spec = spec_of(6, 4, {"gemm/fp32-n4096-alone", "memory/triad-alone", "memory/latency-alone"});
  spec.between_cv = 0.001;
  spec.faults = {parse_fault("slow:node=2,device=3,percent=10,suite=memory")};
  const auto r = screen(spec);
  const auto ratio = [&](const char* path, const char* metric) {
    const auto m = medians(case_named(r, path), metric);
    return m[2 * 4 + 3] / median(m);
  };
  EXPECT_NEAR(ratio("memory/triad-alone", "bandwidth"), 0.9, 0.005);
  EXPECT_NEAR(ratio("memory/latency-alone", "latency"), 1 / 0.9, 0.006);
  EXPECT_NEAR(ratio("gemm/fp32-n4096-alone", "throughput"), 1, 0.005);
}

TEST(Simulate, DutyAndDriftChangeFromSampleToSample) {
  Spec spec = spec_of(3, 1, {"memory/triad-alone", "memory/copy-alone"});
  spec.samples = 200;
  spec.faults = {parse_fault("slow:node=0,percent=50,duty=0.3"), parse_fault("drift:node=1,percent=20")};
  const auto r = screen(spec);
  const auto& c = case_named(r, "memory/triad-alone");
  const auto v = c.find("bandwidth")->values.held();
  const double typical = median({v.data() + 2 * c.samples(), c.samples()});
  const auto hit = std::count_if(v.begin(), v.begin() + 200, [&](double x) { return x < 0.75 * typical; });
  EXPECT_NEAR(static_cast<double>(hit), 60, 26);  // four standard deviations of a binomial
  EXPECT_NEAR(v[200] / typical, 1, 0.02);
  // The second case ends when the run ends, with the whole drift.
  const auto last = case_named(r, "memory/copy-alone").find("bandwidth")->values.held();
  EXPECT_NEAR(last[399] / typical, 0.8, 0.02);
}

TEST(Simulate, ACommonDisturbanceSlowsASampleOfAllDevices) {
  Spec spec = spec_of(1, 3, {"memory/triad-together*"});
  spec.between_cv = spec.within_cv = 0;
  spec.common = 1;
  const auto c = screen(spec).cases[0];
  const auto values = c.metrics[0].values.held();
  for (std::size_t s = 0; s < c.samples(); ++s)
    for (std::size_t e = 1; e < 3; ++e) EXPECT_EQ(values[e * c.samples() + s], values[s]);
  EXPECT_NE(values[0], values[1]);
}

TEST(Simulate, TheClockExplainsTheRate) {
  Spec spec = spec_of(50, 1, {"gemm/fp32-n4096-alone"});
  spec.between_cv = 0.001;
  spec.clock_cv = 0.02;
  spec.faults = {parse_fault("throttle:node=7,percent=10")};
  const auto r = screen(spec);
  const auto& c = case_named(r, "gemm/fp32-n4096-alone");
  ASSERT_NE(c.find("clock"), nullptr);
  EXPECT_EQ(c.find("clock")->role, results::Role::covariate);
  const auto rate = medians(c, "throughput"), clock = medians(c, "clock");
  for (std::size_t e = 0; e < rate.size(); ++e)
    EXPECT_NEAR(std::log(rate[e] / rate[0]), clock_slope * std::log(clock[e] / clock[0]), 0.008) << e;
  EXPECT_LT(clock[7] / median(clock), 0.96);
}

/// The same samples lose clock and rate.
TEST(Simulate, AThrottleOfSomeDutyHitsThatShareOfTheSamples) {
  Spec spec = spec_of(8, 1, {"gemm/fp32-n4096-alone"});
  spec.clock_cv = 0.01;
  spec.samples = 400;
  spec.faults = {parse_fault("throttle:node=7,percent=30,duty=0.25")};
  const auto r = screen(spec);
  const auto& c = case_named(r, "gemm/fp32-n4096-alone");
  const auto clock = c.find("clock")->values.held(), rate = c.find("throughput")->values.held();
  std::size_t hit = 0;
  for (std::size_t e = 0; e < c.entities(); ++e) {
    const double usual_clock = quantile({clock.data() + e * c.samples(), c.samples()}, 0.9),
                 usual_rate = quantile({rate.data() + e * c.samples(), c.samples()}, 0.9);
    for (std::size_t s = 0; s < c.samples(); ++s) {
      const double lost = std::log(clock[e * c.samples() + s] / usual_clock);
      EXPECT_NEAR(std::log(rate[e * c.samples() + s] / usual_rate), clock_slope * lost, 0.02) << e;
      if (lost > -0.1) continue;
      ++hit;
      EXPECT_EQ(e, 7U);
      EXPECT_NEAR(std::exp(lost), 0.7, 0.01);
    }
  }
  EXPECT_NEAR(static_cast<double>(hit), 100, 35);  // four standard deviations of a binomial
}

TEST(Simulate, HeavyNoiseIsOneSided) {
  Spec spec = spec_of(40, 1, {"memory/triad-alone"});
  spec.noise = Noise::heavy;
  spec.between_cv = 0;
  spec.within_cv = 0.001;
  spec.samples = 250;
  const auto r = screen(spec);
  const auto v = r.cases[0].find("bandwidth")->values.held();
  const double middle = median(v);
  const auto far = [&](double lo, double hi) {
    return std::count_if(v.begin(), v.end(), [&](double x) { return x / middle > lo && x / middle < hi; });
  };
  // 5 % of 10000 lose more than 2 % with probability exp(-0.2).
  EXPECT_NEAR(static_cast<double>(far(0, 0.98)), 409, 80);
  EXPECT_LT(far(1.02, 9), 10);
}

TEST(Simulate, AFreshMeasurementHasFreshNoiseAndTheSameTruth) {
  Spec spec = spec_of(8, 1, {"memory/triad-alone"});
  spec.faults = {parse_fault("slow:node=5,percent=8")};
  const Machine machine(spec);
  CaseSchedule schedule{"triad-alone.c1", 50, 1, 30, 5, true};
  const std::vector<std::int32_t> rows = {machine.device_row(2), machine.device_row(5)};
  const auto again = measure_devices(machine, spec.metrics[0], rows, schedule);
  const auto first = screen(spec);
  EXPECT_EQ(again.case_key, first.cases[0].case_key);
  const auto m = medians(again, "bandwidth"), before = medians(first.cases[0], "bandwidth");
  EXPECT_NEAR(m[1] / before[5], 1, 0.004);
  EXPECT_NE(again.metrics[0].values[0], first.cases[0].metrics[0].values[2 * 10]);
  EXPECT_NEAR(m[1] / m[0], 0.92, 0.02);
  EXPECT_EQ(again.block.back(), 4);
  EXPECT_GE(again.t[again.t.size() - 1] - again.t[0], 10);
}

TEST(Simulate, SamplesOfALinkAreSharedOutAmongItsRounds) {
  Spec spec = spec_of(4, 1, {"p2p/bandwidth-uni*"});
  const Machine machine(spec);
  auto entities = machine.entities();
  const auto known = entities.size();
  const auto a = machine.device_row(0), b = machine.device_row(1), c = machine.device_row(2);
  const Rounds rounds = {{{a, b}}, {{a, c}}, {{a, b}}};
  const auto data = measure_links(machine, spec.metrics[0], rounds, {"x.c1", 0, 1, 8, 4, true}, entities);
  ASSERT_EQ(data.entities(), 2u);
  EXPECT_EQ(entities.size(), known + 2);
  EXPECT_EQ(entities[known].name, "sim00/gpu0>sim01/gpu0");
  const auto round = data.find("round")->values.held();
  EXPECT_EQ(std::vector<double>(round.begin(), round.begin() + 8),
            (std::vector<double>{0, 0, 0, 0, 2, 2, 2, 2}));
  EXPECT_EQ(round[8], 1);
  // Known links keep their rows.
  measure_links(machine, spec.metrics[0], rounds, {"x.c2", 0, 1, 8, 4, true}, entities);
  EXPECT_EQ(entities.size(), known + 2);
}

TEST(Simulate, FaultsWithoutStatisticsAreFacts) {
  Spec spec = spec_of(6, 2, {"gemm", "memory"});
  spec.faults = {parse_fault("bitflip:node=3,device=1"), parse_fault("lost:node=5,device=0"),
                 parse_fault("missing:node=2,what=memory")};
  const auto r = run(spec);
  EXPECT_TRUE(r.info.injected);
  EXPECT_EQ(r.verdict->state, "FAIL");
  const auto find = [&](const char* kind) {
    const auto& f = r.verdict->findings;
    const auto it = std::find_if(f.begin(), f.end(), [&](const auto& x) { return x.kind == kind; });
    return it == f.end() ? std::string("none") : it->name;
  };
  EXPECT_EQ(find("corrupt"), "sim03/gpu1");
  EXPECT_EQ(find("lost"), "sim05/gpu0");
  EXPECT_EQ(r.errors.size(), 1u);
}

/// A loss inside nodes ends its node only; what nobody is left for was passed.
TEST(Simulate, ALossLeavesTheCasesOfOtherNodes) {
  Spec spec = spec_of(6, 1, {"memory"});
  spec.faults = {parse_fault("crash:node=5")};
  const auto one = run(spec);
  EXPECT_EQ(one.verdict->accounting.incomplete, 0);
  std::size_t open = 0;
  for (const auto& state : one.verdict->entities)
    if (one.entities[static_cast<std::size_t>(state.entity)].kind == "node")
      open += state.state == "INCONCLUSIVE" ? 1 : 0;
  EXPECT_EQ(open, 1U);
  spec.faults = {parse_fault("crash:node=0-5")};
  const auto all = run(spec);
  EXPECT_GT(all.verdict->accounting.incomplete, 0);
  for (const auto& c : all.cases)
    if (c.entity.empty()) {
      EXPECT_EQ(c.state, results::CaseState::incomplete) << c.path();
    }
}

/// The directory of a run that ends, with all of `r` in it.
results::Writer partial_of(const results::Results& r, const std::filesystem::path& file) {
  auto writer = results::Writer::create(
      file, {r.info, r.config, r.plan, r.environment, r.entities, r.inventory}, false);
  results::CaseBundle bundle;
  bundle.errors = r.errors, bundle.counters = r.counters, bundle.selftest = r.selftest;
  bundle.telemetry = r.telemetry, bundle.flags = r.flags;
  for (const auto& c : r.cases) {
    bundle.data = c;
    writer.add_case(bundle);
    bundle = {};
  }
  for (const auto& e : r.events) writer.add_event(e);
  return writer;
}

TEST(Simulate, ARunIsJudgedFromItsFilesAsFromMemory) {
  const auto dir = std::filesystem::temp_directory_path() / ("assay-lazy-" + std::to_string(::getpid()));
  std::filesystem::create_directories(dir);
  Spec spec = spec_of(24, 4, {"memory", "p2p", "gemm", "allreduce"});
  spec.samples = 40;
  spec.faults = {parse_fault("slow:node=1,percent=20"), parse_fault("drift:node=2,percent=20"),
                 parse_fault("throttle:node=7,percent=10")};
  spec.clock_cv = 0.01;
  const auto whole = run(spec);
  const auto writer = partial_of(whole, dir / "s.h5");
  constexpr std::size_t most_bytes = 256 << 10;
  const auto cache = std::make_shared<results::ValueCache>(most_bytes);
  const auto lazy = results::load_own_partial(writer.partial(), cache);
  std::size_t in_files = 0;
  for (const auto& c : lazy.cases)
    for (const auto& m : c.metrics) in_files += m.values.in_file() ? 1 : 0;
  EXPECT_GT(in_files, 10U);
  const auto text = [](const results::Results& r) {
    return results::dump(results::verdict_to_json(verdict::judge(r, verdict::options_from(r))));
  };
  const std::string judged = text(lazy);
  EXPECT_EQ(judged, text(results::load(writer.partial())));
  EXPECT_THAT(judged, HasSubstr("slow"));
  EXPECT_LE(cache->bytes(), most_bytes);
  EXPECT_GT(cache->bytes_read(), 4 * most_bytes) << "far more than it may hold";
  std::filesystem::remove_all(dir);
}

TEST(Simulate, IsStoredAsAValidFileThatSaysWhatItIs) {
  const auto dir = std::filesystem::temp_directory_path() / ("assay-simulate-" + std::to_string(::getpid()));
  std::filesystem::create_directories(dir);
  const auto file = dir / "s.h5";
  Spec spec = spec_of(3, 2, {"memory", "p2p", "gemm"});
  spec.faults = {parse_fault("bitflip:node=1")};
  const auto r = run(spec);
  results::save(r, file, false);
  EXPECT_THAT(results::check_file(file), IsEmpty());
  const auto back = results::load(file);
  EXPECT_EQ(back.cases.size(), r.cases.size());
  EXPECT_EQ(back.cases[0].metrics[0].values, r.cases[0].metrics[0].values);
  EXPECT_EQ(back.errors.size(), r.errors.size());
  EXPECT_EQ(back.selftest.size(), r.selftest.size());
  EXPECT_TRUE(back.config.contains("simulated"));
  EXPECT_TRUE(std::any_of(back.events.begin(), back.events.end(),
                          [](const auto& e) { return e.kind == "simulated"; }));
  EXPECT_EQ(verdict::judge(back, {}).state, r.verdict->state);
  EXPECT_THAT(usage_message([&] { results::save(r, file, false); }), HasSubstr("exists"));
  results::save(r, file, true);
  EXPECT_FALSE(std::filesystem::exists(file.string() + ".partial"));
  std::filesystem::remove_all(dir);
}

/// Twenty thousand metrics of another tool are twenty thousand cases: a file for each, on disk before the
/// next, takes a minute.
TEST(Simulate, ACaseOfAnImportIsNoFileOfItsOwn) {
  char name[] = "/tmp/assay-save-XXXXXX";
  const std::filesystem::path dir = ::mkdtemp(name);
  results::Results r = run(spec_of(2, 1, {"memory"}));
  const results::CaseData one = r.cases.front();
  for (int i = 0; i < 100; ++i) r.cases.emplace_back(one).name = "copy" + std::to_string(i);
  syncs = 0;
  results::save(r, dir / "run.h5", false);
  EXPECT_GT(syncs, 0);
  EXPECT_LT(syncs, 20);
  EXPECT_EQ(results::load(dir / "run.h5").cases.size(), r.cases.size());
  std::filesystem::remove_all(dir);
}

}  // namespace
std::vector<std::string> accused(const results::VerdictData& v) {
  std::vector<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity != "INFO") names.push_back(f.level + " " + f.name);
  return names;
}

TEST(Simulate, ACollectiveIsAsFastAsTheSlowestOfItsGroup) {
  Spec spec = spec_of(64, 2, {"allreduce"});
  const auto healthy = run(spec);
  EXPECT_THAT(accused(*healthy.verdict), IsEmpty());
  const auto& groups = case_named(healthy, "allreduce/allreduce-groups-16777216-mpi");
  ASSERT_NE(groups.find("group"), nullptr);
  EXPECT_EQ(groups.samples(), 4 * static_cast<std::size_t>(spec.samples));
  spec.faults = {parse_fault("slow:node=17,percent=20,suite=allreduce")};
  const auto slow = run(spec);
  const auto world = medians(case_named(slow, "allreduce/allreduce-world-16777216-mpi"), "busbw");
  EXPECT_NEAR(world[0] / medians(case_named(healthy, "allreduce/allreduce-world-16777216-mpi"), "busbw")[0],
              0.8, 0.05);
  ASSERT_EQ(accused(*slow.verdict), std::vector<std::string>{"node sim17"});
  EXPECT_THAT(slow.verdict->findings[0].text, HasSubstr("confirmed by new groups"));
  // Measured beside its pairs, a NIC is told by those.
  spec.metrics = pick_metrics({"allreduce", "p2p/bandwidth-uni*"});
  spec.faults = {parse_fault("slow:node=9,nic=0,percent=20")};
  const auto nic = run(spec);
  ASSERT_EQ(accused(*nic.verdict).size(), 1U);
  EXPECT_THAT(accused(*nic.verdict)[0], HasSubstr("sim09"));
  EXPECT_EQ(nic.verdict->findings[0].suite, "p2p");
}

}  // namespace assay::simulate
