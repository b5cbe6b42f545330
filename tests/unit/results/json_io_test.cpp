// SPDX-License-Identifier: Apache-2.0
// Objects with a checksum as their last member.
#include "results/json_io.hpp"

#include <gmock/gmock.h>

#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"

namespace assay::results {
namespace {

std::string checksum_of(const std::string& text) {
  char hex[20];
  std::snprintf(hex, sizeof hex, "%016llx",
                static_cast<unsigned long long>(mix64(hash_text(text), text.size())));
  return hex;
}

/// By way of a second object, of what a reader will see.
std::string sealed_by_object(const Json& object) {
  const std::string text = dump(object);
  Json sealed = Json::parse(text);
  sealed["checksum"] = checksum_of(text);
  return dump(sealed);
}

std::vector<Json> objects() {
  Json nested{{"a", {1, -2, 3.5, 1e300, -0.0, 0.1}}, {"b", {{"checksum", "0"}, {"c", nullptr}}}};
  nested["empty"] = Json::array({Json::object(), Json::array()});
  nested["most"] = std::numeric_limits<std::uint64_t>::max();
  nested["nan"] = std::numeric_limits<double>::quiet_NaN();
  const Json texts{{"quote\"", "a \\ \" \n \t \x01 \u00e4"},
                   {"bad", "\xff"},
                   {"like the end", ",\"checksum\":\"0123456789abcdef\"}"}};
  return {Json::object(), {{"a", 1}}, nested, texts};
}

void expect_refused(const std::string& text) {
  EXPECT_THROW(static_cast<void>(parse_sealed(text)), Error) << text;
}

TEST(Sealed, TheTextIsThatOfTheObjectWithOneMemberMore) {
  for (const Json& object : objects()) EXPECT_EQ(dump_sealed(object), sealed_by_object(object));
}

TEST(Sealed, AReaderTakesOffTheChecksum) {
  for (const Json& object : objects()) {
    EXPECT_EQ(dump(parse_sealed(dump_sealed(object))), dump(object));
    EXPECT_EQ(dump(parse_sealed(dump_sealed(object) + "\n")), dump(object));
  }
}

TEST(Sealed, AChangedByteIsRefused) {
  for (const Json& object : objects()) {
    const std::string text = dump_sealed(object);
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::string changed = text;
      changed[i] = changed[i] == 'x' ? 'y' : 'x';
      expect_refused(changed);
    }
  }
  expect_refused("{}");
  expect_refused("[]");
  expect_refused(R"({"checksum":1})");
}

/// Blanks, another order, or other words for the same number: the checksum is that of our words.
TEST(Sealed, AnObjectThatAnotherProgramWroteIsAccepted) {
  const Json object{{"a", 1.5}, {"b", "c"}};
  const std::string checksum = checksum_of(dump(object));
  EXPECT_EQ(parse_sealed("{ \"checksum\": \"" + checksum + "\", \"a\": 15e-1, \"b\": \"c\" }\n"), object);
  EXPECT_EQ(parse_sealed("{\"a\":1.50,\"b\":\"\\u0063\",\"checksum\":\"" + checksum + "\"}"), object);
}

}  // namespace
}  // namespace assay::results
