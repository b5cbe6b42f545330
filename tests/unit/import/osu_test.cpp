// SPDX-License-Identifier: Apache-2.0
// Output of the OSU benchmarks as they write it, and files that are damaged.
#include <fmt/format.h>

#include "files.hpp"
#include "import/import.hpp"
#include "verdict/verdict.hpp"

namespace assay::imports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ImportOsu : public ImportTest {};

TEST_F(ImportOsu, TwoNodesOfAPointToPointTestAreALink) {
  const auto r = import_osu({file("bw@n1,n2.txt",
                                  "# OSU MPI Bandwidth Test v5.6.2\n# Size      Bandwidth (MB/s)\n1         "
                                  "0.43\n4194304 11000.25\n"),
                             file("lat.txt",
                                  "# nodes: n1 n3\n\n# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n"
                                  "# Size       Avg Latency(us)\n1                       1.67\n")});
  const auto& bw = case_of(r, "osu/bandwidth-4194304");
  EXPECT_EQ(bw.kind, "link");
  EXPECT_EQ(name_of(r, bw.entity[0]), "n1/host>n2/host");
  EXPECT_DOUBLE_EQ(bw.find("bandwidth")->values[0], 11000.25e6);
  const auto& lat = case_of(r, "osu/latency-1");
  EXPECT_EQ(name_of(r, lat.entity[0]), "n1/host>n3/host");
  EXPECT_DOUBLE_EQ(lat.find("latency")->values[0], 1.67e-6);
  EXPECT_EQ(lat.find("latency")->better, results::Better::lower);
}

TEST_F(ImportOsu, OtherTests) {
  const auto r = import_osu(
      {file("mbw.txt",
            "# OSU MPI Multiple Bandwidth / Message Rate Test v5.7\n# [ pairs: 15 ] [ window size: 64 ]\n"
            "# Size                  MB/s        Messages/s\n1                       6.39        "
            "6385003.80\n"),
       file("ar@a,b,c.txt",
            "# OSU MPI Allreduce Latency Test v5.8\n# Size       Avg Latency(us)   Min Latency(us)\n4  12.45 "
            "11\n")});
  const auto& rate = case_of(r, "osu/multiple-bandwidth-message-rate-p15-1");
  EXPECT_EQ(name_of(r, rate.entity[0]), "mbw");
  EXPECT_DOUBLE_EQ(rate.find("message-rate")->values[0], 6385003.80);
  const auto& reduce = case_of(r, "osu/allreduce-latency-4-n3");
  EXPECT_EQ(reduce.kind, "node");
  EXPECT_EQ(reduce.stage, "groups");
  EXPECT_EQ(reduce.entities(), 3u);
}

std::string osu(const std::string& test, double us, const std::string& columns = "",
                const std::string& rest = "") {
  return fmt::format("# OSU {} Test v7.2\n# Size  Latency (us){}\n8  {}{}\n", test, columns, us, rest);
}

TEST_F(ImportOsu, OneSidedTestsAndDeviceMemoryAreTestsOfTheirOwn) {
  std::vector<InputFile> files;
  for (const char* test : {"MPI Latency", "MPI_Put Latency", "MPI_Get Latency", "MPI_Get_accumulate latency",
                           "MPI-CUDA Latency", "MPI_Put-CUDA Latency"})
    files.push_back(
        file(fmt::format("f{}@n1,n2.txt", files.size()), osu(test, 1.5 + static_cast<double>(files.size()))));
  const auto r = import_osu(files);
  EXPECT_EQ(r.cases.size(), 6U);
  double us = 1.5;
  for (const char* name : {"latency-8", "put-latency-8", "get-latency-8", "get_accumulate-latency-8",
                           "cuda-latency-8", "put-cuda-latency-8"}) {
    const auto& c = case_of(r, std::string("osu/") + name);
    EXPECT_EQ(c.kind, "link") << name;
    EXPECT_EQ(c.samples(), 1U) << name;
    EXPECT_NEAR(c.find("latency")->values[0], us * 1e-6, 1e-12) << name;
    us += 1;
  }
}

TEST_F(ImportOsu, AValidationThatFailedIsAFault) {
  for (const bool good : {true, false}) {
    const auto r = import_osu(
        {file("x@n1,n2.txt", osu("MPI Latency", 1.5, "  Validation", good ? "  Pass" : "  Fail"))});
    const auto& c = case_of(r, "osu/latency-8");
    EXPECT_EQ(c.state == results::CaseState::fail, !good);
    if (!good) {
      EXPECT_THAT(c.reason, HasSubstr("x@n1,n2.txt:3"));
    }
  }
}

std::string allreduce(double us) {
  return fmt::format(
      "# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size  Avg Latency(us)\n8  {}\n", us);
}

/// 16 nodes are slower than 2 without a fault.
TEST_F(ImportOsu, NumbersOfNodesAreDifferentCases) {
  const auto r = import_osu({file("ar@a,b.txt", allreduce(2)), file("ar@c,d.txt", allreduce(2.1)),
                             file("ar@n[01-16].txt", allreduce(9)), file("ar@a.txt", allreduce(1)),
                             file("ar.txt", allreduce(3))});
  EXPECT_THAT(case_of(r, "osu/allreduce-latency-8-n2").count, ElementsAre(1, 1, 1, 1));
  const auto& many = case_of(r, "osu/allreduce-latency-8-n16");
  EXPECT_EQ(many.entities(), 16U);
  EXPECT_EQ(name_of(r, many.entity[15]), "n16");
  EXPECT_EQ(case_of(r, "osu/allreduce-latency-8-n1").entities(), 1U);
  EXPECT_EQ(name_of(r, case_of(r, "osu/allreduce-latency-8").entity[0]), "ar") << "on how many is not known";
}

/// As `srun` and host files list them, one name for each rank.
TEST_F(ImportOsu, ANodeThatIsNamedTwiceIsOneNode) {
  const auto r = import_osu(
      {file("x.txt", "# nodes: n1 n1 n2,n2\n" + allreduce(2)), file("y@n3,n3.txt", osu("MPI Latency", 0.4))});
  EXPECT_THAT(case_of(r, "osu/allreduce-latency-8-n2").count, ElementsAre(1, 1));
  EXPECT_EQ(case_of(r, "osu/latency-8-n1").kind, "node");
}

TEST_F(ImportOsu, HowATestWasRunIsPartOfItsCase) {
  const auto latency = [](const std::string& lines) {
    return "# OSU MPI-CUDA Latency Test v7.4\n" + lines + "# Size  Latency (us)\n8  1.5\n";
  };
  std::vector<InputFile> files;
  const auto add = [&](const std::string& text) {
    files.push_back(file(fmt::format("f{}@n1,n2.txt", files.size()), text));
  };
  add(latency("# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n# Datatype: MPI_CHAR.\n"));
  add(latency("# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n"));
  add(latency("# Datatype: MPI_FLOAT.\n"));
  add("# OSU MPI_Put Latency Test v7.4\n# Window creation: MPI_Win_allocate\n# Synchronization: "
      "MPI_Win_flush\n# Size  Latency (us)\n8  1.5\n");
  add("# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 4 ] [ window size: 32 ]\n"
      "# Size  MB/s  Messages/s\n8  1.5  2.5\n");
  const auto r = import_osu(files);
  std::vector<std::string> names;
  for (const auto& c : r.cases) names.push_back(c.name);
  EXPECT_THAT(names, ElementsAre("cuda-latency-d-d-8", "cuda-latency-d-h-8", "cuda-latency-float-8",
                                 "put-latency-allocate-flush-8", "multiple-bandwidth-message-rate-p4-w32-8"));
}

TEST_F(ImportOsu, TablesWithoutSizesAndWithMoreColumns) {
  const auto r = import_osu(
      {file("a@n1,n2,n3.txt",
            "# OSU MPI Barrier Latency Test v7.4\n# Avg Latency(us)   Min Latency(us)\n             1.53     "
            "   1.2\n"
            "3 processes were here\n"),
       file("b@n1,n2,n3.txt",
            "# OSU MPI Non-blocking Allreduce Latency Test v7.4\n# Overall = Coll. Init + Compute + MPI_Test "
            "+ MPI_Wait\n\n"
            "# Size  Overall(us)  Compute(us)  Pure Comm.(us)  Overlap(%)\n8   21.5  10.2  11.0  98.1\n"),
       file("c@n1,n2.txt",
            "0: # OSU MPI Latency Persistent Test v7.4\n0: # Size  Latency (us)  Validation  P99 Tail "
            "Lat(us)\n"
            "0: 8  1.5  Fail  9.9\n")});
  const auto& barrier = case_of(r, "osu/barrier-latency-n3");
  EXPECT_THAT(barrier.count, ElementsAre(1, 1, 1));
  EXPECT_DOUBLE_EQ(barrier.find("latency")->values[0], 1.53e-6);
  EXPECT_DOUBLE_EQ(case_of(r, "osu/non-blocking-allreduce-latency-8-n3").find("latency")->values[0], 21.5e-6);
  EXPECT_EQ(case_of(r, "osu/latency-persistent-8").kind, "link");
  EXPECT_EQ(case_of(r, "osu/latency-persistent-8").state, results::CaseState::fail);
}

TEST_F(ImportOsu, ATestWithoutResultsHidesNoOtherAndIsAGap) {
  for (const std::string text : {"", "\n", "# OSU MPI Latency Test v7.4\n# Size  Latency (us)\n"}) {
    const auto r = import_osu({file("x@n1,n2.txt", osu("MPI Latency", 1.5)), file("x@n1,n3.txt", text)});
    EXPECT_EQ(case_of(r, "osu/latency-8").entities(), 1U);
    const auto v = verdict::judge(r, {});
    EXPECT_EQ(v.state, "INCONCLUSIVE");
    EXPECT_THAT(r.events.back().text, HasSubstr("x@n1,n3.txt "));
    EXPECT_EQ(r.entities.back().name, "n3");
  }
}

TEST_F(ImportOsu, WhatIsWrongIsNamed) {
  const auto error = [&](const std::string& text) {
    return message([&] { import_osu({file("x.txt", text)}); });
  };
  EXPECT_THAT(error("hello\n"), StartsWith("x.txt: is no output of the OSU benchmarks"));
  EXPECT_THAT(error("# OSU MPI Latency Test v7.5\n# Size  Latency (us)\n"),
              StartsWith("x.txt: has no results"));
  EXPECT_THAT(error("# OSU MPI Latency Test v7.5\n# Size  Latency (us)\n8 quick\n"),
              StartsWith("x.txt:3: latency 'quick'"));
  EXPECT_THAT(error("# Size  Latency (us)\n8 1.5\n"), StartsWith("x.txt:2: results before a line"));
  EXPECT_THAT(error("# nodes:\n# OSU MPI Latency Test\n"), StartsWith("x.txt:1: '# nodes:' names none"));
  EXPECT_THAT(error("# nodes: n[1-\n# OSU MPI Latency Test\n"), StartsWith("x.txt:1: 'n[1-': a bracket"));
  EXPECT_EQ(error(""), "x.txt: is empty");
}

}  // namespace
}  // namespace assay::imports
