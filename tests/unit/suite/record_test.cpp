// SPDX-License-Identifier: Apache-2.0
#include "suite/record.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"
#include "run/assemble.hpp"

namespace assay {
namespace {

Topology two_ranks() {
  Topology topology;
  Node node;
  node.hostname = "node07";
  node.id = "node07";
  topology.nodes.push_back(node);
  for (int rank = 0; rank < 2; ++rank) {
    RankPlace place;
    place.rank = place.local_rank = rank;
    place.local_size = 2;
    place.cpus = {rank};
    topology.ranks.push_back(place);
  }
  return topology;
}

CaseRecord record_of(int entity, std::vector<double> values) {
  CaseRecord record;
  record.declare({"throughput", "FLOP/s", results::Better::higher});
  record.declare({"clock", "Hz", results::Better::none, false, results::Role::covariate, false});
  record.declare_integers("digest", {"sample"}, {0});
  auto& row = record.add_row(entity);
  for (std::size_t i = 0; i < values.size(); ++i) {
    row.t.push_back(0.5 * static_cast<double>(i));
    row.block.push_back(static_cast<std::int32_t>(i / 2));
    row.integers["digest"].push_back(40 + i);
  }
  row.values["throughput"] = std::move(values);
  return record;
}

Case a_case() {
  Case c;
  c.suite = "gemm";
  c.name = "fp32-n8-together";
  c.required = true;
  c.parameters = {{"n", 8}};
  return c;
}

TEST(Record, SurvivesTheJourneyBetweenRanks) {
  CaseRecord record = record_of(3, {1.5, std::nan(""), -0.0});
  record.miscompare({"", 3, 77, 1, 2, 2, 0.25}, 5);
  record.selftest({"gemm", 1, 1, 1, 1, 3});
  record.event("note", "a \"text\"\n");
  record.parameter("k", 20);
  record.add_time(1, 2, 3);
  const CaseRecord back = CaseRecord::deserialize(record.serialize());
  ASSERT_EQ(back.rows_.size(), 1u);
  EXPECT_EQ(back.rows_[0].values.at("throughput")[0], 1.5);
  EXPECT_TRUE(std::isnan(back.rows_[0].values.at("throughput")[1]));
  EXPECT_TRUE(std::signbit(back.rows_[0].values.at("throughput")[2]));
  EXPECT_EQ(back.rows_[0].integers.at("digest").size(), 3u);
  EXPECT_EQ(back.miscompares(), 5u);
  EXPECT_EQ(back.records_.at(0).index, 77u);
  EXPECT_EQ(back.state_, results::CaseState::fail);
  EXPECT_EQ(back.events_.at(0).text, "a \"text\"\n");
  EXPECT_EQ(back.verify_s_, 3.0);
  EXPECT_EQ(back.serialize(), record.serialize());
}

TEST(Record, ABrokenRecordIsAnInternalError) { EXPECT_THROW(CaseRecord::deserialize("nonsense"), Error); }

TEST(Assemble, PadsShorterRanksWithNotTaken) {
  const Topology topology = two_ranks();
  EntityTable entities(topology);
  const auto bundle =
      assemble(a_case(),
               {record_of(entities.device_of_rank(0), {1, 2, 3}), record_of(entities.device_of_rank(1), {4})},
               entities, "id");
  const auto& data = bundle.data;
  EXPECT_EQ(data.state, results::CaseState::pass);
  EXPECT_EQ(data.count, (std::vector<std::int32_t>{3, 1}));
  const auto* m = data.find("throughput");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(m->values.size(), 6u);
  EXPECT_EQ(m->values[3], 4.0);
  EXPECT_TRUE(std::isnan(m->values[4]));
  EXPECT_EQ(data.arrays.at(0).shape, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(data.arrays.at(0).values, (std::vector<std::uint64_t>{40, 41, 42, 40, 0, 0}));
  EXPECT_EQ(data.find("clock")->values.size(), 2u);
}

TEST(Assemble, AMeasuredNanIsAnErrorThatNamesTheEntity) {
  const Topology topology = two_ranks();
  EntityTable entities(topology);
  const auto bundle =
      assemble(a_case(), {record_of(entities.device_of_rank(1), {1, std::nan(""), 3})}, entities, "id");
  EXPECT_EQ(bundle.data.state, results::CaseState::error);
  EXPECT_NE(bundle.data.reason.find("node07/cores1"), std::string::npos) << bundle.data.reason;
}

TEST(Assemble, AMetricThatNeedNotBeThereMayLackSamples) {
  const Topology topology = two_ranks();
  EntityTable entities(topology);
  CaseRecord record = record_of(entities.device_of_rank(1), {1, std::nan(""), 3});
  for (auto& metric : record.metrics_) metric.required = false;
  const auto bundle = assemble(a_case(), {record}, entities, "id");
  EXPECT_EQ(bundle.data.state, results::CaseState::pass) << bundle.data.reason;
  EXPECT_EQ(bundle.data.find("throughput")->values[2], 3.0);
}

TEST(Assemble, TheWorstStateOfTheRanksWinsAndMiscomparesAdd) {
  const Topology topology = two_ranks();
  EntityTable entities(topology);
  CaseRecord bad = record_of(entities.device_of_rank(1), {1});
  bad.miscompare({"", entities.device_of_rank(1), 9, 1, 2, 2, 0}, 3);
  const auto bundle = assemble(a_case(), {record_of(entities.device_of_rank(0), {1}), bad}, entities, "id");
  EXPECT_EQ(bundle.data.state, results::CaseState::fail);
  EXPECT_EQ(bundle.data.parameters.at("miscompares"), 3);
  EXPECT_EQ(bundle.errors.at(0).case_path, "gemm/fp32-n8-together");
}

TEST(Assemble, LinksBecomeEntitiesOnce) {
  const Topology topology = two_ranks();
  EntityTable entities(topology);
  const int a = entities.device_of_rank(0), b = entities.device_of_rank(1);
  CaseRecord record;
  record.declare({"latency", "s", results::Better::lower});
  for (const auto& [s, d] : {std::pair{a, b}, std::pair{b, a}}) {
    auto& row = record.add_link(s, d);
    row.t = {0.0};
    row.block = {0};
    row.values["latency"] = {1e-6};
  }
  Case c = a_case();
  c.entity_kind = "link";
  const auto first = assemble(c, {record, CaseRecord()}, entities, "id");
  EXPECT_EQ(first.new_entities.size(), 2u);
  EXPECT_EQ(first.data.source, (std::vector<std::int32_t>{a, b}));
  EXPECT_EQ(assemble(c, {record, CaseRecord()}, entities, "id").new_entities.size(), 0u);
}

TEST(Assemble, CoreSharesAreThoseOfTheRanksAndOfALinkTheLesser) {
  const Topology topology = two_ranks();
  EntityTable entities(topology);
  const int a = entities.device_of_rank(0), b = entities.device_of_rank(1);
  const results::Judging compute{results::MetricClass::compute};
  CaseRecord first = record_of(a, {1}), second = record_of(b, {1});
  for (auto* r : {&first, &second}) r->metrics_[0].judging = compute;
  first.core_share_ = 0.5;
  second.core_share_ = 1;
  EXPECT_EQ(CaseRecord::deserialize(first.serialize()).core_share_, 0.5);
  second.add_row(entities.node(0));
  const auto data = assemble(a_case(), {first, second}, entities, "id").data;
  ASSERT_NE(data.find(results::core_share), nullptr);
  EXPECT_EQ(data.find(results::core_share)->values, (std::vector<double>{0.5, 1, 0.5}));
  CaseRecord link, silent;
  silent.core_share_ = 1;
  link.declare({"latency", "s", results::Better::lower}).judging = compute;
  link.add_link(b, a);
  link.core_share_ = 0.5;
  EXPECT_EQ(assemble(a_case(), {link, silent}, entities, "id").data.find(results::core_share)->values[0],
            0.5);
  first.core_share_ = second.core_share_ = results::not_taken;
  EXPECT_EQ(assemble(a_case(), {first, second}, entities, "id").data.find(results::core_share), nullptr);
}

TEST(Assemble, DifferentMetricsOnTwoRanksAreABug) {
  const Topology topology = two_ranks();
  EntityTable entities(topology);
  CaseRecord other;
  other.declare({"bandwidth", "B/s", results::Better::higher});
  other.add_row(entities.device_of_rank(1));
  EXPECT_THROW(assemble(a_case(), {record_of(entities.device_of_rank(0), {1}), other}, entities, ""), Error);
}

TEST(CaseKey, RepeatsShareItAndParametersChangeIt) {
  Case a = a_case(), repeat = a_case(), other = a_case();
  repeat.name += ".p2";
  other.parameters["n"] = 16;
  EXPECT_EQ(case_key(a, "x"), case_key(repeat, "x"));
  EXPECT_NE(case_key(a, "x"), case_key(other, "x"));
  EXPECT_NE(case_key(a, "x"), case_key(a, "y"));
}

}  // namespace
}  // namespace assay
