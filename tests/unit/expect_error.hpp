// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.hpp"

namespace assay {

/// The message of the Error(usage) that `call` throws; the test fails when it throws none.
template <typename Call>
std::string usage_message(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

/// Matches a message that contains all of these names and numbers, whatever the sentence around them.
inline auto names(const std::vector<std::string>& words) {
  std::vector<::testing::Matcher<std::string>> each;
  for (const std::string& word : words) each.push_back(::testing::HasSubstr(word));
  return ::testing::AllOfArray(each);
}

}  // namespace assay
