// SPDX-License-Identifier: Apache-2.0
#include "run/relaunch.hpp"

#include <gtest/gtest.h>

namespace assay {
namespace {

std::string line(const std::map<std::string, std::vector<std::string>>& given) {
  auto specs = run_options();
  OptionSpec dtypes;
  dtypes.name = "gemm.dtypes";
  dtypes.kind = OptionKind::choices;
  dtypes.default_text = "fp32,fp64";
  dtypes.allowed = {"fp32", "fp64"};
  specs.push_back(dtypes);
  OptionValues values;
  for (const OptionSpec& spec : specs) {
    const auto at = given.find(spec.name);
    values.set(spec, at == given.end() ? std::vector<std::string>{} : at->second);
  }
  return relaunch_line(make_config(values, {"inventory", "gemm"}, {}), specs, {"n3", "n7"}, "a run.h5");
}

TEST(Relaunch, SaysOnlyWhatWasSaid) {
  EXPECT_EQ(line({}), "assay run --exclude n3,n7 --resume 'a run.h5'");
  EXPECT_EQ(line({{"level", {"standard"}},
                  {"out", {"x.h5"}},
                  {"force", {"true"}},
                  {"seed", {"9"}},
                  {"strict", {"true"}},
                  {"suites", {"gemm"}},
                  {"gemm.dtypes", {"fp32"}},
                  {"exclude", {"n1"}}}),
            "assay run --suites gemm --level standard --seed 9 --strict --gemm.dtypes fp32 --exclude "
            "n1,n3,n7 --resume 'a run.h5'");
}

TEST(Relaunch, QuotesForAShell) {
  EXPECT_EQ(line({{"cases", {"gemm/fp32-* it's"}}}),
            "assay run --cases 'gemm/fp32-* it'\\''s' --exclude n3,n7 --resume 'a run.h5'");
}

TEST(Relaunch, ASoakGoesOnWithoutItsFile) {
  EXPECT_EQ(line({{"level", {"soak"}}, {"duration", {"2h"}}}),
            "assay run --level soak --duration 7200s --exclude n3,n7");
}

}  // namespace
}  // namespace assay
