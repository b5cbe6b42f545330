// SPDX-License-Identifier: Apache-2.0
// The page of a build that had no npm registry at hand: still, and whole.
#include <gtest/gtest.h>

#include "report/html/page.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

TEST(StillPage, HasEverySectionWithPicturesAndTablesAndNoScript) {
  ASSERT_FALSE(report::page_is_interactive());
  auto r = fabricate::cluster(8);
  const auto rows = fabricate::rows_of_kind(r, "device");
  for (const int size : {1024, 4096, 16384}) {
    std::vector<double> values;
    for (std::size_t i = 0; i < rows.size(); ++i)
      values.push_back(1e11 * fabricate::wobble(i) * (i == 3 ? 0.7 : 1));
    fabricate::add_case(r, "memory", "copy-" + std::to_string(size) + "-together", "bandwidth", "B/s",
                        results::Better::higher, "device", rows, values, 12)
        .parameters["bytes"] = size;
  }
  r.telemetry = {std::vector(3, rows.front()), {0, 1, 2}, {{"clock", {1e9, 2e9, 1e9}}}, {{"clock", "Hz"}}};
  const verdict::Options options;
  verdict::Judgement judgement(r, options);
  const auto verdict = verdict::judge_all(judgement);
  const std::string page = report::page_html(
      {"run.h5", "00ff", r, judgement, verdict, {}, std::nullopt, std::nullopt, {}, nullptr});
  EXPECT_EQ(count(page, "script-src 'none'"), 1U);
  EXPECT_EQ(count(page, "<script"), 1U);  // the data block, which is no program
  EXPECT_EQ(count(page, "<script type=\"application/json\""), 1U);
  EXPECT_EQ(count(page, "built without the script"), 1U);
  EXPECT_EQ(count(page, "<section id="), 13U);
  for (const char* there :
       {"node3", "class=\"dot peer\"", "samples over the time of the run", "by size: median and the band",
        "clock over time", "class=\"signature\"", "class=\"finding warn\"", "class=\"node inconclusive\""})
    EXPECT_NE(page.find(there), std::string::npos) << there;
  EXPECT_GE(count(page, "<svg"), 5U);
  EXPECT_GE(count(page, "<table"), 5U);
  EXPECT_EQ(count(page, "<canvas"), 0U);
}

}  // namespace
}  // namespace assay
