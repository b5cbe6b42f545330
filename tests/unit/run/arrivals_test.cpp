// SPDX-License-Identifier: Apache-2.0
#include "run/arrivals.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "run/assemble.hpp"
#include "run/controller.hpp"

namespace assay {
namespace {

std::string report(double value,
                   const results::MetricSpec& spec = {"bandwidth", "B/s", results::Better::higher}) {
  CaseRecord record;
  record.declare(spec);
  auto& row = record.add_row(0);
  row.t = {1}, row.block = {0}, row.values["bandwidth"] = {value};
  return to_text(CaseReport{record.serialize(), "[[\"node\",\"n\",\"c\",1,2]]", "", {"slow"}});
}

TEST(Arrivals, OfALostRankComesAnEmptyRecordInItsPlace) {
  Arrivals arrivals;
  for (const int rank : {7, 2, 5}) arrivals.take(rank, report(rank));
  const auto ended = arrivals.end({2, 7}, {2, 5, 7, 9});
  EXPECT_TRUE(ended.any);
  EXPECT_FALSE(ended.all);
  ASSERT_EQ(ended.records.size(), 4u);
  EXPECT_EQ(ended.records[0].rows_.at(0).values.at("bandwidth"), std::vector<double>{2});
  EXPECT_TRUE(ended.records[1].rows_.empty());
  EXPECT_EQ(ended.records[2].rows_.at(0).values.at("bandwidth"), std::vector<double>{7});
  EXPECT_EQ(ended.unfired[2], std::vector<std::string>{"slow"});
  EXPECT_TRUE(ended.unfired[1].empty());
  EXPECT_EQ(ended.news.counters, std::vector<std::string>(2, "[[\"node\",\"n\",\"c\",1,2]]"));
  EXPECT_TRUE(ended.news.telemetry.empty());
  EXPECT_FALSE(arrivals.end({2, 5, 7}, {2, 5, 7}).any) << "forgotten once they are given out";
}

TEST(Arrivals, MetricsInCommonAreKeptOnce) {
  Arrivals arrivals;
  for (const int rank : {1, 0, 2}) arrivals.take(rank, report(rank));
  const auto ended = arrivals.end({0, 1, 2}, {0, 1, 2});
  EXPECT_EQ(ended.records[0].metrics_.size(), 1u);
  EXPECT_TRUE(ended.records[1].metrics_.empty());
  EXPECT_TRUE(ended.records[2].metrics_.empty());
}

TEST(Arrivals, AnotherDeclarationIsStillFound) {
  Topology topology;
  topology.nodes.push_back({});
  topology.nodes[0].hostname = topology.nodes[0].id = "n";
  topology.ranks.push_back({});
  EntityTable entities(topology);
  Case c;
  c.suite = "memory", c.name = "read";
  using results::Better;
  for (const results::MetricSpec& other : {results::MetricSpec{"bandwidth", "s", Better::higher},
                                           {"bandwidth", "B/s", Better::lower},
                                           {"bandwidth", "B/s", Better::higher, false}}) {
    Arrivals arrivals;
    arrivals.take(0, report(1));
    arrivals.take(1, report(1, other));
    EXPECT_THROW(assemble(c, arrivals.end({0, 1}, {0, 1}).records, entities, ""), Error);
  }
}

TEST(Arrivals, WhatIsNoReportIsAnError) { EXPECT_THROW(Arrivals().take(0, "2:{}nonsense"), std::exception); }

TEST(Arrivals, ATooLargeReportIsAnErrorOfItsCaseAndKeepsWhatWasFoundWrong) {
  CaseRecord large;
  large.declare({"bandwidth", "B/s", results::Better::higher});
  large.add_row(1).values["bandwidth"].assign(100'000, 1.0);
  large.miscompare({});
  CaseReport report{large.serialize(), "[]", "", {"slow"}};
  EXPECT_EQ(bounded_text(report, "rank 3 on n1", "gemm/x", 1'000'000), to_text(report));
  const CaseReport sent = case_report_from(bounded_text(report, "rank 3 on n1", "gemm/x", 700'000));
  EXPECT_EQ(sent.unfired, report.unfired);
  const CaseRecord refused = CaseRecord::deserialize(sent.record);
  EXPECT_TRUE(refused.rows_.empty());
  EXPECT_EQ(refused.miscompares(), 1u);
  EXPECT_EQ(refused.state_, results::CaseState::fail);

  large.state_ = results::CaseState::pass, large.miscompares_ = 0;
  report.record = large.serialize();
  const CaseRecord error = CaseRecord::deserialize(
      case_report_from(bounded_text(report, "rank 3 on n1", "gemm/x", 700'000)).record);
  EXPECT_EQ(error.state_, results::CaseState::error);
  EXPECT_EQ(
      error.reason_,
      "rank 3 on n1: its samples of gemm/x take 781.5 KiB, more than the 683.6 KiB that a rank may send of a "
      "case");
}

}  // namespace
}  // namespace assay
