// SPDX-License-Identifier: Apache-2.0
// Outputs of nccl-tests beside others: what is one case, what was not measured, and which node was wrong.
#include <fmt/format.h>

#include "files.hpp"
#include "import/import.hpp"
#include "nccl_table.hpp"
#include "verdict/verdict.hpp"

namespace assay::imports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImportNcclRuns : public ImportTest {};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// FAIL of node n2 alone, and every node measured.
void expect_wrong_node(const results::Results& r, const std::string& how) {
  const auto v = verdict::judge(r, {});
  EXPECT_EQ(v.state, "FAIL") << how;
  for (const auto& f : v.findings) {
    if (f.severity != "FAIL") continue;
    EXPECT_EQ(f.name + " " + f.kind + " " + f.action, "n2 corrupt ISOLATE") << how;
    EXPECT_THAT(f.text, HasSubstr("12 wrong values")) << how;
  }
}

TEST_F(ImportNcclRuns, TheEndOfAnOutputNamesTheNodeThatWasWrong) {
  const auto deviations = [](const std::string& text) {
    return replaced(replaced(text, "#wrong", "error"), " 244.78      0 ", " 244.78  5e-07 ");
  };
  const auto failed = [](const std::string& text) { return replaced(text, "0 OK", "12 FAILED"); };
  const std::string good = table({"n1", "n1"}), other = table({"n3", "n3"}), bad = table({"n2", "n2"});
  const auto import = [&](const std::vector<std::string>& texts) {
    std::vector<InputFile> files;
    for (const auto& text : texts)
      files.emplace_back(file(fmt::format("all_reduce{}.txt", files.size()), text));
    return import_nccl_tests(files);
  };
  expect_wrong_node(import({good, failed(bad), other}), "in the last line only");
  expect_wrong_node(import({deviations(good), deviations(failed(bad)), deviations(other)}), "a deviation");
  expect_wrong_node(import({good, replaced(failed(bad), " 244.78      0 ", " 244.78     12 "), other}),
                    "a count");
  // Where another was not checked at all, nothing is known of it.
  const auto r = import({replaced(good, " 244.78      0 ", " 244.78    N/A "),
                         replaced(failed(bad), " 244.78      0 ", " 244.78     12 ")});
  expect_wrong_node(r, "not checked");
  const auto* errors = case_of(r, "nccl-tests/all_reduce-float-sum-134217728-r2").find("errors");
  EXPECT_TRUE(std::isnan(errors->values[0]));
  EXPECT_EQ(errors->values[1], 12);
  EXPECT_FALSE(errors->required);
}

/// The JSON of a run on one node; `rest` stands before the results.
std::string json(const std::string& node, const std::string& wrong, const std::string& bounds,
                 const std::string& rest = "", const std::string& iterations = "") {
  return fmt::format(
      R"({{"version": 3, {}"config": {{"nthreads": 1, "ngpus": 2, "graph": 0, "devices": [
      {{"rank": 0, "group": 0, "hostname": "{}", "device": 0, "device_info": "H100"}}]}},
      "results": [{{"size": 1048576, "count": 262144, "type": "float", "redop": "sum",
        "out_of_place": {{"time": 20.0, "alg_bw": 52.4, "bus_bw": 26.2, "nwrong": {}}}{}}}]{}}})",
      rest, node, wrong, iterations, bounds);
}

TEST_F(ImportNcclRuns, TheSameOfJson) {
  const std::string good = R"(, "out_of_bounds": {"count": 0, "okay": "true"})",
                    bad = R"(, "out_of_bounds": {"count": 12, "okay": "false"})";
  const auto import = [&](const std::string& of_n2) {
    return import_nccl_tests({file("all_reduce1.json", json("n1", "0.0", good)),
                              file("all_reduce2.json", of_n2),
                              file("all_reduce3.json", json("n3", "null", good))});
  };
  expect_wrong_node(import(json("n2", "12.0", bad)), "a count");
  expect_wrong_node(import(json("n2", "0.0", bad)), "at the end only");
  expect_wrong_node(import(json("n2", "null", bad)), "at the end only, no count");
  expect_wrong_node(
      import(json("n2", "12.0", bad, "", R"(, "out_of_place_per_iter": {"times_us": [19, 20, 21]})")),
      "of iterations together");
  EXPECT_EQ(verdict::judge(import(json("n2", "0.0", good)), {}).state, "PASS");
  // A test that was stopped has no end.
  EXPECT_EQ(verdict::judge(import(json("n2", "0.0", "")), {}).state, "INCONCLUSIVE");
}

TEST_F(ImportNcclRuns, TheNameOfAJsonFileTellsTheOperation) {
  const std::string end = R"(, "out_of_bounds": {"count": 0, "okay": "true"})";
  const auto name = [&](const std::string& file_name, const std::string& args = "") {
    return import_nccl_tests({file(file_name, json("n1", "0.0", end, args))}).cases.at(0).name;
  };
  EXPECT_EQ(name("reduce_scatter_perf.json"), "reduce_scatter-float-sum-1048576-r2");
  EXPECT_EQ(name("run.json"), "collective-float-sum-1048576-r2");
  // What was started says more than the name of the file.
  EXPECT_EQ(name("reduce_scatter.json", R"("args": ["/opt/all_gather_perf", "-g", "2"], )"),
            "all_gather-float-sum-1048576-r2");
}

/// Its list has the first device of each process.
TEST_F(ImportNcclRuns, DevicesThatAJsonDoesNotListAreCounted) {
  const std::string end = R"(, "out_of_bounds": {"count": 0, "okay": "true"})";
  const auto r = import_nccl_tests({file("all_reduce.json", json("n1", "0.0", end))});
  EXPECT_THAT(r.inventory.at("device").text.at("model"), ElementsAre("H100", "H100"));
  const std::string listed = replaced(json("n1", "0.0", end), "}]}",
                                      R"(}, {"rank": 1, "group": 0, "hostname": "n1", "device": 5}]})");
  const auto whole = import_nccl_tests({file("all_reduce.json", listed)});
  EXPECT_EQ(whole.cases.at(0).name, "all_reduce-float-sum-1048576-r2");
  EXPECT_EQ(name_of(whole, 3), "n1/device5");
}

TEST_F(ImportNcclRuns, WhatIsNotAlikeIsAnotherCase) {
  const std::string graph = replaced(table({"n1", "n1"}), "graph: 0", "graph: 4"),
                    cpu = replaced(table({"n1", "n1"}), " time ", " cputime "),
                    split = replaced(table({"n1", "n1"}), "Rank 1 Group  0", "Rank 1 Group  1");
  const auto r =
      import_nccl_tests({file("all_reduce_a.txt", table({"n1", "n1"})), file("all_reduce_b.txt", graph),
                         file("all_reduce_c.txt", cpu), file("all_reduce_d.txt", split),
                         file("all_reduce_e.txt", table({"n1", "n2"}))});
  for (const char* rest : {"", "-graph", "-cpu", "-g2", "-n2"}) {
    const auto& c = case_of(r, std::string("nccl-tests/all_reduce-float-sum-134217728-r2") + rest);
    EXPECT_EQ(c.samples(), 1U) << rest;
  }
}

TEST_F(ImportNcclRuns, ATestWithoutResultsHidesNoOtherAndIsAGap) {
  const std::string whole = table({"n2", "n2"});
  for (const std::string& text :
       {std::string(), std::string(" \n"), whole.substr(0, whole.find("#       size")),
        whole.substr(0, whole.find("# Using")),
        std::string(R"({"version": 3, "nccl_version": 22304, "args": ["all_reduce_perf"]})"),
        json("n2", "0.0", "").substr(0, 200)}) {
    const auto r =
        import_nccl_tests({file("all_reduce_a.txt", table({"n1", "n1"})), file("all_reduce_b.txt", text)});
    EXPECT_THAT(case_of(r, "nccl-tests/all_reduce-float-sum-134217728-r2").count, ElementsAre(1));
    EXPECT_THAT(r.events.back().text, HasSubstr("all_reduce_b.txt ")) << text;
    EXPECT_EQ(verdict::judge(r, {}).state, "INCONCLUSIVE") << text;
  }
  EXPECT_EQ(message([&] { import_nccl_tests({file("a.txt", ""), file("b.txt", "")}); }), "a.txt: is empty");
}

}  // namespace
}  // namespace assay::imports
