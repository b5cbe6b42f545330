// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "results/export.hpp"
#include "tests/results/example_results.hpp"

namespace assay::results {
namespace {

struct Sum {
  std::size_t rows = 0;
  double values = 0;
};

/// What a complete export holds, counted without it: for every metric the taken samples.
Sum expected(const Results& r) {
  Sum sum;
  for (const CaseData& c : r.cases) {
    for (const Metric& m : c.metrics) {
      for (std::size_t e = 0; e < c.entity.size(); ++e) {
        const std::size_t n = m.per_sample ? static_cast<std::size_t>(c.count[e]) : 1;
        for (std::size_t s = 0; s < n; ++s) {
          const double value = m.values[m.per_sample ? e * c.sample.size() + s : e];
          ++sum.rows;
          if (std::isfinite(value)) sum.values += value;
        }
      }
    }
  }
  return sum;
}

/// RFC 4180, written apart from the exporter.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        rows.back().back() += '"';
        ++i;
      } else if (c == '"') {
        quoted = false;
      } else {
        rows.back().back() += c;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      rows.back().emplace_back();
    } else if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      rows.emplace_back(1);
      ++i;
    } else {
      rows.back().back() += c;
    }
  }
  rows.pop_back();
  return rows;
}

Results sample_results() {
  Results r;
  const Writer::Start start = example::start();
  r.info = start.info;
  r.info.run_id = "run, \"quoted\"\nand broken";
  r.entities = start.entities;
  for (int i = 0; i < 8; ++i) {
    const CaseBundle b = example::bundle(i);
    r.cases.push_back(b.data);
    r.entities.insert(r.entities.end(), b.new_entities.begin(), b.new_entities.end());
  }
  return r;
}

TEST(Export, CsvHoldsEverySample) {
  const Results r = sample_results();
  std::ostringstream out;
  export_csv(r, out);
  const auto rows = parse_csv(out.str());
  const Sum want = expected(r);
  ASSERT_EQ(rows.size(), want.rows + 1);
  Sum got;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), rows[0].size());
    EXPECT_EQ(rows[i][0], r.info.run_id);
    const double value = std::strtod(rows[i].back().c_str(), nullptr);
    if (std::isfinite(value)) got.values += value;
  }
  EXPECT_EQ(got.values, want.values);  // 17 digits lose nothing
}

TEST(Export, CsvNamesTheParts) {
  Results r = sample_results();
  r.cases = {r.cases[0]};
  std::ostringstream out;
  export_csv(r, out);
  const auto rows = parse_csv(out.str());
  const std::vector<std::string> head{"run_id",    "suite",  "case",   "state",       "metric",
                                      "role",      "unit",   "better", "entity_kind", "entity_name",
                                      "entity_id", "node",   "rank",   "source",      "destination",
                                      "block",     "sample", "t",      "value"};
  EXPECT_EQ(rows[0], head);
  const std::vector<std::string> first{r.info.run_id,
                                       "gemm",
                                       "op0-n4096-together",
                                       "pass",
                                       "throughput",
                                       "metric",
                                       "FLOP/s",
                                       "higher",
                                       "link",
                                       "link7",
                                       "id:link7",
                                       "node01",
                                       "",
                                       "node01/cores0-1",
                                       "node01/cores2-3",
                                       "0",
                                       "0",
                                       "0",
                                       "33333333333.333332"};
  EXPECT_EQ(rows[1], first);
}

TEST(Export, JsonLinesHoldEverySampleAndEveryCase) {
  Results r = sample_results();
  r.verdict = example::verdict(0);
  std::ostringstream out;
  export_jsonl(r, out);
  std::istringstream in(out.str());
  Sum got;
  std::size_t cases = 0, arrays = 0, nulls = 0;
  std::vector<std::string> confirmed_by;
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line);
    if (json.at("record") == "sample") {
      ++got.rows;
      if (json.at("value").is_null()) {
        ++nulls;
      } else {
        got.values += json.at("value").get<double>();
      }
    }
    arrays += json.at("record") == "array";
    if (json.at("record") == "finding") confirmed_by.push_back(json.at("confirmed_by"));
    if (json.at("record") == "case") {
      EXPECT_EQ(json.at("parameters"), r.cases[cases++].parameters);
    }
  }
  const Sum want = expected(r);
  EXPECT_EQ(got.rows, want.rows);
  EXPECT_EQ(got.values, want.values);
  EXPECT_EQ(cases, r.cases.size());
  EXPECT_EQ(arrays, 7u);
  EXPECT_EQ(confirmed_by, (std::vector<std::string>{"fact", ""}));
  EXPECT_EQ(nulls, 7u);  // the clock of the second entity was not read
}

TEST(Export, JsonLinesKeepInfinitiesAsText) {
  Results r = sample_results();
  r.cases = {r.cases[0]};
  for (const double value : {HUGE_VAL, -HUGE_VAL}) {
    r.cases[0].metrics[0].values[0] = value;
    std::ostringstream out;
    export_jsonl(r, out);
    EXPECT_NE(out.str().find(value > 0 ? "\"value\":\"inf\"}" : "\"value\":\"-inf\"}"), std::string::npos);
  }
}

TEST(Export, CsvFieldsAreQuotedWhereTheyMustBe) {
  EXPECT_EQ(csv_field("a b"), "a b");
  EXPECT_EQ(csv_field("a\rb"), "\"a\rb\"");
  EXPECT_EQ(csv_field("a\"b"), "\"a\"\"b\"");
}

}  // namespace
}  // namespace assay::results
