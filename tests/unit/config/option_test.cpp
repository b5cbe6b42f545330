// SPDX-License-Identifier: Apache-2.0
#include "config/option.hpp"

#include "config/suggest.hpp"
#include "tests/unit/expect_error.hpp"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OptionSpec spec(OptionKind kind, const std::string& default_text = "", std::vector<std::string> allowed = {},
                bool repeatable = false) {
  OptionSpec s;
  s.name = "x";
  s.kind = kind;
  s.default_text = default_text;
  s.allowed = std::move(allowed);
  s.repeatable = repeatable;
  return s;
}

OptionValues set(const OptionSpec& s, const std::vector<std::string>& texts) {
  OptionValues values;
  values.set(s, texts);
  return values;
}

std::string failure(const OptionSpec& s, const std::vector<std::string>& texts) {
  return usage_message([&] { set(s, texts); });
}

TEST(OptionValues, ParsesEveryKind) {
  EXPECT_TRUE(set(spec(OptionKind::flag), {"true"}).flag("x"));
  EXPECT_FALSE(set(spec(OptionKind::flag), {"false"}).flag("x"));
  EXPECT_EQ(set(spec(OptionKind::text), {"abc"}).text("x"), "abc");
  EXPECT_EQ(set(spec(OptionKind::integer), {"-12"}).integer("x"), -12);
  EXPECT_DOUBLE_EQ(set(spec(OptionKind::number), {"0.5"}).number("x"), 0.5);
  EXPECT_EQ(set(spec(OptionKind::bytes), {"4KiB"}).bytes("x"), 4096u);
  EXPECT_DOUBLE_EQ(set(spec(OptionKind::seconds), {"2m"}).number("x"), 120);
  EXPECT_THAT(set(spec(OptionKind::list), {"a,b", "c"}).list("x"), ElementsAre("a", "b", "c"));
  EXPECT_EQ(set(spec(OptionKind::choice, "", {"a", "b"}), {"b"}).text("x"), "b");
  EXPECT_THAT(set(spec(OptionKind::choices, "", {"a", "b"}), {"b,a"}).list("x"), ElementsAre("b", "a"));
  EXPECT_EQ(set(spec(OptionKind::path), {"/tmp/x"}).text("x"), "/tmp/x");
}

TEST(OptionValues, RefusesABadValueOfEveryKindNamingOptionAndValue) {
  EXPECT_THAT(failure(spec(OptionKind::flag), {"maybe"}), names({"--x:", "maybe"}));
  EXPECT_THAT(failure(spec(OptionKind::integer), {"12.5"}), names({"--x:", "12.5"}));
  EXPECT_THAT(failure(spec(OptionKind::integer), {"99999999999999999999"}),
              names({"--x:", "99999999999999999999", "range"}));
  EXPECT_THAT(failure(spec(OptionKind::number), {"half"}), names({"--x:", "half"}));
  EXPECT_THAT(failure(spec(OptionKind::number), {"nan"}), names({"--x:", "nan"}));
  EXPECT_THAT(failure(spec(OptionKind::bytes), {"4KB"}), HasSubstr("--x: '4KB' is no size"));
  EXPECT_THAT(failure(spec(OptionKind::seconds), {"soon"}), HasSubstr("--x: 'soon' is no duration"));
  EXPECT_THAT(failure(spec(OptionKind::list), {"a,,b"}), names({"--x:", "a,,b"}));
  EXPECT_THAT(failure(spec(OptionKind::choice, "", {"quick", "soak"}), {"quik"}),
              names({"--x:", "'quik'", "soak", "quick?"}));
  EXPECT_THAT(failure(spec(OptionKind::choices, "", {"a", "b"}), {"a,c"}), names({"--x:", "'c'", "a, b"}));
  EXPECT_EQ(failure(spec(OptionKind::text), {""}), "--x: empty value");
  EXPECT_EQ(failure(spec(OptionKind::path), {""}), "--x: empty value");
}

TEST(OptionValues, TakesOneValueUnlessItIsAList) {
  EXPECT_THAT(failure(spec(OptionKind::text), {"a", "b"}), names({"--x:", "2"}));
  EXPECT_THAT(set(spec(OptionKind::text, "", {}, true), {"a,b", "c"}).list("x"), ElementsAre("a,b", "c"));
}

TEST(OptionValues, AChoiceHoldsOnceHoweverOftenItIsNamed) {
  const auto choices = spec(OptionKind::choices, "", {"a", "b"});
  EXPECT_THAT(set(choices, {"b,b"}).list("x"), ElementsAre("b"));
  EXPECT_THAT(set(choices, {"b,a,b", "a"}).list("x"), ElementsAre("b", "a"));
  EXPECT_THAT(set(spec(OptionKind::list), {"a,a"}).list("x"), ElementsAre("a", "a"));
}

TEST(OptionValues, UsesTheDefaultAndKnowsUnset) {
  EXPECT_EQ(set(spec(OptionKind::bytes, "1MiB"), {}).bytes("x"), 1u << 20);
  EXPECT_FALSE(set(spec(OptionKind::text), {}).has("x"));
  EXPECT_EQ(set(spec(OptionKind::text), {}).text("x"), "");
  EXPECT_TRUE(set(spec(OptionKind::list), {}).list("x").empty());
  EXPECT_FALSE(set(spec(OptionKind::flag), {}).flag("x"));
}

TEST(OptionValues, ReportsAnAccessOfTheWrongTypeAsABug) {
  EXPECT_THROW(set(spec(OptionKind::text), {"a"}).integer("x"), Error);
  EXPECT_THROW(OptionValues().text("nowhere"), Error);
}

TEST(NearestName, FindsTyposAndNoUnrelatedWords) {
  const std::vector<std::string> names{"limits", "level", "expect-nodes", "gemm.dtypes"};
  EXPECT_EQ(nearest_name("limts", names), "limits");
  EXPECT_EQ(nearest_name("expect-node", names), "expect-nodes");
  EXPECT_EQ(nearest_name("gem.dtypes", names), "gemm.dtypes");
  EXPECT_EQ(nearest_name("baseline", names), "");
  EXPECT_EQ(nearest_name("", names), "");
}

}  // namespace
}  // namespace assay
