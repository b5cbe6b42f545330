// SPDX-License-Identifier: Apache-2.0
// Cases that are stored in parts (NAME.p2), and their names.
#include <fmt/format.h>

#include "files.hpp"
#include "import/import.hpp"
#include "results/case_name.hpp"
#include "results/reader.hpp"
#include "results/save.hpp"
#include "verdict/verdict.hpp"

namespace assay::imports {
namespace {

class ImportParts : public ImportTest {
 protected:
  results::Results import(const std::string& text) const { return import_csv({file("x.csv", text)}); }
};

TEST_F(ImportParts, ALongNameLeavesRoomForItsSuffixes) {
  const std::string name(90, 'm');
  std::string text =
      "node,metric,unit,better,sample,value,retest\n" + fmt::format("n0,{},s,lower,0,1,0\n", name);
  for (int s = 0; s < 200; ++s) text += fmt::format("n0,{},s,lower,{},1,99\n", name, s);
  for (int n = 1; n < 50; ++n) text += fmt::format("n{},{},s,lower,0,1,99\n", n, name);
  const auto r = import(text);
  results::save(r, dir_ / "long.h5", false);
  const auto stored = results::load(dir_ / "long.h5");
  EXPECT_EQ(stored.cases.size(), 3U) << "a retest in two parts";
  for (const auto& c : stored.cases)
    EXPECT_EQ(results::base_name(c.name), results::base_name(r.cases[0].name));
}

/// 12 nodes with 10 samples in each of 3 blocks; node 3 lacks samples `first` to `last`.
std::string with_gap(int first, int last) {
  std::string text = "node,metric,unit,better,sample,value,time,block\n";
  for (int n = 0; n < 12; ++n)
    for (int s = 0; s < 30; ++s)
      text += fmt::format(
          "n{:02},bw,GB/s,higher,{},{},{},{}\n", n, s,
          n == 3 && s >= first && s < last ? "N/A" : fmt::format("{}", 100 + 0.1 * ((3 * n + 7 * s) % 11)),
          s / 10 * 40 + s % 10, s / 10);
  return text;
}

TEST_F(ImportParts, SamplesKeepTheirBlocksWhereOthersOfTheirPartAreMissing) {
  for (const auto& [first, last] : {std::pair{0, 10}, {12, 16}, {25, 30}, {0, 0}}) {
    const auto r = import(with_gap(first, last));
    std::size_t samples = 0;
    for (const auto& c : r.cases)
      for (std::size_t e = 0; e < c.entities(); ++e)
        for (std::size_t s = 0; s < static_cast<std::size_t>(c.count[e]); ++s, ++samples)
          EXPECT_EQ(c.block[s], static_cast<int>(c.t[e * c.samples() + s] / 40))
              << c.name << " " << name_of(r, c.entity[e]);
    EXPECT_EQ(samples, 360U - static_cast<std::size_t>(last - first));
    EXPECT_EQ(r.cases.size(), first == 25 || first == last ? 1U : 2U);
    EXPECT_EQ(r.cases[0].entities(), r.cases.size() == 1 ? 12U : 11U);
    EXPECT_EQ(verdict::judge(r, {}).state, "PASS");
  }
}

TEST_F(ImportParts, BlocksThatEachNodeNumbersForItselfMakeNoTableForEach) {
  std::string text = "node,metric,unit,better,value,block\n";
  for (int n = 0; n < 100; ++n)
    for (int s = 0; s < 6; ++s) text += fmt::format("n{},bw,GB/s,higher,1,{}\n", n, 3 * n + s / 2);
  EXPECT_EQ(import(text).cases.size(), 1U);
}

}  // namespace
}  // namespace assay::imports
