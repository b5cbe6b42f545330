// SPDX-License-Identifier: Apache-2.0
// Lines of CSV and units as other tools write them.
#include <gmock/gmock.h>

#include <string>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "files.hpp"
#include "import/csv.hpp"
#include "import/import.hpp"
#include "import/units.hpp"
#include "verdict/verdict.hpp"

namespace assay::imports {
namespace {

using ::testing::ElementsAre;

TEST(Csv, QuotesLineEndsAndComments) {
  CsvReader reader("# hello\r\na, b ,\"c \"\"d\"\"\"\r\n\n\"x\ny\",,z\r\nlast");
  std::vector<std::string> fields;
  ASSERT_TRUE(reader.next(fields));
  EXPECT_THAT(fields, ElementsAre("a", "b", "c \"d\""));
  EXPECT_EQ(reader.line(), 2u);
  ASSERT_TRUE(reader.next(fields));
  EXPECT_THAT(fields, ElementsAre("x\ny", "", "z"));
  EXPECT_EQ(reader.line(), 4u);
  ASSERT_TRUE(reader.next(fields));
  EXPECT_THAT(fields, ElementsAre("last"));
  EXPECT_EQ(reader.line(), 6u);
  EXPECT_FALSE(reader.next(fields));
}

TEST(ForeignUnits, UnitsOfOtherToolsAreRead) {
  const std::tuple<const char*, const char*, double> cases[] = {{"GB/s", "B/s", 1e9},
                                                                {"GiB/s", "B/s", 0x1p30},
                                                                {"Gbps", "B/s", 0.125e9},
                                                                {"GBps", "B/s", 1e9},
                                                                {"MB/sec", "B/s", 1e6},
                                                                {"Gbit/s", "B/s", 0.125e9},
                                                                {"TFLOPS", "FLOP/s", 1e12},
                                                                {"GFlop/s", "FLOP/s", 1e9},
                                                                {"us", "s", 1e-6},
                                                                {"usec", "s", 1e-6},
                                                                {"ms", "s", 1e-3},
                                                                {"tokens/s", "token/s", 1},
                                                                {"MHz", "Hz", 1e6},
                                                                {"%", "1", 0.01},
                                                                {"W", "W", 1},
                                                                {"count", "count", 1},
                                                                {"GB", "B", 1e9}};
  for (const auto& [text, base, factor] : cases) {
    const UnitScale scale = unit_scale(text);
    EXPECT_EQ(scale.base, base) << text;
    EXPECT_DOUBLE_EQ(scale.factor, factor) << text;
  }
  for (const char* text : {"furlong", "5 GB/s", "GB / s", "XB/s"})
    EXPECT_THROW(unit_scale(text), Error) << text;
}

class ImportColumns : public ImportTest {
 protected:
  static constexpr const char* fixed = "node,metric,unit,better,value";
  std::string error(const std::string& columns, const std::string& values) const {
    const std::string text = std::string(fixed) + columns + "\nn1,g,GB/s,higher,1" + values + "\n";
    return message([&] { import_csv({file("x.csv", text)}); });
  }
};

TEST_F(ImportColumns, FilesMayOrderThemDifferently) {
  const auto r =
      import_csv({file("a.csv", std::string(fixed) + ",power[W],temp[K]\nn1,g,GB/s,higher,1,2,3\n"),
                  file("b.csv", std::string(fixed) + ",temp[K],power[W]\nn2,g,GB/s,higher,1,3,2\n")});
  ASSERT_EQ(r.cases.size(), 1U);
  EXPECT_EQ(r.cases[0].entity.size(), 2U);
}

TEST_F(ImportColumns, NamesThatACaseCannotHaveAreRefused) {
  EXPECT_THAT(error(",errors[count]", ",3"), ::testing::HasSubstr("a column cannot be named 'errors'"));
  EXPECT_THAT(error(",power[W],power[mW]", ",1,2"), ::testing::HasSubstr("two columns are named 'power'"));
  EXPECT_THAT(error(",clock_hz,clock[MHz]", ",1,2"), ::testing::HasSubstr("two columns are named 'clock'"));
  EXPECT_THAT(error(",..", ",1"), ::testing::HasSubstr("a column cannot be named '..'"));
  EXPECT_THAT(error(",time", ",2e12"), ::testing::HasSubstr("is neither seconds nor ISO 8601"));
}

/// `rack` is stored as rack_info, which took the values of a column of that name, too.
TEST_F(ImportColumns, AnAttributeMayBeNamedAsAnotherIsStored) {
  const auto r = import_csv({file("x.csv", std::string(fixed) + ",rack,rack_info,bios,bios_info\n" +
                                               "n1,g,GB/s,higher,1,r7,42 units,1.2,new\n"
                                               "n2,g,GB/s,higher,1,r8,48 units,1.2,\n")});
  const auto& columns = r.inventory.at("node").text;
  EXPECT_THAT(columns.at("rack_info"), ElementsAre("r7", "r8"));
  EXPECT_THAT(columns.at("rack_info_info"), ElementsAre("42 units", "48 units"));
  EXPECT_THAT(columns.at("bios"), ElementsAre("1.2", "1.2"));
  EXPECT_THAT(columns.at("bios_info"), ElementsAre("new", ""));
  EXPECT_EQ(columns.size(), 4U);
}

class ImportFiles : public ImportTest {
 protected:
  static constexpr const char* header = "node,device,metric,unit,better,sample,value,model\n";
  static constexpr const char* good = "n1,0,a,s,lower,0,1,A\n";
};

TEST_F(ImportFiles, AFileOfNodesWithoutAValueHidesNoOther) {
  const auto r =
      import_csv({file("a.csv", std::string(header) + good),
                  file("b.csv", std::string(header) + "n2,0,a,s,lower,0,N/A,A\nn2,0,b,s,lower,0,,A\n")});
  EXPECT_THAT(case_of(r, "imported/a").count, ElementsAre(1));
  std::vector<std::string> told;
  for (const auto& e : r.events) told.push_back(e.text);
  EXPECT_THAT(told, ElementsAre("1 sample of csv from 2 files", dir_.string() + "/b.csv has no samples",
                                "2 rows without a value (empty or N/A): left out",
                                "no value of n2/device0 in imported/a and 1 more"));
  EXPECT_THAT(r.inventory.at("device").text.at("model"), ElementsAre("A", "A"));
  const auto v = verdict::judge(r, {});
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  for (const auto& e : v.entities)
    if (name_of(r, e.entity).starts_with("n2")) {
      EXPECT_EQ(e.state, "INCONCLUSIVE") << name_of(r, e.entity);
    }
  // A second file may have what the first lacks.
  const auto again = import_csv({file("b.csv", std::string(header) + "n1,0,a,s,lower,0,N/A,A\n"),
                                 file("a.csv", std::string(header) + good)});
  EXPECT_NE(verdict::judge(again, {}).state, "INCONCLUSIVE");
}

TEST_F(ImportFiles, AnEmptyFileIsAGap) {
  for (const std::string text : {"", "\xef\xbb\xbf", " \r\n", "# no rows\n", header}) {
    const auto r = import_csv({file("a.csv", std::string(header) + good), file("b.csv", text)});
    EXPECT_THAT(case_of(r, "imported/a").count, ElementsAre(1));
    EXPECT_THAT(r.events.back().text, ::testing::HasSubstr("b.csv ")) << text;
    EXPECT_EQ(verdict::judge(r, {}).state, "INCONCLUSIVE") << text;
  }
  EXPECT_EQ(message([&] { import_csv({file("a.csv", ""), file("b.csv", header)}); }), "a.csv: is empty");
}

TEST_F(ImportFiles, ManyPartsWithoutAValueAreCounted) {
  std::string text = std::string(header) + good;
  for (int n = 2; n < 30; ++n) text += "n" + std::to_string(n) + ",0,a,s,lower,0,N/A,A\n";
  const auto r = import_csv({file("a.csv", text)});
  EXPECT_EQ(r.events.size(), 23U);
  EXPECT_EQ(r.events.back().text, "no value of 8 more parts");
}

TEST_F(ImportFiles, WhatIsNoPlainTextIsNamed) {
  const auto error = [&](const std::string& text) {
    return message([&] { import_csv({file("a.csv", text)}); });
  };
  EXPECT_EQ(error("\x1f\x8b\x08node"), "a.csv: is compressed: unpack it first");
  EXPECT_EQ(error("node,metric\rn1,x\r"), "a.csv: ends its lines with carriage returns alone");
  EXPECT_EQ(error(std::string(header) + "n1,0,a,s,lower,0,1,K\xf6ln\n"),
            "a.csv:2: is not UTF-8: convert the file (iconv)");
  EXPECT_EQ(error(std::string(20'000, ',')), "a.csv:1: more than 10000 fields");
  EXPECT_EQ(error(std::string(256, ',')), "a.csv:1: more than 256 columns");
  EXPECT_EQ(error(std::string("\xff\xfen\0o\0", 6)), "a.csv: is UTF-16: write it as UTF-8");
  const std::string cut = error(std::string(header) + "n1,0,a,s," + std::string(1 << 20, 'x') + ",0,1,A\n");
  EXPECT_LT(cut.size(), 500U);
  EXPECT_THAT(cut, ::testing::EndsWith("..."));
}

/// The plan of a file has what was measured first: such a file broke the schema.
TEST_F(ImportFiles, ARetestOfNothingIsNamed) {
  const std::string text = "node,metric,unit,better,value,retest\nn1,a,s,lower,1,\nn1,b,s,lower,1,2\n";
  EXPECT_EQ(message([&] { import_csv({file("a.csv", text)}); }),
            "a.csv:3: b has retest 2, and no first measurement (retest 0)");
}

TEST_F(ImportFiles, RowsOfSeparatorsAloneAreNoRows) {
  const auto r = import_csv({file("a.csv", std::string(header) + good + ",,,,,,,\n,,,,,,,\n")});
  EXPECT_EQ(r.events.size(), 1U);
}

}  // namespace
}  // namespace assay::imports
