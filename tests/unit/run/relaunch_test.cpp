// SPDX-License-Identifier: Apache-2.0
#include "run/relaunch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using Texts = std::map<std::string, std::vector<std::string>>;

/// `filed`: what a configuration file says.
std::string line(const Texts& given, const Texts& filed = {}) {
  auto specs = run_options();
  OptionSpec dtypes;
  dtypes.name = "gemm.dtypes";
  dtypes.kind = OptionKind::choices;
  dtypes.default_text = "fp32,fp64";
  dtypes.allowed = {"fp32", "fp64"};
  specs.push_back(dtypes);
  OptionValues values;
  for (const OptionSpec& spec : specs) {
    const auto at = given.find(spec.name), in_file = filed.find(spec.name);
    if (at != given.end())
      values.set(spec, at->second, in_file == filed.end() ? OptionSource::command_line : OptionSource::both);
    else if (in_file != filed.end())
      values.set(spec, in_file->second, OptionSource::file);
    else
      values.set(spec, {});
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

/// An option of a suite that does not run is refused on the command line.
TEST(Relaunch, LeavesToAConfigurationFileWhatItSays) {
  const Texts filed{
      {"level", {"standard"}}, {"strict", {"true"}}, {"gemm.dtypes", {"fp32"}}, {"seed", {"9"}}};
  EXPECT_EQ(line({{"config", {"c.toml"}}, {"suites", {"inventory"}}}, filed),
            "assay run --suites inventory --config c.toml --exclude n3,n7 --resume 'a run.h5'");
  EXPECT_EQ(
      line({{"config", {"c.toml"}}, {"level", {"quick"}}, {"strict", {"false"}}, {"seed", {"7"}}}, filed),
      "assay run --level quick --config c.toml --seed 7 --strict=false --exclude n3,n7 --resume 'a run.h5'");
}

TEST(Relaunch, ASoakReplacesNoFileThatItsConfigurationNames) {
  const std::string said =
      line({{"config", {"c.toml"}}},
           {{"level", {"soak"}}, {"duration", {"2h"}}, {"out", {"soaks/s.h5"}}, {"force", {"true"}}});
  EXPECT_THAT(said, testing::MatchesRegex("assay run --config c.toml --exclude n3,n7 --out "
                                          "soaks/assay-[0-9]{8}T[0-9]{6}Z.h5"));
}

}  // namespace
}  // namespace assay
