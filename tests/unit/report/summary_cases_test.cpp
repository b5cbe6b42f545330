// SPDX-License-Identifier: Apache-2.0
// Which cases the summary shows, and what it adds to them.
#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "report/report.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Report, RetestsAreCountedApartAndHaveNoRows) {
  auto r = healthy(8);
  auto c = first_case(r);
  c.name += ".c1";
  r.cases.push_back(std::move(c));
  const auto text = report::summary(r, judge(r), "run.h5", {});
  EXPECT_THAT(text, HasSubstr("\ngemm  1 of 1 case passed, 1 measured again for parts in doubt\n"));
  EXPECT_EQ(text.find("fp32 n2048 together"), text.rfind("fp32 n2048 together")) << text;
}

TEST(Report, ARetestIsComparedWithItsOtherParts) {
  auto r = healthy(8);
  auto& first = first_case(r).metrics[0].values;
  for (std::size_t s = 0; s < 6; ++s) first[3 * 6 + s] *= 0.5;
  auto c = first_case(r);
  c.name += ".c1";
  auto& again = c.metrics[0].values;
  for (std::size_t s = 0; s < 6; ++s) again[3 * 6 + s] = again[s];
  for (auto& value : again) value *= 0.6;  // all have slowed down
  r.cases.push_back(std::move(c));
  EXPECT_THAT(report::summary(r, judge(r), "run.h5", {160, false}),
              HasSubstr("worst node3/cores0-1 -50 % at first, normal when measured again"));
}

TEST(Report, WithoutACaseThereIsNoEmptyFrame) {
  auto r = cluster(2);
  plan_only(r, "gemm", "fp32-n2048-together", true);
  const auto text = report::summary(r, judge(r), "run.h5", {});
  const std::string rule(80, '-');
  EXPECT_THAT(text, Not(HasSubstr(rule + "\n" + rule)));
  EXPECT_THAT(text, HasSubstr(rule + "\nINCONCLUSIVE  required case gemm/fp32-n2048-together did not run\n"));
}

TEST(Report, ASizeThatWasReducedIsTold) {
  const auto told = [](std::vector<double> used, const char* metric, const char* unit) {
    auto r = healthy(2);
    auto& c = add_case(r, "allreduce", "allreduce-world-1048576-mpi", metric, unit, results::Better::lower,
                       "device", rows_of_kind(r, "device"), {0.01, 0.011});
    c.parameters["bytes"] = 1048576;
    results::Metric size = c.metrics[0];
    size.name = "message_bytes";
    size.better = results::Better::none;
    size.role = results::Role::covariate;
    size.per_sample = false;
    size.values = std::move(used);
    c.metrics.push_back(std::move(size));
    const report::Style wide{240, false};
    return report::summary(r, judge(r), "r.h5", wide) + report::inspect_text(r, "r.h5", wide);
  };
  using ::testing::ContainsRegex;
  const std::string all = "; size reduced to 128 KiB to fit the time, times extrapolated\n";
  EXPECT_THAT(told({131072, 131072}, "duration", "s"),
              ContainsRegex("mpi: [^\n]*" + all + "(.|\n)*mpi: pass[^\n]*" + all));
  EXPECT_THAT(told({131072, 1048576}, "bandwidth", "B/s"),
              HasSubstr("; size reduced to 128 KiB in 1 of 2 parts to fit the time\n"));
  EXPECT_THAT(told({1048576, 1048576}, "duration", "s"), Not(HasSubstr("reduced")));
}

TEST(Report, TheChanceOfAWrongFailIsOfARunOrOfFiles) {
  auto v = judge(healthy(8));
  v.false_alarm_rate = 0.024;
  EXPECT_THAT(report::verdict_text(v, {}), HasSubstr("at most 2.4 % per run"));
  v.inputs["files"] = {"a.h5", "b.h5"};
  EXPECT_THAT(report::verdict_text(v, {}), HasSubstr("at most 2.4 % over 2 files"));
  v.false_alarm_rate = 0.9999;
  EXPECT_THAT(report::verdict_text(v, {}), HasSubstr("at most 100 % over 2 files"));
}

}  // namespace
}  // namespace assay
