// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "files.hpp"
#include "import/csv.hpp"
#include "import/import.hpp"
#include "import/units.hpp"
#include "verdict/verdict.hpp"

namespace assay::imports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ImportCsv : public ImportTest {
 protected:
  results::Results import(const std::string& text) const { return import_csv({file("x.csv", text)}); }
  std::string error(const std::string& text) const {
    return message([&] { import(text); });
  }
};

const std::string header = "node,device,metric,unit,better,sample,value\n";

TEST_F(ImportCsv, SamplesOfDevicesInAnyOrder) {
  const auto r = import(header +
                        "n1,gpu0,sgemm,TFLOPS,higher,1,14.2\n"
                        "n2,1,sgemm,GFLOP/s,higher,0,13900\n"
                        "n1,gpu0,sgemm,TFLOPS,higher,0,14.1\n");
  const auto& c = case_of(r, "imported/sgemm");
  EXPECT_EQ(c.kind, "device");
  ASSERT_EQ(c.entities(), 2u);
  EXPECT_EQ(name_of(r, c.entity[0]), "n1/gpu0");
  EXPECT_EQ(name_of(r, c.entity[1]), "n2/device1");
  EXPECT_THAT(c.count, ElementsAre(2, 1));
  const auto& m = c.metrics.at(0);
  EXPECT_EQ(m.unit, "FLOP/s");
  EXPECT_DOUBLE_EQ(m.values[0], 14.1e12);
  EXPECT_DOUBLE_EQ(m.values[1], 14.2e12);
  EXPECT_DOUBLE_EQ(m.values[2], 13.9e12);
  EXPECT_TRUE(std::isnan(m.values[3]));
}

TEST_F(ImportCsv, RetestsConfirmAndDatesTellWhen) {
  const std::string columns = "node,device,metric,unit,better,sample,value,time,retest\n";
  std::string text = columns;
  for (int n = 0; n < 24; ++n)
    for (int s = 0; s < 9; ++s)
      text += fmt::format("n{},0,sgemm,TFLOPS,higher,{},{},2026-01-31T02:{:02}:00+01:00,0\n", n, s,
                          (n == 7 ? 11.0 : 14.0) + 0.01 * ((n * 7 + s * 3) % 5), s);
  const auto screened = import(text);
  EXPECT_EQ(screened.info.started, "2026-01-31T01:00:00Z");
  EXPECT_EQ(screened.info.ended, "2026-01-31T01:08:00Z");
  EXPECT_EQ(verdict::judge(screened, {}).state, "WARN");
  for (int n = 4; n < 14; ++n)
    for (int s = 0; s < 12; ++s)
      text += fmt::format("n{},0,sgemm,TFLOPS,higher,{},{},2026-01-31T03:{:02}:00Z,1\n", n, s,
                          (n == 7 ? 11.0 : 14.0) + 0.01 * ((n * 5 + s * 3) % 5), s);
  const auto r = import(text);
  EXPECT_EQ(r.plan.size(), 1U);
  EXPECT_EQ(case_of(r, "imported/sgemm.c1").case_key, case_of(r, "imported/sgemm").case_key);
  const auto v = verdict::judge(r, {});
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(v.findings.at(0).name, "n7/device0");
  // The name says it as well, and not every time may be a date.
  EXPECT_EQ(
      import(header + "n1,0,sgemm.c2,TFLOPS,higher,0,14\nn1,0,sgemm,TFLOPS,higher,0,14\n").cases.at(0).name,
      "sgemm.c2");
  EXPECT_THAT(error(columns + "n1,0,a,s,lower,0,1,2026-01-31T03:00:00Z,0\nn1,0,a,s,lower,1,1,5,0\n"),
              HasSubstr("some times are dates"));
  EXPECT_THAT(error(columns + "n1,0,a,s,lower,0,1,2026-13-31T03:00:00Z,0\n"),
              HasSubstr("neither seconds nor ISO 8601"));
}

TEST_F(ImportCsv, TheSameRowTwiceIsCountedOnce) {
  const auto r = import(header + "n1,0,a,s,lower,0,1\nn1,0,a,s,lower,1,2\nn1,0,a,s,lower,0,1\n");
  EXPECT_THAT(case_of(r, "imported/a").count, ElementsAre(2));
  EXPECT_THAT(r.events.back().text, HasSubstr("1 row word for word the same"));
  EXPECT_THAT(error(header + "n1,0,a,s,lower,0,1\nn1,0,a,s,lower,0,2\n"), HasSubstr("duplicate"));
  EXPECT_THAT(error("node,model,metric,unit,better,sample,value\nn1,A,a,s,lower,0,1\nn1,B,a,s,lower,0,1\n"),
              HasSubstr("model of n1 was 'A' before, and is 'B' here"));
}

TEST_F(ImportCsv, SemicolonsTabsAndNamesInAnyCase) {
  for (const char separator : {',', ';', '\t'}) {
    std::string text = "Node,Device,METRIC,Unit,Better,Value,Rack,Power[kW]\nn1,0,x,GB/s,higher,1.5,r1,0.3\n";
    std::replace(text.begin(), text.end(), ',', separator);
    const auto r = import(text);
    const auto& c = case_of(r, "imported/x");
    EXPECT_EQ(c.find("value")->values, (results::Values<double>{1.5e9}));
    EXPECT_EQ(c.find("power")->values, (results::Values<double>{300}));
    EXPECT_THAT(r.inventory.at("device").text.at("rack"), ElementsAre("r1"));
  }
}

TEST_F(ImportCsv, RowsWithoutAValueAreLeftOutAndCounted) {
  const auto r =
      import(header + "n1,0,a,s,lower,0,1\nn1,0,a,s,lower,1,N/A\nn2,0,a,s,lower,0,\nn2,0,a,s,lower,1,1\n");
  EXPECT_THAT(case_of(r, "imported/a").count, ElementsAre(1, 1));
  EXPECT_EQ(r.events.back().text, "2 rows without a value (empty or N/A): left out");
  EXPECT_NE(verdict::judge(r, {}).state, "INCONCLUSIVE");
  // A part without any value is not passed over.
  const auto gone = import(header + "n1,0,a,s,lower,0,1\nn2,0,a,s,lower,0,N/A\n");
  EXPECT_EQ(gone.events.back().text, "no value of n2/device0 in imported/a");
  EXPECT_EQ(verdict::judge(gone, {}).state, "INCONCLUSIVE");
}

/// Eight GPUs, one of which counted `high` errors and the others `usual`.
std::string counts(int high, int usual) {
  std::string text = header;
  for (int n = 0; n < 8; ++n)
    for (int s = 0; s < 3; ++s)
      text += fmt::format("n{},0,xid errors,count,lower,{},{}\n", n, s, n == 5 ? high : usual + s % 2);
  return text;
}

TEST_F(ImportCsv, APartThatCountsFarMoreIsNamed) {
  for (const int usual : {0, 100}) {
    const auto v = verdict::judge(import(counts(400, usual)), {});
    EXPECT_EQ(v.state, "WARN") << usual;
    ASSERT_EQ(v.findings.size(), 1U) << usual;
    EXPECT_EQ(v.findings[0].name, "n5/device0");
    EXPECT_THAT(v.findings[0].text, HasSubstr("imported/xid-errors:value 400, of all 8 parts the median is"));
    EXPECT_EQ(v.basis, "limits 0, hardware rates 0, peers only 8, nothing 0");
  }
  // One more is told and no warning.
  const auto v = verdict::judge(import(counts(3, 0)), {});
  EXPECT_EQ(v.state, "PASS");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_THAT(v.findings[0].text, HasSubstr("not judged without a limit"));
  EXPECT_TRUE(verdict::judge(import(counts(1, 0)), {}).findings.empty());
}

/// What a limit accepts is not told as what is unusual beside it.
TEST_F(ImportCsv, APartWhoseCountALimitAcceptsIsNotNamedForAnother) {
  std::string text = header;
  for (int n = 0; n < 12; ++n)
    for (int s = 0; s < 3; ++s)
      text += fmt::format("n{},0,xid errors,count,lower,{},{}\n", n, s, n == 0 ? 100 : n == 1 ? 50 : 0);
  verdict::Options options;
  options.limits_name = "l.toml";
  options.limits_text =
      "[[limit]]\nmetric = \"imported/xid-errors:value\"\ndevice = \"n0/device0\"\nmax = \"200 count\"\n";
  const auto v = verdict::judge(import(text), options);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].name, "n1/device0");
  EXPECT_EQ(v.findings[0].severity, "WARN");
  EXPECT_EQ(v.findings[0].value, 50);
  EXPECT_THAT(v.findings[0].text, StartsWith("n1/device0: imported/xid-errors:value 50, of all 12 parts"));
  const auto alone = verdict::judge(import(counts(400, 0)), [] {
    verdict::Options o;
    o.limits_name = "l.toml";
    o.limits_text = "[[limit]]\nmetric = \"imported/xid-errors:value\"\nmax = \"500 count\"\n";
    return o;
  }());
  EXPECT_TRUE(alone.findings.empty()) << "all have a limit";
}

/// The samples are readings of a counter.
TEST_F(ImportCsv, ALimitOnACountHoldsForItsHighestReading) {
  std::string text = header;
  for (int s = 0; s < 3; ++s) text += fmt::format("n0,0,crc errors,count,lower,{},{}\n", s, s == 2 ? 50 : 0);
  verdict::Options options;
  options.limits_name = "l.toml";
  options.limits_text = "[[limit]]\nmetric = \"imported/crc-errors:value\"\nmax = \"10 count\"\n";
  EXPECT_EQ(verdict::judge(import(text), options).state, "FAIL");
}

/// Rates of `parts` parts, each with a model.
std::string rates(const char* metric, int parts, const char* model = "A") {
  std::string text;
  for (int n = 0; n < parts; ++n)
    for (int s = 0; s < 5; ++s)
      text += fmt::format("{}{},0,{},TFLOPS,higher,{},{},{}\n", model, n, metric, s,
                          14 + 0.01 * ((n + s) % 5), model);
  return text;
}

TEST_F(ImportCsv, APartWithoutAMetricThatMostHaveIsAWarning) {
  const std::string columns = "node,device,metric,unit,better,sample,value,model\n";
  const auto r = import(columns + rates("sgemm", 8) + rates("triad", 7) + rates("copy", 7));
  const auto v = verdict::judge(r, {});
  EXPECT_EQ(v.state, "WARN");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].kind, "uncovered");
  EXPECT_THAT(v.findings[0].text,
              StartsWith("A7/device0: no value of imported/copy:value, imported/triad:value"));
  EXPECT_EQ(verdict::judge(import(columns + rates("sgemm", 8) + rates("triad", 8)), {}).state, "PASS");
  // Four of eight may have been left out on purpose, and another model may lack what it does not support.
  EXPECT_EQ(verdict::judge(import(columns + rates("sgemm", 8) + rates("triad", 4)), {}).state, "PASS");
  const std::string mixed = rates("sgemm", 8) + rates("triad", 8) + rates("sgemm", 2, "B");
  EXPECT_EQ(verdict::judge(import(columns + mixed), {}).state, "PASS");
}

/// A GPU that is absent is in no row of the file.
TEST_F(ImportCsv, ANodeWithFewerDevicesThanMostIsAWarning) {
  const auto nodes_of = [](int nodes, int lacking) {
    std::string text = header;
    for (int n = 0; n < nodes; ++n)
      for (int d = 0; d < (n < lacking ? 3 : 4); ++d)
        for (int s = 0; s < 5; ++s)
          text += fmt::format("n{},{},triad,GB/s,higher,{},{}\n", n, d, s, 14 + 0.01 * ((n + d + s) % 5));
    return text;
  };
  EXPECT_EQ(verdict::judge(import(nodes_of(12, 0)), {}).state, "PASS");
  for (const int lacking : {1, 3}) {
    const auto v = verdict::judge(import(nodes_of(12, lacking)), {});
    EXPECT_EQ(v.state, "WARN");
    ASSERT_EQ(v.findings.size(), 1U);
    EXPECT_EQ(v.findings[0].kind, "uncovered");
    EXPECT_THAT(v.findings[0].text, HasSubstr("without a value: most nodes have 4"));
    EXPECT_EQ(v.findings[0].members.size(), lacking == 1 ? 0U : 3U);
  }
  // Five of twelve are another kind of node.
  EXPECT_EQ(verdict::judge(import(nodes_of(12, 5)), {}).state, "PASS");
}

TEST_F(ImportCsv, WhatIsComparedWithNothingIsSaid) {
  const auto v =
      verdict::judge(import(header + "n1,0,gpus,count,higher,0,8\nn2,0,gpus,count,higher,0,7\n"), {});
  EXPECT_EQ(v.state, "PASS");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].severity, "INFO");
  EXPECT_THAT(v.findings[0].text, StartsWith("1 case was compared with nothing"));
  EXPECT_THAT(v.findings[0].text, HasSubstr("imported/gpus"));
}

TEST_F(ImportCsv, OneEntityWithManySamplesCostsOnlyThem) {
  std::string text = header;
  for (int s = 0; s < 5000; ++s) text += fmt::format("n0,0,a,s,lower,{},1\n", s);
  for (int n = 1; n < 2000; ++n) text += fmt::format("n{},0,a,s,lower,0,1\n", n);
  const auto r = import(text);
  std::size_t cells = 0, samples = 0;
  for (const auto& c : r.cases) {
    cells += c.metrics.at(0).values.size();
    for (const auto count : c.count) samples += static_cast<std::size_t>(count);
  }
  EXPECT_EQ(samples, 6999U);
  EXPECT_LE(cells, 2 * samples);
  EXPECT_EQ(verdict::judge(r, {}).basis, "limits 0, hardware rates 0, peers only 2000, nothing 0");
}

TEST_F(ImportCsv, CovariatesAndAttributes) {
  const auto r = import(
      "node,device,metric,unit,better,sample,value,time,clock_hz,model,power[kW],block\n"
      "n1,0,sgemm,TFLOPS,higher,0,14,1000000005,1.4e9,\"V100, SXM2\",0.3,2\n"
      "n1,0,sgemm,TFLOPS,higher,1,14,1000000007,1.3e9,\"V100, SXM2\",0.2,3\n");
  const auto& c = case_of(r, "imported/sgemm");
  EXPECT_EQ(c.find("clock")->values, (results::Values<double>{1.4e9, 1.3e9}));
  EXPECT_EQ(c.find("clock")->role, results::Role::covariate);
  EXPECT_EQ(c.find("power")->values, (results::Values<double>{300, 200}));
  EXPECT_EQ(c.find("power")->unit, "W");
  EXPECT_EQ(c.t, (results::Values<double>{0, 2}));
  EXPECT_THAT(c.block, ElementsAre(2, 3));
  EXPECT_THAT(r.inventory.at("device").text.at("model"), ElementsAre("V100, SXM2"));
}

TEST_F(ImportCsv, BlocksBelongToTheirTimesWhateverTheOrderOfLines) {
  const auto r = import(
      "node,metric,unit,better,value,time,block\n"
      "n1,bw,GB/s,higher,3,20,2\n"
      "n1,bw,GB/s,higher,2,10,1\n"
      "n1,bw,GB/s,higher,1,0,0\n");
  const auto& c = case_of(r, "imported/bw");
  EXPECT_EQ(c.find("value")->values, (results::Values<double>{1e9, 2e9, 3e9}));
  EXPECT_THAT(c.block, ElementsAre(0, 1, 2));
}

/// 12 nodes with 10 samples in each of 3 blocks, 40 s apart; one is slow by a fifth, in `slow_blocks` of
/// them.
std::string blocks(int slow_blocks) {
  std::string text = "node,metric,unit,better,sample,value,time,block\n";
  for (int n = 0; n < 12; ++n)
    for (int s = 0; s < 30; ++s)
      text += fmt::format("n{:02},bw,GB/s,higher,{},{},{},{}\n", n, s,
                          (n == 5 && s / 10 < slow_blocks ? 0.8 : 1.0) * (100 + 0.1 * ((3 * n + 7 * s) % 11)),
                          s / 10 * 40 + s % 10, s / 10);
  return text;
}

TEST_F(ImportCsv, WithoutARetestAPartFailsThatWasSlowInThreeBlocksOverAMinute) {
  EXPECT_EQ(verdict::judge(import(blocks(3)), {}).state, "FAIL");
  EXPECT_EQ(verdict::judge(import(blocks(2)), {}).state, "WARN");
}

TEST_F(ImportCsv, PairsAreLinksBetweenDevices) {
  const auto r = import(
      "src,dst,metric,unit,better,value\n"
      "n1,n2,bw,GB/s,higher,24\n"
      "n1/gpu3,n2/gpu3,bw,GB/s,higher,23\n"
      "n2,n1,bw,Gbps,higher,200\n");
  const auto& c = case_of(r, "imported/bw");
  EXPECT_EQ(c.kind, "link");
  EXPECT_EQ(c.stage, "pairs");
  ASSERT_EQ(c.entities(), 3u);
  EXPECT_EQ(name_of(r, c.entity[0]), "n1/host>n2/host");
  EXPECT_EQ(name_of(r, c.source[1]), "n1/gpu3");
  EXPECT_EQ(name_of(r, c.destination[2]), "n1/host");
  EXPECT_DOUBLE_EQ(c.metrics[0].values[2], 25e9);
}

TEST_F(ImportCsv, WhereNodesStandIsNoMismatch) {
  std::string text = "node,metric,unit,better,value,rack,bios\n";
  for (int n = 0; n < 12; ++n)
    text += "n" + std::to_string(n) + ",triad,GB/s,higher,100,r" + std::to_string(n / 4) + ",1." +
            (n == 5 ? "1" : "2") + "\n";
  const auto r = import(text);
  const auto verdict = verdict::judge(r, {});
  ASSERT_EQ(verdict.findings.size(), 1u) << verdict.findings[1].text;
  EXPECT_EQ(verdict.findings[0].metric, "bios");
  EXPECT_EQ(verdict.findings[0].name, "n5");
}

TEST_F(ImportCsv, ASlowNodeIsSeen) {
  std::string text = header;
  for (int n = 0; n < 30; ++n)
    for (int s = 0; s < 6; ++s)
      text += "n" + std::to_string(n) + ",,triad,GB/s,higher," + std::to_string(s) + "," +
              std::to_string((n == 7 ? 80 : 100) + 0.01 * ((n * 7 + s * 3) % 11)) + "\n";
  const auto verdict = verdict::judge(import(text), {});
  EXPECT_NE(verdict.state, "PASS");
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].name, "n7");
}

TEST_F(ImportCsv, WhatIsWrongIsNamedWithFileAndLine) {
  const std::pair<std::string, const char*> cases[] = {
      {header + "n1,0,x,GB/s,higher,0\n", "x.csv:2: 6 fields, the header has 7"},
      {header + "n1,0,x,GB/s,higher,0,fast\n", "x.csv:2: value 'fast' is no finite number"},
      {header + "n1,0,x,GB/s,higher,0,nan\n", "x.csv:2: value 'nan' is no finite number"},
      {header + "n1,0,x,GB/s,higher,0,\n", "x.csv: has no samples"},
      {"node;metric;unit;better;value\nn1;x;GB/s;higher;99,5\n",
       "x.csv:2: value '99,5' has a comma: write a decimal point"},
      {"Node,node,metric,unit,better,value\n", "x.csv:1: duplicate column 'node'"},
      {header + "\n\nn1,0,x,parsec,higher,0,1\n", "x.csv:4: no unit 'parsec' is known"},
      {header + "n1,0,x,GB/s,faster,0,1\n", "x.csv:2: better 'faster' is not one of"},
      {header + "n1,0,x,GB/s,higher,-1,1\n", "x.csv:2: sample '-1' is no whole number from 0"},
      {header + "n1,0,x,GB/s,higher,0,1\nn1,0,x,GB/s,higher,0,2\n",
       "x.csv:3: duplicate sample 0 of x of n1/device0"},
      {header + "n1,0,x,GB/s,higher,0,1\nn1,0,x,us,higher,1,2\n",
       "x.csv:3: value of x was in B/s before, and is in s here"},
      {header + "n1,0,x,GB/s,higher,0,1\nn1,0,x,GB/s,lower,1,2\n",
       "x.csv:3: value of x was better higher before"},
      {header + "n1,0,x,GB/s,higher,0,1\nn1,,x,GB/s,higher,1,2\n",
       "x.csv:3: x was measured of a device before, and here of a node"},
      {header + ",0,x,GB/s,higher,0,1\n", "x.csv:2: node is empty"},
      {header + "n 1,0,x,GB/s,higher,0,1\n", "x.csv:2: node 'n 1' holds a blank"},
      {header + "n1,0,---,GB/s,higher,0,1\n", "x.csv:2: metric '---' names nothing"},
      {header + "n1,0,A x,GB/s,higher,0,1\nn1,0,a-x,GB/s,higher,0,1\n",
       "x.csv:3: 'A x' and 'a-x' would both be named a-x: rename one"},
      {header + "n1,0,x,TB/s,higher,0,1e300\n", "x.csv:2: value '1e300' is no finite number"},
      {header + "n1,0,\"x,GB/s,higher,0,1\n", "x.csv:2: a quote is not closed"},
      {header, "x.csv: has no samples"},
      {"# only this\n", "x.csv: has no header"},
      {"node,metric,unit,value\nn,x,B,1\n", "x.csv:1: column 'better' is missing"},
      {"metric,unit,better,value\nx,B,lower,1\n", "x.csv:1: needs a column node"},
      {"src,metric,unit,better,value\na,x,B,lower,1\n", "x.csv:1: src and dst come together"},
      {"node,node,metric,unit,better,value\n", "x.csv:1: duplicate column 'node'"},
      {"node,a[furlong],metric,unit,better,value\n", "x.csv:1: column 'a[furlong]': no unit"},
      {"src,dst,metric,unit,better,value\na,a,x,B,lower,1\n", "x.csv:2: a link from a/host to itself"},
      {"node,model,metric,unit,better,value\na,m1,x,B,lower,1\na,m2,x,B,lower,1\n",
       "x.csv:3: model of a was 'm1' before, and is 'm2' here"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_THAT(error(text), StartsWith(wanted)) << text;
  EXPECT_THAT(message([&] { import_csv({dir_ / "none.csv"}); }), HasSubstr("there is no such file"));
  EXPECT_THAT(error(std::string("a\0b", 3)), HasSubstr("is no text"));
  EXPECT_THAT(error(""), HasSubstr("is empty"));
}

/// Below 32 parts no slope was fitted, and rates that follow the clock were FAIL as slow at equal clock.
TEST_F(ImportCsv, TheClockOfFewPartsExplainsTheirRates) {
  for (const char* unit : {"TFLOP/s", "GB/s"})
    for (const bool follows : {true, false}) {
      std::string text = "node,device,metric,unit,better,sample,value,time,block,clock_hz\n";
      for (int n = 0; n < 12; ++n) {
        const double clock = n == 3 ? 0.96 : n == 8 ? 0.9 : 1 + 0.0004 * (n % 5);
        for (int s = 0; s < 15; ++s)
          text += fmt::format("n{},0,x,{},higher,{},{},{},{},{}\n", n, unit, s,
                              (follows ? clock : 1) * (100 + 0.2 * ((n * 7) % 5) + 0.3 * ((n + s * 3) % 5)),
                              6 * s, s / 3, 1.4e9 * clock);
      }
      const auto v = verdict::judge(import(text), {});
      EXPECT_EQ(v.state, follows ? "FAIL" : "PASS") << unit;
      for (const auto& f : v.findings) {
        EXPECT_NE(f.kind, "slow_at_clock") << f.text;
        if (f.severity == "FAIL") {
          EXPECT_EQ(f.name + " " + f.kind, "n8/device0 throttled") << f.text;
        }
      }
    }
}

}  // namespace
}  // namespace assay::imports
