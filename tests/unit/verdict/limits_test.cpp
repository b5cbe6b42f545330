// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <stdexcept>

#include "base/error.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/propose_limits.hpp"
#include "verdict/retest/retest.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

std::string limit(const std::string& metric, const std::string& bound, const std::string& more = "") {
  return "[[limit]]\nmetric = \"" + metric + "\"\n" + bound + "\n" + more;
}

const char* const any_gemm = "gemm/fp32-n2048-*:throughput";

std::string usage_error(const std::string& text) {
  try {
    verdict::check_limits(text, "l.toml");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    return e.what();
  }
  return "no error";
}

TEST(VerdictLimits, MetLimitIsTheBasis) {
  const auto v = judge(healthy(), limit(any_gemm, "min = \"50 GFLOP/s\""));
  EXPECT_EQ(v.state, "PASS");
  EXPECT_THAT(v.basis, HasSubstr("limits 4,"));
}

TEST(VerdictLimits, LimitTenTimesTooHighFailsAndNamesMetricAndNodes) {
  const auto r = healthy();
  const auto v = judge(r, limit(any_gemm, "min = \"1 TFLOP/s\""));
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(v.exit_code, 2);
  ASSERT_EQ(v.findings.size(), 4U);
  for (const auto& f : v.findings) {
    EXPECT_EQ(f.claim, "magnitude");
    EXPECT_EQ(f.reference_kind, "limit");
    EXPECT_EQ(f.confirmed_by, "interval");
    EXPECT_EQ(f.evidence, "/cases/gemm/fp32-n2048-together/throughput");
    EXPECT_THAT(f.text, HasSubstr("gemm/fp32-n2048-together:throughput"));
    EXPECT_THAT(f.text, HasSubstr("n=6"));
    EXPECT_NEAR(f.deficit.value(), 0.9, 0.01);
  }
  for (const char* node : {"node0", "node1", "node2", "node3"}) EXPECT_EQ(state_of(r, v, node), "FAIL");
}

TEST(VerdictLimits, ManyNodesBelowAreOneFindingWithMembers) {
  const auto r = healthy(40);
  const auto v = judge(r, limit(any_gemm, "min = \"1 TFLOP/s\""));
  EXPECT_EQ(v.state, "FAIL");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].members.size(), 40U);
  EXPECT_THAT(v.findings[0].text, HasSubstr("node0/cores0-1"));
  EXPECT_EQ(state_of(r, v, "node39"), "FAIL");
}

// The example worked by hand in src/verdict/README.md.
TEST(VerdictLimits, WorkedExample) {
  auto r = healthy(1);
  auto& c = first_case(r);
  c.metrics[0].values = {94e9, 95e9, 96e9, 95e9, 94e9, 96e9};
  const auto v = judge(r, limit(any_gemm, "min = \"100 GFLOP/s\""));
  ASSERT_EQ(count_severity(v, "FAIL"), 1U);
  const auto& f = v.findings[0];
  EXPECT_DOUBLE_EQ(f.value.value(), 95e9);
  EXPECT_NEAR(f.deficit.value(), 0.05, 1e-12);
  // MAD 1, sigma 1.4826, se 1.2533 x 1.4826 / sqrt(6) = 0.7586, half width 1.4868 GFLOP/s.
  EXPECT_NEAR(f.ci_low.value(), 0.035132, 1e-5);
  EXPECT_NEAR(f.ci_high.value(), 0.064868, 1e-5);
  EXPECT_EQ(f.confirmed_by, "interval");
}

TEST(VerdictLimits, ProposedLimitsSayWhatTheyComeFrom) {
  auto r = healthy(4);
  auto proposed = verdict::propose_limits(r, "run.h5", "PASS");
  EXPECT_EQ(proposed.count, 1U);
  EXPECT_THAT(proposed.uncertain, testing::IsEmpty());
  EXPECT_THAT(proposed.text, testing::Not(HasSubstr("uncertain")));
  auto& c = first_case(r);
  for (std::size_t s = 0; s < 6; ++s) c.metrics[0].values[s] = s % 2 == 0 ? 6e10 : 1.4e11;
  proposed = verdict::propose_limits(r, "run.h5", "PASS");
  EXPECT_THAT(
      proposed.uncertain,
      testing::ElementsAre(testing::ContainsRegex("gemm/.*:throughput .medians are uncertain by [0-9.]+ %")));
  EXPECT_THAT(proposed.text, HasSubstr("# uncertain: medians are uncertain by"));
  c.count.assign(4, 2);
  EXPECT_THAT(verdict::propose_limits(r, "run.h5", "PASS").text,
              HasSubstr("# uncertain: of 2 samples per part"));
}

TEST(VerdictLimits, DeficitInsideItsIntervalOnlyWarns) {
  auto r = healthy(1);
  first_case(r).metrics[0].values = {80e9, 99e9, 120e9, 99e9, 85e9, 118e9};
  const auto v = judge(r, limit(any_gemm, "min = \"100 GFLOP/s\""));
  EXPECT_EQ(v.state, "WARN");
  ASSERT_EQ(count_severity(v, "WARN"), 1U);
  EXPECT_FALSE(v.findings[0].confirmed);
}

TEST(VerdictLimits, SmokeFailsOnlyOverTwentyPercent) {
  auto r = healthy(1);
  r.info.level = "smoke";
  EXPECT_EQ(judge(r, limit(any_gemm, "min = \"110 GFLOP/s\"")).state, "WARN");
  EXPECT_EQ(judge(r, limit(any_gemm, "min = \"150 GFLOP/s\"")).state, "FAIL");
}

TEST(VerdictLimits, MaximumOfATime) {
  auto r = healthy(2);
  add_case(r, "p2p", "latency-8-mpi", "latency", "s", results::Better::lower, "device",
           rows_of_kind(r, "device"), {2e-6, 4e-6});
  add_selftest(r, "pair");
  const auto v = judge(r, limit("p2p/latency-*:latency", "max = \"3 us\""));
  ASSERT_EQ(count_severity(v, "FAIL"), 1U);
  EXPECT_EQ(v.findings[0].name, "node1/cores0-1");
  EXPECT_NEAR(v.findings[0].deficit.value(), 0.25, 0.01);
}

TEST(VerdictLimits, DeviceGlobOnNameAndModel) {
  auto r = healthy();
  EXPECT_EQ(count_severity(judge(r, limit(any_gemm, "min = \"1 TFLOP/s\"", "device = \"node1*\"")), "FAIL"),
            1U);
  r.inventory["node"].entity = rows_of_kind(r, "node");
  r.inventory["node"].text["cpu_model"] = {"Xeon 1", "Xeon 1", "EPYC 2", "EPYC 2"};
  EXPECT_EQ(count_severity(judge(r, limit(any_gemm, "min = \"1 TFLOP/s\"", "device = \"EPYC*\"")), "FAIL"),
            2U);
  const auto v = judge(r, limit(any_gemm, "min = \"1 GFLOP/s\"", "device = \"Power*\""));
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(v), HasSubstr("Power*"));
}

TEST(VerdictLimits, AbsentIsNotZero) {
  const auto v = judge(healthy(), limit("gemm/fp64-*:throughput", "min = \"1 FLOP/s\""));
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(v), HasSubstr("gemm/fp64-*:throughput (limits.toml:1)"));
  auto r = healthy();
  first_case(r).required = r.plan[0].required = false;
  first_case(r).count[1] = 0;
  EXPECT_EQ(judge(r).state, "PASS");
  EXPECT_EQ(judge(r, limit(any_gemm, "min = \"1 GFLOP/s\"")).state, "INCONCLUSIVE");
}

TEST(VerdictLimits, UnitOfAnotherDimensionIsAnErrorNamingTheLine) {
  try {
    judge(healthy(), "\n\n" + limit(any_gemm, "min = \"1 GB/s\""));
    FAIL() << "accepted bytes for operations";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    EXPECT_THAT(e.what(), HasSubstr("limits.toml:3: "));
    EXPECT_THAT(e.what(), HasSubstr("throughput is in FLOP/s, not B/s"));
  }
}

TEST(VerdictLimits, PrefixesCount) {
  EXPECT_EQ(judge(healthy(), limit(any_gemm, "min = \"99 MFLOP/s\"")).state, "PASS");
  EXPECT_EQ(judge(healthy(), limit(any_gemm, "min = \"990 GFLOP/s\"")).state, "FAIL");
}

TEST(VerdictLimits, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(usage_error(limit(any_gemm, "min = \"150\"")), HasSubstr("l.toml:3: min: "));
  EXPECT_THAT(usage_error(limit(any_gemm, "min = 150")),
              HasSubstr("l.toml:3: min: write the quantity with its unit"));
  EXPECT_THAT(usage_error(limit(any_gemm, "min = \"150 furlongs\"")), HasSubstr("furlongs"));
  EXPECT_THAT(usage_error(limit(any_gemm, "mni = \"1 B/s\"")), HasSubstr("l.toml:3: mni: unknown key"));
  EXPECT_THAT(usage_error(limit(any_gemm, "")), HasSubstr("neither min nor max"));
  EXPECT_THAT(usage_error("[[limit]]\nmin = \"1 B/s\"\n"), HasSubstr("has no metric"));
  EXPECT_THAT(usage_error("[[limit]]\nmetric = \"gemm\"\nmin = \"1 B/s\"\n"),
              HasSubstr("SUITE/CASE-GLOB:METRIC"));
  EXPECT_THAT(usage_error(limit(any_gemm, "min = \"2 GB/s\"\nmax = \"1 GB/s\"")), HasSubstr("above max"));
  EXPECT_THAT(usage_error("[limits]\n"), HasSubstr("l.toml:1: limits: unknown key"));
  EXPECT_THAT(usage_error("[[limit]\n"), HasSubstr("l.toml:1: "));
  EXPECT_THAT(usage_error("# nothing\n"), HasSubstr("no [[limit]]"));
  EXPECT_EQ(usage_error(limit(any_gemm, "min = \"150 GFLOP/s\"")), "no error");
}

TEST(VerdictLimits, LimitsThatContradictEachOtherAreAnErrorNamingBoth) {
  const std::string low = limit(any_gemm, "min = \"2 GFLOP/s\"");
  for (const char* other : {any_gemm, "gemm/*:throughput", "gemm/fp32-n2048-together:throughput"})
    EXPECT_THAT(
        usage_error(low + limit(other, "max = \"1500 MFLOP/s\"")),
        HasSubstr(
            "l.toml:1: gemm/fp32-n2048-*:throughput: min 2 GFLOP/s is above max 1500 MFLOP/s of line 4"));
  EXPECT_EQ(usage_error(low + limit("gemm/fp64-*:throughput", "max = \"1 GFLOP/s\"")), "no error");
  EXPECT_EQ(usage_error(low + limit(any_gemm, "max = \"2 GFLOP/s\"")), "no error");
  EXPECT_THAT(usage_error(low + limit(any_gemm, "max = \"1 GFLOP/s\"", "device = \"n7*\"\n")),
              HasSubstr("line 4"));
}

TEST(VerdictLimits, KnownMetricsAreCheckedBeforeTheRun) {
  const verdict::SuiteMetrics known = {{"gemm", {{"throughput", "FLOP/s"}}},
                                       {"memory", {{"bandwidth", "B/s"}}}};
  EXPECT_NO_THROW(verdict::check_limits(limit(any_gemm, "min = \"1 FLOP/s\""), "l", known));
  EXPECT_THROW(verdict::check_limits(limit(any_gemm, "min = \"1 B/s\""), "l", known), Error);
  EXPECT_THROW(verdict::check_limits(limit("gem/*:throughput", "min = \"1 FLOP/s\""), "l", known), Error);
  EXPECT_THROW(verdict::check_limits(limit("gemm/*:bandwidth", "min = \"1 B/s\""), "l", known), Error);
  // A pattern is held against each suite that it matches.
  const verdict::SuiteMetrics two = {{"gemm", {{"throughput", "FLOP/s"}}},
                                     {"train", {{"throughput", "token/s"}}}};
  const auto check = [&](const std::string& metric) {
    verdict::check_limits(limit(metric, "min = \"1 FLOP/s\""), "l", two);
  };
  EXPECT_NO_THROW(check("g*/*:throughput"));
  EXPECT_THROW(check("*/*:throughput"), Error);
  EXPECT_THROW(check("t*/*:throughput"), Error);
  EXPECT_THROW(check("x*/*:throughput"), Error);
}

/// A fleet in which one breaks a limit, after what the verdict asked for was measured: at `now` times its
/// screened rate.
struct Again {
  results::Results r;
  verdict::Options options;
  std::vector<verdict::Retest> asked;
};
Again measured_again(double screened, double now, int blocks = 1) {
  Again a{healthy(3), {}, {}};  // too few to be peers
  auto& c = first_case(a.r);
  for (std::size_t s = 0; s < c.samples(); ++s) {
    c.metrics[0].values[2 * c.samples() + s] *= screened;
    c.block[s] = static_cast<std::int32_t>(s) * blocks / 6;
    for (std::size_t e = 0; e < c.entities(); ++e) c.t[e * c.samples() + s] = 20.0 * static_cast<double>(s);
  }
  a.options = verdict::options_from(a.r);
  a.options.limits_text = limit(any_gemm, "min = \"90 GFLOP/s\"");
  a.options.limits_name = "limits.toml";
  a.asked = verdict::retests(a.r, a.options);
  auto again = first_case(a.r);
  again.name += ".c1";
  for (std::size_t s = 0; s < again.samples(); ++s)
    again.metrics[0].values[2 * again.samples() + s] *= now / screened;
  a.r.cases.push_back(again);
  return a;
}

TEST(VerdictLimits, RetestDecidesAboutABrokenLimit) {
  const auto broken = measured_again(0.8, 0.81);
  ASSERT_EQ(broken.asked.size(), 1U);
  EXPECT_EQ(broken.asked[0].name, "fp32-n2048-together");
  EXPECT_EQ(broken.asked[0].candidates, std::vector{row_named(broken.r, "node2/cores0-1")});
  EXPECT_TRUE(verdict::retests(broken.r, broken.options).empty());
  const auto v = verdict::judge(broken.r, broken.options);
  EXPECT_EQ(v.state, "FAIL");
  ASSERT_EQ(count_severity(v, "FAIL"), 1U) << all_reasons(v);
  EXPECT_NEAR(v.findings[0].value.value(), 0.81e11, 1e9);
  EXPECT_THAT(v.findings[0].text, ::testing::ContainsRegex("confirmed.*80"));

  const auto gone = measured_again(0.8, 1.0);
  const auto cleared = verdict::judge(gone.r, gone.options);
  EXPECT_EQ(cleared.state, "PASS");
  ASSERT_EQ(count_severity(cleared, "WARN"), 0U);
  EXPECT_EQ(cleared.findings[0].severity, "INFO");
  EXPECT_EQ(cleared.findings[0].kind, "intermittent");
  EXPECT_THAT(cleared.findings[0].text, HasSubstr("retest"));

  // Smoke fails nobody for 10 %; what is so when measured again is no note either.
  auto smoke = broken;
  smoke.r.info.level = "smoke";
  EXPECT_EQ(verdict::judge(smoke.r, smoke.options).state, "WARN");

  // It lasted for three blocks and over a minute: then it was so.
  const auto lasted = measured_again(0.8, 1.0, 3);
  EXPECT_EQ(verdict::judge(lasted.r, lasted.options).state, "FAIL");
  EXPECT_TRUE(measured_again(0.99, 0.99).asked.empty());

  // Of two states the retest does not tell which is the part's own.
  for (const int blocks : {1, 3}) {
    auto unsure = measured_again(0.8, 0.84, blocks);
    auto& again = unsure.r.cases.back();
    for (std::size_t s = 0; s < again.samples(); s += 2)
      again.metrics[0].values[2 * again.samples() + s] *= 1.1;
    EXPECT_EQ(verdict::judge(unsure.r, unsure.options).state, blocks == 3 ? "FAIL" : "PASS") << blocks;
  }
}

TEST(VerdictLimits, LinkRetestsAreRoundsOfDisjointPairs) {
  auto r = cluster(4);
  const auto devices = rows_of_kind(r, "device");
  std::vector<std::int32_t> links, source, destination;
  std::vector<double> rates;
  for (const auto a : devices)
    for (const auto b : devices) {
      if (a == b) continue;
      const std::string name =
          r.entities[static_cast<std::size_t>(a)].name + ">" + r.entities[static_cast<std::size_t>(b)].name;
      links.push_back(static_cast<std::int32_t>(r.entities.size()));
      source.push_back(a);
      destination.push_back(b);
      rates.push_back(a == devices[0] ? 8.5e9 : 1e10);  // all that the first one sends
      r.entities.push_back({"link", "id-" + name, "path", name, 0, -1});
    }
  auto& c = add_case(r, "p2p", "bandwidth-uni-4194304-cross-mpi", "bandwidth", "B/s", results::Better::higher,
                     "link", links, rates);
  c.source = source;
  c.destination = destination;
  add_selftest(r, "pair");
  auto options = verdict::options_from(r);
  options.limits_text = limit("p2p/bandwidth-uni-*:bandwidth", "min = \"9 GB/s\"");
  options.limits_name = "limits.toml";
  const auto asked = verdict::retests(r, options);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].rounds.size(), 15U);  // three rounds, since all have one end in common, five times
  for (const auto& round : asked[0].rounds) {
    ASSERT_EQ(round.size(), 1U);
    EXPECT_EQ(round[0].source, devices[0]);
  }
  auto again = first_case(r);
  again.name += ".c1";
  r.cases.push_back(again);
  EXPECT_TRUE(verdict::retests(r, options).empty());
  const auto v = verdict::judge(r, options);
  ASSERT_EQ(count_severity(v, "FAIL"), 1U);
  EXPECT_EQ(v.findings[0].name, "node0");  // they have one end in common
  EXPECT_THAT(v.findings[0].text, testing::AllOf(HasSubstr("confirmed by"),
                                                 HasSubstr("median of 3 of the 3 links it sends over")));
}

TEST(VerdictLimits, APartThatTheRetestClearedIsNoMember) {
  auto r = healthy(12);
  const auto slow = [&](std::size_t parts) {
    auto c = first_case(r);
    for (std::size_t i = 0; i < parts * c.samples(); ++i) c.metrics[0].values[i] *= 0.8;
    return c;
  };
  auto again = slow(9);
  again.name += ".c1";
  first_case(r) = slow(10);
  r.cases.push_back(again);
  const auto v = judge(r, limit(any_gemm, "min = \"90 GFLOP/s\""));
  ASSERT_EQ(count_severity(v, "FAIL"), 1U);
  EXPECT_EQ(v.findings[0].members.size(), 9U);
  EXPECT_EQ(state_of(r, v, "node8"), "FAIL");
  EXPECT_EQ(state_of(r, v, "node9"), "PASS");
  const auto* note = find_kind(v, "intermittent");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->name, "node9/cores0-1");
}

TEST(VerdictLimits, ACollectiveIsOneFindingAndAccusesNoRank) {
  for (const std::string scope : {"world", "leader", "node"}) {
    auto r = cluster(3, 2);
    std::vector<double> rates{8e9, 8.5e9, 1e10, 1.1e10, 8e9, 7e9};
    auto& c = add_case(r, "allreduce", "allreduce-" + scope + "-1048576-mpi", "busbw", "B/s",
                       results::Better::higher, "device", rows_of_kind(r, "device"), rates);
    c.parameters["scope"] = scope;
    c.stage = scope == "world" ? "world" : "groups";
    add_selftest(r, "allreduce");
    auto options = verdict::options_from(r);
    options.limits_text = limit("allreduce/*:busbw", "min = \"9 GB/s\"");
    options.limits_name = "limits.toml";
    const auto asked = verdict::retests(r, options);
    ASSERT_EQ(asked.size(), 1U) << scope;
    EXPECT_EQ(asked[0].candidates.size(), scope == "node" ? 4U : 6U);
    const auto v = verdict::judge(r, options);
    ASSERT_EQ(count_severity(v, "FAIL"), scope == "node" ? 2U : 1U) << scope;
    EXPECT_EQ(v.findings[0].level, scope == "node" ? "node" : "cluster");
    EXPECT_NEAR(*v.findings[0].value, 7e9, 1e8);  // that of the slowest rank
    EXPECT_EQ(state_of(r, v, "node1"), "PASS");
    EXPECT_EQ(state_of(r, v, "node2"), scope == "node" ? "FAIL" : "PASS");
    auto again = first_case(r);
    again.name += ".c1";
    r.cases.push_back(again);
    EXPECT_TRUE(verdict::retests(r, options).empty()) << scope;
    EXPECT_THAT(verdict::judge(r, options).findings[0].text, HasSubstr("confirmed by"));
  }
}

TEST(VerdictLimits, TheVictimsOfCongestionAreNotAccused) {
  auto r = cluster(6);
  add_case(r, "congestion", "latency-8-under-incast-mpi", "impact_p99", "1", results::Better::lower, "device",
           rows_of_kind(r, "device"), {2, 9, 2, 8, 2, 2}, 1)
      .stage = "world";
  add_selftest(r, "pair");
  auto options = verdict::options_from(r);
  EXPECT_EQ(verdict::judge(r, options).findings.size(), 0U) << "nobody is compared with anybody";
  options.limits_text = limit("congestion/latency-*:impact_p99", "max = \"5 1\"");
  options.limits_name = "limits.toml";
  const auto v = verdict::judge(r, options);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].level, "cluster");
  EXPECT_EQ(*v.findings[0].value, 9);
  for (const char* node : {"node1", "node3"}) EXPECT_EQ(state_of(r, v, node), "PASS");
}

}  // namespace
}  // namespace assay
