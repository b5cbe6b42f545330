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

}  // namespace
}  // namespace assay::imports
