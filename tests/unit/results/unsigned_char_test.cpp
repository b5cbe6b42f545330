// SPDX-License-Identifier: Apache-2.0
// Texts where char has no sign, as on Arm: this file and text.cpp are compiled so.
#include <gmock/gmock.h>

#include <climits>
#include <string>

#include "results/text.hpp"

namespace assay::results {
namespace {

static_assert(CHAR_MIN == 0);

TEST(TextOfUnsignedChar, EveryByteAlone) {
  for (int value = 0; value < 256; ++value) {
    const std::string byte(1, static_cast<char>(value));
    const std::string cleaned = value == 0 ? "" : value < 0x80 ? byte : "\xef\xbf\xbd";
    EXPECT_EQ(clean_text(byte), cleaned) << value;
    EXPECT_EQ(clean_text("a" + byte + "b"), "a" + cleaned + "b") << value;
    const bool control = value < 0x20 || value == 0x7f;
    EXPECT_EQ(one_line("a" + byte), "a" + (control && value != 0 ? " " : cleaned)) << value;
  }
}

TEST(TextOfUnsignedChar, CharactersOfSeveralBytesStay) {
  for (const char* text : {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "a\xc3\xbcz"}) {
    EXPECT_EQ(clean_text(text), text);
    EXPECT_EQ(one_line(text), text);
  }
  EXPECT_EQ(clean_text("\xc3("), "\xef\xbf\xbd(");
  EXPECT_EQ(one_line("a\xc2\x9b"
                     "2J"),
            "a  2J")
      << "a control character of two bytes";
  EXPECT_FALSE(is_column_name("\xfc"));
}

}  // namespace
}  // namespace assay::results
