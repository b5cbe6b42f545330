// SPDX-License-Identifier: Apache-2.0
// Counts of errors of imported parts.
#include <fmt/format.h>

#include "files.hpp"
#include "import/import.hpp"
#include "verdict/verdict.hpp"

namespace assay::imports {
namespace {

class ImportCounts : public ImportTest {};

/// More than a quarter were a note, and half of them or more were nothing.
TEST_F(ImportCounts, MorePartsThatCountFarMoreAreNoMilder) {
  for (const std::size_t high : {2U, 3U, 4U, 6U, 8U}) {
    std::string text = "node,device,metric,unit,better,sample,value\n";
    for (std::size_t n = 0; n < 12; ++n)
      for (int s = 0; s < 3; ++s)
        text += fmt::format("n{},0,xid errors,count,lower,{},{}\n", n, s, n < high ? 1000 : s % 2);
    const auto v = verdict::judge(import_csv({file("x.csv", text)}), {});
    EXPECT_EQ(v.state, "WARN") << high;
    ASSERT_EQ(v.findings.size(), 1U) << high;
    EXPECT_EQ(v.findings[0].members.size(), high);
    EXPECT_EQ(v.findings[0].reference, 1) << high;
    EXPECT_EQ(v.findings[0].text.find("a limit has to tell") != std::string::npos, high > 3) << high;
  }
}

/// A third without any, the others with a few in their lifetime.
TEST_F(ImportCounts, FewOfMostPartsAreNoWarning) {
  std::string text = "node,device,metric,unit,better,sample,value\n";
  for (std::size_t n = 0; n < 12; ++n)
    text += fmt::format("n{},0,xid errors,count,lower,0,{}\n", n, n < 4 ? 0 : 7 + n % 6);
  EXPECT_EQ(verdict::judge(import_csv({file("x.csv", text)}), {}).state, "PASS");
}

}  // namespace
}  // namespace assay::imports
