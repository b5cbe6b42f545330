// SPDX-License-Identifier: Apache-2.0
// nccl-tests: files as it writes them, and files that are damaged.
#include "files.hpp"
#include "import/import.hpp"
#include "nccl_table.hpp"
#include "verdict/verdict.hpp"

namespace assay::imports {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ImportNccl : public ImportTest {
 protected:
  std::string error(const std::string& text) const {
    return message([&] { import_nccl_tests({file("all_reduce.txt", text)}); });
  }
};

TEST_F(ImportNccl, RunsOnOneNodeMeasureThatNode) {
  const auto r = import_nccl_tests({file("all_reduce_a.txt", table({"n1", "n1"})),
                                    file("all_reduce_b.txt", table({"n2", "n2"})),
                                    file("all_reduce_c.txt", table({"n1", "n1"}, "240.00"))});
  const auto& c = case_of(r, "nccl-tests/all_reduce-float-sum-134217728-r2");
  EXPECT_EQ(c.kind, "node");
  EXPECT_EQ(c.stage, "node-local");
  EXPECT_THAT(c.count, ElementsAre(2, 1));
  EXPECT_EQ(name_of(r, c.entity[0]), "n1");
  EXPECT_DOUBLE_EQ(c.find("busbw")->values[0], 244.78e9);
  EXPECT_DOUBLE_EQ(c.find("busbw")->values[1], 240.00e9);
  EXPECT_DOUBLE_EQ(c.find("duration")->values[0], 1028.1e-6);
  EXPECT_THAT(c.block, ElementsAre(0, 2));
  // In place has its own case, without a check here.
  EXPECT_EQ(case_of(r, "nccl-tests/all_reduce-float-sum-134217728-r2-in").find("errors"), nullptr);
  EXPECT_THAT(r.inventory.at("device").text.at("model")[0], HasSubstr("H100"));
}

TEST_F(ImportNccl, AnOutputWithoutItsEndIsIncomplete) {
  const std::string whole = table({"n1", "n1"});
  const auto stopped = import_nccl_tests({file("cut.txt", whole.substr(0, whole.find("# Out of bounds")))});
  const auto at = std::find_if(stopped.events.begin(), stopped.events.end(),
                               [](const auto& e) { return e.kind == "launch-inconclusive"; });
  ASSERT_NE(at, stopped.events.end());
  EXPECT_THAT(at->text, HasSubstr("cut.txt"));
  EXPECT_EQ(verdict::judge(stopped, {}).state, "INCONCLUSIVE");
  EXPECT_NE(verdict::judge(import_nccl_tests({file("all_reduce.txt", whole)}), {}).state, "INCONCLUSIVE");
}

TEST_F(ImportNccl, SeveralOutputsInOneFileAreSeveralRuns) {
  const std::string runs = table({"n1", "n1"}) + table({"n2", "n2"}, "240.00") + table({"n3", "n3"});
  const auto r = import_nccl_tests({file("all_reduce.txt", runs)});
  const auto& c = case_of(r, "nccl-tests/all_reduce-float-sum-134217728-r2");
  EXPECT_EQ(c.kind, "node");
  EXPECT_THAT(c.count, ElementsAre(1, 1, 1));
  EXPECT_DOUBLE_EQ(c.find("busbw")->values[1], 240.00e9);
  // One that stopped before its results hides no other.
  const std::string whole = table({"n9", "n9"});
  const auto stopped =
      import_nccl_tests({file("all_reduce.txt", whole.substr(0, whole.find("#       size")) + runs)});
  EXPECT_THAT(case_of(stopped, c.path()).count, ElementsAre(1, 1, 1));
  EXPECT_EQ(verdict::judge(stopped, {}).state, "INCONCLUSIVE");
}

/// Every line after the number of its task, as `srun -l` prints it.
std::vector<std::string> labelled(const std::string& text, int task) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    out.push_back(std::to_string(task) + ": " + text.substr(at, text.find('\n', at) + 1 - at));
  return out;
}

TEST_F(ImportNccl, LabelsOfTasksAreTakenOff) {
  std::string one, mixed;
  const auto a = labelled(table({"n1", "n1"}), 0), b = labelled(table({"n2", "n2"}, "240.00"), 11);
  for (std::size_t i = 0; i < a.size(); ++i) {
    one += a[i];
    mixed += a[i] + b[i];
  }
  const char* path = "nccl-tests/all_reduce-float-sum-134217728-r2";
  EXPECT_THAT(case_of(import_nccl_tests({file("all_reduce.txt", one)}), path).count, ElementsAre(1));
  // Tasks that have a header each are runs, however their lines are mixed.
  const auto r = import_nccl_tests({file("all_reduce.txt", mixed)});
  EXPECT_THAT(case_of(r, path).count, ElementsAre(1, 1));
  EXPECT_DOUBLE_EQ(case_of(r, path).find("busbw")->values[1], 240.00e9);
}

/// A log for each pair of `nodes` nodes; those with node `slow` have 60 % of the bandwidth.
std::vector<std::string> pairs_of(int nodes, int slow) {
  std::vector<std::string> logs;
  for (int a = 0; a < nodes; ++a)
    for (int b = a + 1; b < nodes; ++b) {
      const std::string first = "n" + std::to_string(a), second = "n" + std::to_string(b);
      const double rate = (a == slow || b == slow ? 0.6 : 1) * (240 + 0.5 * ((3 * a + 5 * b) % 7));
      logs.push_back(table({first, first, second, second}, std::to_string(rate)));
    }
  return logs;
}

TEST_F(ImportNccl, ANodeThatSlowsAllItsPairsIsNamed) {
  const auto verdict_of = [&](int nodes, int slow) {
    std::vector<InputFile> files;
    for (const auto& log : pairs_of(nodes, slow))
      files.emplace_back(file("all_reduce" + std::to_string(files.size()) + ".txt", log));
    return verdict::judge(import_nccl_tests(files), {});
  };
  const auto v = verdict_of(12, 2);
  EXPECT_EQ(v.state, "WARN");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].name, "n2");
  EXPECT_THAT(v.findings[0].text,
              StartsWith("n2: all its groups are slow in nccl-tests/all_reduce-float-sum-"));
  EXPECT_EQ(verdict_of(12, -1).state, "PASS");
  // Too few nodes to tell: that is said.
  const auto few = verdict_of(5, 2);
  ASSERT_EQ(few.findings.size(), 1U);
  EXPECT_THAT(few.findings[0].text, HasSubstr("compared with nothing"));
}

TEST_F(ImportNccl, SmallRatesAreNotLeftRoundedToNothing) {
  const auto r = import_nccl_tests({file("all_reduce.txt", table({"n1", "n1"}))});
  const auto& c = case_of(r, "nccl-tests/all_reduce-float-sum-8-r2");
  EXPECT_NEAR(c.find("algbw")->values[0], 8 / 28.91e-6, 1);
  EXPECT_NEAR(c.find("busbw")->values[0], 8 / 28.91e-6 * 244.78 / 130.55, 1);
}

TEST_F(ImportNccl, RunsOnSeveralNodesAreGroupsOfDevices) {
  const auto r = import_nccl_tests({file("all_reduce_a.txt", table({"n1", "n1", "n2", "n2"})),
                                    file("all_reduce_b.txt", table({"n3", "n3", "n4", "n4"}, "200.00"))});
  const auto& c = case_of(r, "nccl-tests/all_reduce-float-sum-134217728-r4-n2");
  EXPECT_EQ(c.kind, "device");
  EXPECT_EQ(c.stage, "groups");
  EXPECT_EQ(c.entities(), 8u);
  EXPECT_EQ(name_of(r, c.entity[1]), "n1/device1");
  EXPECT_EQ(case_of(import_nccl_tests({file("all_reduce.txt", table({"n1", "n1", "n2", "n2"}))}),
                    "nccl-tests/all_reduce-float-sum-134217728-r4-n2")
                .stage,
            "world");
}

TEST_F(ImportNccl, WrongValuesFail) {
  const auto one = import_nccl_tests({file("all_reduce.txt", table({"n1", "n1"}, "244.78", "3"))});
  const auto verdict = verdict::judge(one, {});
  EXPECT_EQ(verdict.state, "FAIL");
  EXPECT_EQ(verdict.findings.at(0).name, "n1");
  EXPECT_EQ(verdict.findings.at(0).kind, "corrupt");
  // Of a group nobody can be named.
  const auto group = import_nccl_tests({file("all_reduce.txt", table({"n1", "n2"}, "244.78", "3"))});
  const auto of_group = verdict::judge(group, {});
  EXPECT_EQ(of_group.state, "FAIL");
  EXPECT_EQ(of_group.findings.at(0).level, "cluster");
  EXPECT_THAT(of_group.findings.at(0).text, HasSubstr("3 wrong values"));
}

/// The output of a version before 2.13: the largest deviation instead of a count.
std::string with_deviation(std::string text, const std::string& bounds) {
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"#wrong", "error"},
                                 {" 244.78      0 ", " 244.78  5e-07 "},
                                 {"values : 0 OK", "values : " + bounds}})
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  return text;
}

TEST_F(ImportNccl, ADeviationOfOldVersionsIsNoWrongValue) {
  for (const char* second : {"n1", "n2"})
    for (const bool good : {true, false}) {
      const std::string text = with_deviation(table({"n1", second}), good ? "0 OK" : "12 FAILED");
      ASSERT_THAT(text, HasSubstr("5e-07"));
      const auto v = verdict::judge(import_nccl_tests({file("all_reduce.txt", text)}), {});
      EXPECT_EQ(v.state, good ? "PASS" : "FAIL") << second;
      if (!good) {
        EXPECT_EQ(v.findings.at(0).kind, "corrupt");
        EXPECT_THAT(v.findings.at(0).text, HasSubstr("12 wrong values"));
      }
    }
}

TEST_F(ImportNccl, JsonWithSingleIterations) {
  const auto r =
      import_nccl_tests({file("run.json", R"({"version": 2, "args": ["./build/all_gather_perf", "-g", "1"],
    "config": {"nthreads": 1, "devices": [
      {"rank": 0, "group": 0, "pid": 5, "hostname": "n1", "device": 0, "device_hex": "07",
       "device_info": "H100"},
      {"rank": 1, "group": 0, "pid": 6, "hostname": "n1", "device": 1, "device_hex": "0b",
       "device_info": "H100"}]},
    "results": [{"size": 1048576, "count": 262144, "type": "float", "redop": "none", "root": "    -1",
      "out_of_place": {"time": 20.0, "alg_bw": 52.4288, "bus_bw": 26.2144, "nwrong": 0.0},
      "out_of_place_per_iter": {"times_us": [16.0, 20.0, 25.0]},
      "in_place": {"time": 21.0, "alg_bw": 50.0, "bus_bw": 25.0, "nwrong": null}}],
    "out_of_bounds": {"count": 0, "okay": "true"}, "errors": []})")});
  const auto& c = case_of(r, "nccl-tests/all_gather-float-none-1048576-r2");
  EXPECT_THAT(c.count, ElementsAre(3));
  const auto held = c.find("duration")->values.held();
  const std::vector<double> duration(held.begin(), held.end());
  EXPECT_THAT(duration, ElementsAre(DoubleEq(16e-6), DoubleEq(20e-6), DoubleEq(25e-6)));
  EXPECT_DOUBLE_EQ(c.find("busbw")->values[0], 26.2144e9 * 20 / 16);
  EXPECT_EQ(case_of(r, "nccl-tests/all_gather-float-none-1048576-r2-in").find("errors"), nullptr);
}

TEST_F(ImportNccl, WhatIsWrongIsNamed) {
  EXPECT_THAT(error("hello\n"), StartsWith("all_reduce.txt: is no output of nccl-tests"));
  EXPECT_THAT(error(table({})), HasSubstr("# Rank 0"));
  EXPECT_THAT(error(table({"n1"}, "fast")), StartsWith("all_reduce.txt:11: busbw 'fast' is no number"));
  EXPECT_THAT(error(table({"n1"}, "-1")), StartsWith("all_reduce.txt:11: busbw '-1'"));
  EXPECT_THAT(error("{\n\"results\": [\n}"), StartsWith("all_reduce.txt:3: is no JSON"));
  EXPECT_THAT(error("{\"results\": 5}"), HasSubstr("no list 'results'"));
  EXPECT_THAT(error(R"({"results": []})"), HasSubstr("# Rank 0"));
  const std::string devices = R"("config": {"devices": [{"hostname": "a", "device": 0}]},)";
  EXPECT_THAT(error("{" + devices + R"("results": []})"), HasSubstr("has no results"));
  EXPECT_THAT(error("{" + devices + R"("results": [{"size": 8}]})"),
              HasSubstr("results[0]: neither out_of_place nor in_place"));
  EXPECT_THAT(error("{" + devices + R"("results": [{"size": 8, "in_place": {"time": "x"}}]})"),
              HasSubstr("results[0]: 'time'"));
  EXPECT_THAT(error("{\"a\": " + std::string(5000, '[')), HasSubstr("all_reduce.txt:"));
}

}  // namespace
}  // namespace assay::imports
