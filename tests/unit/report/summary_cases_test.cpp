// SPDX-License-Identifier: Apache-2.0
// Which cases the summary shows.
#include <gmock/gmock.h>

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

TEST(Report, WithoutACaseThereIsNoEmptyFrame) {
  auto r = cluster(2);
  plan_only(r, "gemm", "fp32-n2048-together", true);
  const auto text = report::summary(r, judge(r), "run.h5", {});
  const std::string rule(80, '-');
  EXPECT_THAT(text, Not(HasSubstr(rule + "\n" + rule)));
  EXPECT_THAT(text, HasSubstr(rule + "\nINCONCLUSIVE  required case gemm/fp32-n2048-together did not run\n"));
}

}  // namespace
}  // namespace assay
