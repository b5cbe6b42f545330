// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <gtest/gtest.h>

#include "base/interned.hpp"

namespace assay {
namespace {

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,b", ','), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(split(",a,,", ','), (std::vector<std::string>{"", "a", "", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

TEST(Interned, TheTextOfANewRowIsTheEmptyOne) {
  const Interned made, given = std::string();
  EXPECT_EQ(made, given);
  EXPECT_EQ(&made.str(), &given.str());
  EXPECT_EQ(made, "");
}

}  // namespace
}  // namespace assay
