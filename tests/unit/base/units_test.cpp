// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <cmath>
#include <limits>

#include "tests/unit/expect_error.hpp"

namespace assay {
namespace {

using testing::HasSubstr;

TEST(ParseBytes, TakesPlainBinaryAndDecimalSizes) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("64MiB"), 64u << 20);
  EXPECT_EQ(parse_bytes("1 GB"), 1000000000u);
  EXPECT_EQ(parse_bytes(" 1.5 KiB "), 1536u);
  EXPECT_EQ(parse_bytes("3kB"), 3000u);
  EXPECT_EQ(parse_bytes("2TiB"), std::uint64_t{2} << 40);
  EXPECT_EQ(parse_bytes("9007199254740993"), 9007199254740993u) << "whole numbers stay exact beyond 2^53";
}

TEST(ParseBytes, TakesWholeNumbersWithADecimal) {
  const std::pair<const char*, std::uint64_t> units[] = {
      {"kB", 100}, {"MB", 100'000}, {"GB", 100'000'000}, {"TB", 100'000'000'000}};
  for (const auto& [unit, tenth] : units)
    for (std::uint64_t tenths = 0; tenths < 1000; ++tenths) {
      const std::string text = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + unit;
      EXPECT_EQ(parse_bytes(text), tenths * tenth) << text;
    }
  EXPECT_EQ(parse_bytes("0.3kB"), 300u);
  for (const char* text : {"0.3", "1e-30", "0.0001kB", "4.1000000001GB", "1.00000001KiB"})
    EXPECT_THAT(usage_message([&] { parse_bytes(text); }), HasSubstr("whole number of bytes")) << text;
}

TEST(ParseBytes, RefusesWhatIsNoSizeAndNamesIt) {
  for (const char* text :
       {"", "abc", "MiB", "-1", "64mib", "64KB", "1e", "12 parsecs", "inf", "nan", "0x10", "1,5kB"}) {
    EXPECT_THAT(usage_message([&] { parse_bytes(text); }), HasSubstr(std::string("'") + text + "'"));
  }
  EXPECT_THAT(usage_message([] { parse_bytes("0.3"); }), HasSubstr("whole number of bytes"));
  EXPECT_THAT(usage_message([] { parse_bytes("99999999TiB"); }), HasSubstr("too large"));
  EXPECT_THAT(usage_message([] { parse_bytes("99999999999999999999"); }), HasSubstr("too large"));
}

TEST(ParseSeconds, TakesUnits) {
  EXPECT_DOUBLE_EQ(parse_seconds("90"), 90);
  EXPECT_DOUBLE_EQ(parse_seconds("90s"), 90);
  EXPECT_DOUBLE_EQ(parse_seconds("15m"), 900);
  EXPECT_DOUBLE_EQ(parse_seconds("2h"), 7200);
  EXPECT_DOUBLE_EQ(parse_seconds("500ms"), 0.5);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5 h"), 5400);
}

TEST(ParseSeconds, RefusesTheRest) {
  for (const char* text : {"", "soon", "5 parsecs", "-3s", "1h30m", "infinity"}) {
    EXPECT_THAT(usage_message([&] { parse_seconds(text); }), HasSubstr("no duration"));
  }
}

double quantity(const char* text, const char* expected_unit) {
  std::string unit;
  const double value = parse_quantity(text, unit);
  EXPECT_EQ(unit, expected_unit) << text;
  return value;
}

TEST(ParseQuantity, ConvertsToBaseUnits) {
  EXPECT_DOUBLE_EQ(quantity("180 GB/s", "B/s"), 1.8e11);
  EXPECT_DOUBLE_EQ(quantity("180 MB/s", "B/s"), 1.8e8);
  EXPECT_DOUBLE_EQ(quantity("97 %", "1"), 0.97);
  EXPECT_DOUBLE_EQ(quantity("400 Gb/s", "B/s"), 5e10);
  EXPECT_DOUBLE_EQ(quantity("400Gbit/s", "B/s"), 5e10);
  EXPECT_DOUBLE_EQ(quantity("1 GiB/s", "B/s"), 0x1p30);
  EXPECT_DOUBLE_EQ(quantity("1.2 TFLOP/s", "FLOP/s"), 1.2e12);
  EXPECT_DOUBLE_EQ(quantity("3 us", "s"), 3e-6);
  EXPECT_DOUBLE_EQ(quantity("3 µs", "s"), 3e-6);
  EXPECT_DOUBLE_EQ(quantity("2 min", "s"), 120);
  EXPECT_DOUBLE_EQ(quantity("2.1 GHz", "Hz"), 2.1e9);
  EXPECT_DOUBLE_EQ(quantity("250 W", "W"), 250);
  EXPECT_DOUBLE_EQ(quantity("12 kop/s", "op/s"), 12000);
  EXPECT_DOUBLE_EQ(quantity("0.9 1", "1"), 0.9);
  EXPECT_DOUBLE_EQ(quantity("8 count", "count"), 8);
  EXPECT_DOUBLE_EQ(quantity("-0.1 nat", "nat"), -0.1);
}

TEST(ParseQuantity, RefusesMissingAndUnknownUnits) {
  std::string unit;
  EXPECT_THAT(usage_message([&] { parse_quantity("180", unit); }), HasSubstr("'180' has no unit"));
  EXPECT_THAT(usage_message([&] { parse_quantity("180 furlong", unit); }),
              HasSubstr("unknown unit 'furlong'"));
  EXPECT_THAT(usage_message([&] { parse_quantity("180 gB/s", unit); }), HasSubstr("unknown unit 'gB/s'"));
  EXPECT_THAT(usage_message([&] { parse_quantity("1 mB/s", unit); }), HasSubstr("unknown unit 'mB/s'"));
  EXPECT_THAT(usage_message([&] { parse_quantity("fast", unit); }),
              HasSubstr("does not start with a number"));
  EXPECT_THAT(usage_message([&] { parse_quantity("nan s", unit); }),
              HasSubstr("does not start with a number"));
}

TEST(FormatQuantity, UsesFourDigitsAndPrefixes) {
  EXPECT_EQ(format_quantity(1.234e11, "B/s"), "123.4 GB/s");
  EXPECT_EQ(format_quantity(3.1e-6, "s"), "3.1 us");
  EXPECT_EQ(format_quantity(2e-10, "s"), "0.2 ns");
  EXPECT_EQ(format_quantity(1.5, "s"), "1.5 s");
  EXPECT_EQ(format_quantity(999.999e3, "B/s"), "1 MB/s") << "rounding carries into the next prefix";
  EXPECT_EQ(format_quantity(0.99999e-3, "s"), "1 ms");
  EXPECT_EQ(format_quantity(0.9312, "1"), "0.9312");
  EXPECT_EQ(format_quantity(12, "count"), "12");
  EXPECT_EQ(format_quantity(0, "B/s"), "0 B/s");
  EXPECT_EQ(format_quantity(512, "B/s"), "512 B/s");
  EXPECT_EQ(format_quantity(std::numeric_limits<double>::quiet_NaN(), "B/s"), "n/a");
  EXPECT_EQ(format_quantity(-2.5e9, "B/s"), "-2.5 GB/s");
}

TEST(FormatQuantity, ComesBackThroughParseQuantity) {
  for (const char* unit : {"B/s", "FLOP/s", "s", "Hz", "W", "token/s", "op/s", "B"}) {
    for (const double value : {1.234e-3, 0.5, 7.0, 1.234e4, 9.876e8, 4.321e12}) {
      std::string back;
      EXPECT_NEAR(parse_quantity(format_quantity(value, unit), back), value, value * 1e-3) << unit;
      EXPECT_EQ(back, unit);
    }
  }
}

TEST(FormatBytes, UsesBinaryPrefixes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(256u << 20), "256 MiB");
  EXPECT_EQ(format_bytes(3u << 29), "1.5 GiB");
}

TEST(FormatSeconds, ReadsLikeAPersonWouldSayIt) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(0.85), "850 ms");
  EXPECT_EQ(format_seconds(0.9996), "1 s");
  EXPECT_EQ(format_seconds(12.34), "12.3 s");
  EXPECT_EQ(format_seconds(59.99), "1 min 0 s");
  EXPECT_EQ(format_seconds(250), "4 min 10 s");
  EXPECT_EQ(format_seconds(7500), "2 h 5 min");
  EXPECT_EQ(format_seconds(2e-5), "20 us");
}

}  // namespace
}  // namespace assay
