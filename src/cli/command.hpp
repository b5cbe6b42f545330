// SPDX-License-Identifier: Apache-2.0
// Commands as data: one table drives the parser, --help and completion.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/option.hpp"
#include "suite/suite.hpp"

namespace assay::cli {

using Suites = std::vector<std::unique_ptr<Suite>>;

struct Positional {
  std::string name, help;
  bool required = true;
  std::vector<std::string> allowed;  ///< empty = a file
  bool repeatable = false;           ///< the last one: one or more
};

struct CommandSpec {
  std::string name, summary, usage;
  std::vector<Positional> positionals;
  std::vector<OptionSpec> options;
  std::vector<std::string> examples;
  std::string footer;  ///< more to say below the examples
};

/// All commands of this build; `run` and `plan` carry the options of the suites.
std::vector<CommandSpec> make_commands(const Suites& suites);

/// What was typed, as texts: nothing is checked yet but names and arity.
struct Parsed {
  const CommandSpec* command = nullptr;  ///< null for plain --help and --version
  bool help = false, version = false;
  std::map<std::string, std::vector<std::string>> texts;  ///< by option, only those given
  std::vector<std::string> positionals;

  bool given(const std::string& option) const { return texts.contains(option); }
};

/// Parses the arguments after the program's name. Throws Error(usage) naming what is wrong. The result points
/// into `commands`.
Parsed parse_arguments(const std::vector<CommandSpec>& commands, std::vector<std::string> arguments);

/// The checked values of all options of the command: command line first, then `file_texts` (from TOML), then
/// defaults.
OptionValues option_values(const Parsed& parsed,
                           const std::map<std::string, std::vector<std::string>>& file_texts = {});

/// `assay --help` and `assay COMMAND --help`, at most 80 columns wide.
std::string help_text(const std::vector<CommandSpec>& commands);
std::string help_text(const CommandSpec& command);

/// The options of a command that are not hidden, those of suites under their names.
std::string options_help(const CommandSpec& command);
/// `line`, filled up to column `indent`, then `text` word by word, continued there, within 80 columns.
std::string wrapped(std::string line, const std::string& text, std::size_t indent);

/// The manual page assay(1), in roff.
std::string man_page(const std::vector<CommandSpec>& commands, const std::string& version);

/// The script that bash sources.
std::string bash_completion(const std::vector<CommandSpec>& commands);

}  // namespace assay::cli
