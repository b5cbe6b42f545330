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

}  // namespace
}  // namespace assay::imports
