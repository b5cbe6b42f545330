// SPDX-License-Identifier: Apache-2.0
// Widths, breaks and percentages of printed text.
#include "report/layout.hpp"

#include <gtest/gtest.h>

#include <string>

namespace assay {
namespace {

TEST(Layout, APercentageThatRoundsToNothingHasNoSign) {
  EXPECT_EQ(report::percent_text(-4e-4), "0.0%");
  EXPECT_EQ(report::percent_text(-6e-4), "-0.1%");
}

TEST(Layout, WrapAndFit) {
  EXPECT_EQ(report::fit("node07/cores0-3>node09/cores0-3", 11), "node0~es0-3");
  EXPECT_EQ(report::wrap("a bb ccc", 5, 2), "a bb\n  ccc\n");
  EXPECT_EQ(report::wrap("abcdefgh", 5, 0), "abcde\nfgh\n");
  EXPECT_EQ(report::wrap("spread 145 %, worst -83 %", 23, 2), "spread 145 %, worst\n  -83 %\n")
      << "a unit stays with its number";
  // A name of a hostile file: what counts the rest anew for each line takes minutes.
  EXPECT_EQ(report::wrap(std::string(8'000'000, 'x'), 80, 2).size(),
            8'000'000U + 3 * ((8'000'000 + 77) / 78));
}

}  // namespace
}  // namespace assay
