// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"
#include "tests/unit/expect_error.hpp"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class TomlOptions : public testing::Test {
 protected:
  TomlOptions() : specs_(run_options()) {
    OptionSpec dtypes;
    dtypes.name = "gemm.dtypes";
    dtypes.kind = OptionKind::choices;
    dtypes.allowed = {"fp32", "fp64"};
    specs_.push_back(dtypes);
    OptionSpec fraction;
    fraction.name = "memory.fraction";
    fraction.kind = OptionKind::number;
    specs_.push_back(fraction);
  }

  std::map<std::string, std::vector<std::string>> read(const std::string& text) {
    return parse_toml_options(text, file_, specs_);
  }
  /// The message without the path of the file.
  std::string failure(const std::string& text) {
    const std::string message = usage_message([&] { read(text); });
    EXPECT_THAT(message, StartsWith(file_ + ":"));
    return message.substr(file_.size() + 1);
  }

  std::vector<OptionSpec> specs_;
  const std::string file_ = "options.toml";
};

TEST_F(TomlOptions, HoldsEveryKind) {
  const auto texts = read(
      "level = \"smoke\"\nseed = 42\nforce = true\nmax-file = \"2GiB\"\nsuites = [\"gemm\", \"memory\"]\n"
      "duration = 90\n[gemm]\ndtypes = [\"fp32\"]\n[memory]\nfraction = 0.25\n");
  EXPECT_THAT(texts.at("level"), ElementsAre("smoke"));
  EXPECT_THAT(texts.at("seed"), ElementsAre("42"));
  EXPECT_THAT(texts.at("force"), ElementsAre("true"));
  EXPECT_THAT(texts.at("max-file"), ElementsAre("2GiB"));
  EXPECT_THAT(texts.at("suites"), ElementsAre("gemm", "memory"));
  EXPECT_THAT(texts.at("duration"), ElementsAre("90"));
  EXPECT_THAT(texts.at("gemm.dtypes"), ElementsAre("fp32"));
  EXPECT_THAT(texts.at("memory.fraction"), ElementsAre("0.25"));
}

TEST_F(TomlOptions, CanHoldEveryOptionOfRun) {
  for (const OptionSpec& spec : run_options()) {
    if (spec.name == "config") continue;
    std::string value = "\"x\"";
    if (spec.kind == OptionKind::flag) value = "true";
    if (spec.kind == OptionKind::integer || spec.kind == OptionKind::number ||
        spec.kind == OptionKind::bytes || spec.kind == OptionKind::seconds)
      value = "1";
    if (spec.kind == OptionKind::choice) value = "\"" + spec.allowed.front() + "\"";
    EXPECT_EQ(read(spec.name + " = " + value + "\n").count(spec.name), 1u) << spec.name;
  }
}

TEST_F(TomlOptions, NamesLineAndKeyOfAnUnknownOption) {
  EXPECT_THAT(failure("level = \"smoke\"\nlimts = \"x\"\n"), names({"2: limts:", "limits?"}));
  EXPECT_THAT(failure("[gemm]\ndtype = \"fp32\"\n"), names({"2: gemm.dtype:", "gemm.dtypes?"}));
  EXPECT_THAT(failure("xyzzy = \"run.h5\"\n"), names({"1: xyzzy:", "unknown"}));
  EXPECT_THAT(failure("[a.b]\nc = 1\n"), HasSubstr("a.b: unknown option"));
}

TEST_F(TomlOptions, NamesWrongTypesAndValues) {
  EXPECT_THAT(failure("seed = \"7\"\n"), names({"1: seed:", "string", "integer"}));
  EXPECT_THAT(failure("force = \"true\"\n"), names({"1: force:", "string", "true or false"}));
  EXPECT_THAT(failure("level = 3\n"), names({"1: level:", "integer", "string"}));
  EXPECT_THAT(failure("level = [\"smoke\"]\n"), names({"1: level:", "array", "string"}));
  EXPECT_THAT(failure("\nlevel = \"tiny\"\n"), names({"2: level:", "tiny", "smoke"}));
  EXPECT_THAT(failure("[gemm]\ndtypes = [\"fp32\", \"fp7\"]\n"),
              HasSubstr("2: gemm.dtypes: 'fp7' is not one of fp32, fp64"));
  EXPECT_THAT(failure("max-file = \"2 giga\"\n"), HasSubstr("1: max-file: '2 giga' is no size"));
  EXPECT_THAT(failure("suites = []\n"), names({"1: suites:", "empty"}));
  EXPECT_THAT(failure("config = \"other.toml\"\n"), names({"1: config:", "another"}));
}

TEST_F(TomlOptions, ReportsATruncatedFileInOneLine) {
  EXPECT_THAT(failure("level = \"smoke\"\nsuites = [\"gemm\","), StartsWith("2: "));
  EXPECT_THAT(failure("level = \"smo"), StartsWith("1: "));
  EXPECT_THAT(failure("[gemm"), StartsWith("1: "));
}

}  // namespace
}  // namespace assay
