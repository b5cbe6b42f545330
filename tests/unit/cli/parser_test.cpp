// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include <fmt/format.h>

#include <sstream>

#include "base/error.hpp"
#include "cli/file_commands.hpp"
#include "cli/run_command.hpp"
#include "tests/unit/expect_error.hpp"

namespace assay::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A suite that is only there to have options.
class OptionsSuite : public Suite {
 public:
  std::string_view name() const noexcept override { return "gemm"; }
  std::string_view summary() const noexcept override { return "multiplies"; }
  std::vector<OptionSpec> options() const override {
    OptionSpec dtypes;
    dtypes.name = "gemm.dtypes";
    dtypes.kind = OptionKind::choices;
    dtypes.default_text = "fp32,fp64";
    dtypes.allowed = {"fp32", "fp64"};
    dtypes.help = "number types to multiply";
    return {dtypes};
  }
  std::vector<results::MetricSpec> metrics() const override { return {}; }
  std::vector<Case> plan(const PlanInput&) const override { return {}; }
  void run(const Case&, Context&) override {}
};

class Parser : public testing::Test {
 protected:
  Parser() {
    suites_.push_back(std::make_unique<OptionsSuite>());
    commands_ = make_commands(suites_);
  }
  Parsed parse(std::vector<std::string> arguments) {
    return parse_arguments(commands_, std::move(arguments));
  }
  std::string failure(std::vector<std::string> arguments) {
    return usage_message([&] { option_values(parse(std::move(arguments))); });
  }

  Suites suites_;
  std::vector<CommandSpec> commands_;
};

TEST_F(Parser, ReadsOptionsInBothForms) {
  const Parsed parsed =
      parse({"run", "--level", "smoke", "--suites=gemm", "--gemm.dtypes", "fp32", "--force"});
  EXPECT_EQ(parsed.command->name, "run");
  const OptionValues values = option_values(parsed);
  EXPECT_EQ(values.text("level"), "smoke");
  EXPECT_THAT(values.list("suites"), ElementsAre("gemm"));
  EXPECT_THAT(values.list("gemm.dtypes"), ElementsAre("fp32"));
  EXPECT_TRUE(values.flag("force"));
  EXPECT_FALSE(values.flag("strict"));
  EXPECT_TRUE(parsed.given("force"));
  EXPECT_FALSE(parsed.given("strict"));
}

TEST_F(Parser, LetsTheCommandLineWinOverTheFile) {
  const Parsed parsed = parse({"run", "--level", "smoke", "--strict=false"});
  const OptionValues values =
      option_values(parsed, {{"level", {"extended"}}, {"seed", {"7"}}, {"strict", {"true"}}});
  EXPECT_EQ(values.text("level"), "smoke");
  EXPECT_EQ(values.integer("seed"), 7);
  EXPECT_FALSE(values.flag("strict"));
  EXPECT_EQ(values.source("level"), OptionSource::both);
  EXPECT_EQ(values.source("seed"), OptionSource::file);
  EXPECT_EQ(values.source("threads"), OptionSource::command_line);
}

TEST_F(Parser, NamesUnknownOptions) {
  EXPECT_THAT(failure({"run", "--nosuch"}), names({"--nosuch:", "unknown"}));
  EXPECT_THAT(failure({"run", "--levle", "smoke"}), names({"--levle:", "--level?"}));
  EXPECT_THAT(failure({"run", "--levle=smoke"}), names({"--levle:", "--level?"}));
  EXPECT_THAT(failure({"run", "-x"}), StartsWith("-x: unknown option of run"));
  EXPECT_THAT(failure({"--quiet", "run"}), StartsWith("--quiet: unknown option; a command comes first"));
  EXPECT_THAT(failure({"inspect", "--level", "smoke", "f.h5"}),
              StartsWith("--level: unknown option of inspect"));
}

TEST_F(Parser, DoesNotAcceptOptionsThatNothingReads) {
  EXPECT_THAT(failure({"run", "--retest", "x"}), StartsWith("--retest: unknown option of run"));
}

TEST_F(Parser, NamesMissingAndSwallowedValues) {
  EXPECT_THAT(failure({"run", "--level"}), names({"--level:", "value"}));
  EXPECT_EQ(failure({"run", "--out="}), "--out: empty value");
  EXPECT_EQ(failure({"run", "--out=", "--force"}), "--out: empty value");
  EXPECT_THAT(failure({"run", "--out", "--force"}), names({"--out:", "value", "--force"}));
  EXPECT_EQ(failure({"run", "--out", ""}), "--out: empty value");
  EXPECT_THAT(failure({"run", "--level", "smoke", "--level", "quick"}), names({"--level:", "2"}));
  EXPECT_THAT(failure({"run", "--strict=maybe"}), names({"--strict:", "maybe"}));
}

TEST_F(Parser, TakesNegativeNumbersAsValues) {
  EXPECT_EQ(option_values(parse({"run", "--seed", "-5"})).integer("seed"), -5);
}

TEST_F(Parser, NamesMissingAndUnexpectedArguments) {
  EXPECT_THAT(failure({"inspect"}), StartsWith("inspect: FILE is missing (usage: assay inspect FILE"));
  EXPECT_THAT(failure({"inspect", "a", "b"}), StartsWith("inspect: unexpected argument 'b'"));
  EXPECT_THAT(failure({"run", "gemm"}), StartsWith("run: unexpected argument 'gemm'"));
  EXPECT_THAT(failure({}), StartsWith("no command given (commands: run, plan,"));
  EXPECT_THAT(failure({"rnu"}), StartsWith("rnu: no such command (did you mean run?)"));
}

TEST_F(Parser, TakesFilesNamedLikeCommands) {
  EXPECT_THAT(parse({"inspect", "list"}).positionals, ElementsAre("list"));
  EXPECT_THAT(parse({"verdict", "run", "--strict"}).positionals, ElementsAre("run"));
  EXPECT_THAT(parse({"inspect", "--", "--odd"}).positionals, ElementsAre("--odd"));
}

TEST_F(Parser, KnowsHelpAndVersionEverywhere) {
  EXPECT_TRUE(parse({"--help"}).help);
  EXPECT_EQ(parse({"--help"}).command, nullptr);
  EXPECT_TRUE(parse({"--version"}).version);
  for (const CommandSpec& command : commands_) {
    const Parsed parsed = parse({command.name, "--help"});
    EXPECT_TRUE(parsed.help);
    ASSERT_NE(parsed.command, nullptr);
    EXPECT_EQ(parsed.command->name, command.name);
  }
}

TEST_F(Parser, HelpNamesEveryOptionOnceWithin80Columns) {
  for (const CommandSpec& command : commands_) {
    const std::string help = help_text(command);
    EXPECT_THAT(help, HasSubstr("\nExamples:\n"));
    for (const OptionSpec& option : command.options)
      EXPECT_EQ(help.find("--" + option.name) == std::string::npos, option.hidden) << option.name;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_THAT(help_text(commands_.front()), HasSubstr("Options of suite gemm:"));
}

/// A process that starts its ranks gives them what was typed.
TEST_F(Parser, RanksGetTheOptionsThatWereTypedWithTheirValues) {
  const auto given = [&](const std::vector<std::string>& typed) { return relaunch_arguments(parse(typed)); };
  EXPECT_THAT(given({"run", "--strict=false", "--quiet", "--level", "smoke", "--out", "x.h5"}),
              testing::UnorderedElementsAre("--strict=false", "--quiet=true", "--level=smoke"));
  EXPECT_THAT(given({"run", "--force=false", "--launcher", "mpirun"}), ElementsAre("--force=false"));
  EXPECT_THAT(given({"run", "--force"}), ElementsAre());
  EXPECT_THAT(given({"plan", "--pairs", "--force", "--resume", "x.h5", "--launcher", "mpirun"}),
              testing::UnorderedElementsAre("--pairs=true", "--force=true", "--resume=x.h5"));
  for (const char* option : {"strict", "share-gpus", "quiet", "force"})
    for (const bool on : {true, false}) {
      auto words = given({"run", fmt::format("--{}={}", option, on)});
      words.insert(words.begin(), "run");
      EXPECT_EQ(option_values(parse(words)).flag(option), on && option != std::string("force")) << option;
    }
}

TEST(FileCommands, ADirectoryThatCannotBeReadIsAnErrorOfTheInput) {
  try {
    judge_directory("/proc/self/exe", {}, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), ExitCode::usage);
    EXPECT_THAT(e.what(), StartsWith("/proc/self/exe: cannot be read: "));
  }
}

TEST_F(Parser, HidesHiddenOptions) {
  for (OptionSpec& option : commands_.front().options) option.hidden = option.name == "strict";
  EXPECT_THAT(help_text(commands_.front()), Not(HasSubstr("\n      --strict")));
  EXPECT_THAT(bash_completion(commands_), HasSubstr("--gemm.dtypes"));
  EXPECT_TRUE(option_values(parse({"run", "--strict"})).flag("strict"));
}

}  // namespace
}  // namespace assay::cli
