// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include "tests/unit/expect_error.hpp"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

using Texts = std::map<std::string, std::vector<std::string>>;

Config config_of(const Texts& texts) {
  OptionValues values;
  for (const OptionSpec& spec : run_options()) {
    const auto it = texts.find(spec.name);
    values.set(spec, it == texts.end() ? std::vector<std::string>{} : it->second);
  }
  return make_config(std::move(values), {"inventory", "gemm", "memory"}, {"selftest"});
}

std::string failure(const Texts& texts) {
  return usage_message([&] { config_of(texts); });
}

TEST(Config, HasTheDocumentedDefaults) {
  const Config config = config_of({});
  EXPECT_THAT(config.suites, ElementsAre("inventory", "gemm", "memory"));
  EXPECT_EQ(config.level, Level::quick);
  EXPECT_DOUBLE_EQ(config.budget_s(), 120);
  EXPECT_THAT(config.out, MatchesRegex("assay-[0-9]{8}T[0-9]{6}Z.h5"));
  EXPECT_FALSE(config.seed_given);
  EXPECT_EQ(config.device, "auto");
  EXPECT_EQ(config.expect_nodes, 0);
  EXPECT_EQ(config.max_file_bytes, 0u) << "by the number of nodes";
}

TEST(Config, OrdersSuitesCanonicallyAndTakesHiddenOnesByName) {
  EXPECT_THAT(config_of({{"suites", {"memory,inventory", "memory"}}}).suites,
              ElementsAre("inventory", "memory"));
  EXPECT_THAT(config_of({{"suites", {"selftest,gemm"}}}).suites, ElementsAre("gemm", "selftest"));
}

TEST(Config, NamesAnUnknownSuite) {
  EXPECT_THAT(failure({{"suites", {"gemm,nosuch"}}}),
              names({"--suites:", "nosuch", "inventory", "gemm", "memory"}));
}

TEST(Config, EveryLevelHasItsBudget) {
  EXPECT_DOUBLE_EQ(config_of({{"level", {"smoke"}}}).budget_s(), 15);
  EXPECT_DOUBLE_EQ(config_of({{"level", {"standard"}}}).budget_s(), 900);
  EXPECT_DOUBLE_EQ(config_of({{"level", {"extended"}}}).budget_s(), 7200);
  const auto soak = config_of({{"level", {"soak"}}, {"duration", {"8h"}}});
  EXPECT_EQ(soak.segments(), 16);  // of half an hour each
  EXPECT_DOUBLE_EQ(soak.budget_s(), 1800);
  const auto uneven = config_of({{"level", {"soak"}}, {"duration", {"50m"}}, {"segment", {"20m"}}});
  EXPECT_EQ(uneven.segments(), 3);
  EXPECT_DOUBLE_EQ(uneven.budget_s(), 1000);
  EXPECT_EQ(config_of({{"level", {"extended"}}}).segments(), 1);
}

TEST(Config, SegmentsThatDivideTheDurationAreNoMore) {
  const auto soak = [](const char* duration, const char* segment) {
    return config_of({{"level", {"soak"}}, {"duration", {duration}}, {"segment", {segment}}});
  };
  EXPECT_EQ(soak("1.1h", "0.1h").segments(), 11) << "3960.0000000000005 s";
  EXPECT_DOUBLE_EQ(soak("1.1h", "0.1h").budget_s(), 360);
  EXPECT_EQ(soak("3.3h", "1.1h").segments(), 3);
  EXPECT_EQ(soak("3.4h", "1.1h").segments(), 4);
}

TEST(Config, RefusesCombinationsThatContradict) {
  EXPECT_THAT(failure({{"level", {"soak"}}}), HasSubstr("--level: soak needs --duration"));
  EXPECT_THAT(failure({{"duration", {"8h"}}}), names({"--duration:", "--level soak", "quick"}));
  EXPECT_THAT(failure({{"level", {"soak"}}, {"duration", {"0"}}}),
              HasSubstr("--duration: 0 s is not between"));
  EXPECT_THAT(failure({{"no-color", {"true"}}, {"color", {"always"}}}),
              names({"--no-color:", "--color always"}));
  EXPECT_THAT(failure({{"quiet", {"true"}}, {"progress", {"always"}}}),
              names({"--quiet:", "--progress always"}));
  EXPECT_THAT(failure({{"out", {"a"}}, {"json", {"a"}}}), names({"--json:", "'a'"}));
  EXPECT_THAT(failure({{"nodes", {"a"}}, {"junit", {"a"}}}), names({"--nodes:", "'a'"}));
  EXPECT_THAT(failure({{"resume", {"a.h5.partial"}}, {"exclude", {"n1"}}, {"out", {"a.h5"}}}),
              names({"--out:", "a.h5.partial", "another name"}));
}

/// As a configuration file gives them, which serves several levels.
TEST(Config, ASoakInAFileCountsAtThatLevelOnly) {
  const auto filed = [](const char* level, OptionSource source) {
    const Texts texts{{"level", {level}}, {"duration", {"8h"}}, {"segment", {"20m"}}};
    OptionValues values;
    for (const OptionSpec& spec : run_options()) {
      const auto it = texts.find(spec.name);
      const bool given = it != texts.end();
      values.set(spec, given ? it->second : std::vector<std::string>{},
                 given ? source : OptionSource::command_line);
    }
    return make_config(std::move(values), {"gemm"}, {});
  };
  EXPECT_EQ(filed("soak", OptionSource::file).segments(), 24);
  const auto quick = filed("quick", OptionSource::file);
  EXPECT_DOUBLE_EQ(quick.budget_s(), 120);
  EXPECT_FALSE(quick.options.has("duration"));
  EXPECT_TRUE(quick.to_json(false)["segment"].is_null());
  for (const auto source : {OptionSource::command_line, OptionSource::both})
    EXPECT_THAT(usage_message([&] { filed("quick", source); }),
                names({"--duration:", "--level soak", "quick"}));
}

TEST(Config, RefusesNumbersOutOfRange) {
  EXPECT_THAT(failure({{"expect-nodes", {"0"}}}), names({"--expect-nodes: 0", "1"}));
  EXPECT_THAT(failure({{"relaunch", {"-1"}}}), names({"--relaunch: -1", "0"}));
  EXPECT_THAT(failure({{"expect-ranks", {"-3"}}}), names({"--expect-ranks: -3", "1"}));
  EXPECT_THAT(failure({{"threads", {"0"}}}), names({"--threads: 0", "1"}));
  EXPECT_THAT(failure({{"seed", {"-1"}}}), names({"--seed: -1", "0"}));
  EXPECT_THAT(failure({{"max-file", {"0"}}}), HasSubstr("--max-file: 0"));
  EXPECT_EQ(config_of({{"seed", {"0"}}}).seed, 0u);
  EXPECT_TRUE(config_of({{"seed", {"0"}}}).seed_given);
}

TEST(Config, HashesWhatChangesTheMeasurementOnly) {
  const auto hashed = [](const Texts& texts) { return config_of(texts).to_json(true).dump(); };
  const std::string plain = hashed({});
  EXPECT_EQ(hashed({{"out", {"other.h5"}},
                    {"force", {"true"}},
                    {"color", {"never"}},
                    {"quiet", {"true"}},
                    {"json", {"j"}}}),
            plain);
  EXPECT_NE(hashed({{"level", {"smoke"}}}), plain);
  EXPECT_NE(hashed({{"suites", {"gemm"}}}), plain);
  EXPECT_NE(hashed({{"seed", {"7"}}}), plain);
  EXPECT_NE(hashed({{"threads", {"1"}}}), plain);
}

TEST(Config, PresentationIsToldByEachOption) {
  const std::map<OptionKind, std::string> other{{OptionKind::path, "x"},       {OptionKind::flag, "true"},
                                                {OptionKind::choice, "never"}, {OptionKind::text, "x"},
                                                {OptionKind::integer, "1"},    {OptionKind::seconds, "1s"}};
  const std::string plain = config_of({}).to_json(true).dump();
  std::size_t tried = 0;
  for (const OptionSpec& spec : run_options()) {
    const Json listed = config_of({}).to_json(false).at("presentation");
    EXPECT_EQ(std::find(listed.begin(), listed.end(), spec.name) != listed.end(), is_presentation(spec.use))
        << spec.name;
    if (!is_presentation(spec.use)) continue;
    const std::string value = spec.name == "resume" ? "x.h5" : other.at(spec.kind);
    EXPECT_EQ(config_of({{spec.name, {value}}}).to_json(true).dump(), plain) << spec.name;
    ++tried;
  }
  EXPECT_GE(tried, 10u);
}

TEST(Config, EchoesEveryOption) {
  const Json json =
      config_of({{"limits", {"l.toml"}}, {"expect-nodes", {"4"}}, {"seed", {"7"}}}).to_json(false);
  for (const OptionSpec& spec : run_options()) {
    EXPECT_TRUE(json.contains(spec.name)) << spec.name;
  }
  EXPECT_EQ(json["expect-nodes"], 4);
  EXPECT_EQ(json["seed"], 7);
}

}  // namespace
}  // namespace assay
