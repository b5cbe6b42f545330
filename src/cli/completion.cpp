// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/command.hpp"
#include "config/suggest.hpp"

namespace assay::cli {
namespace {

/// The bash statement that fills COMPREPLY for the value of an option; "" when nothing can be proposed.
std::string value_statement(const OptionSpec& option) {
  switch (option.kind) {
    case OptionKind::path: return "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\"))";
    case OptionKind::choice:
      return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", join(option.allowed, " "));
    case OptionKind::list:
    case OptionKind::choices:
      if (option.allowed.empty()) return ":";
      return fmt::format("_assay_list '{}'", join(option.allowed, " "));
    default: return ":";
  }
}

std::string option_words(const CommandSpec& command) {
  std::vector<std::string> words{"--help"};
  for (const OptionSpec& option : command.options) {
    if (!option.hidden) words.push_back("--" + option.name);
  }
  return join(words, " ");
}

std::string command_case(const CommandSpec& command) {
  std::string out = fmt::format("    {})\n      case \"$prev\" in\n", command.name);
  for (const OptionSpec& option : command.options) {
    if (option.hidden || option.kind == OptionKind::flag) continue;
    const std::string shortened = option.short_name == 0 ? "" : fmt::format("|-{}", option.short_name);
    out += fmt::format("        --{}{}) {}; return ;;\n", option.name, shortened, value_statement(option));
  }
  out += "      esac\n";
  std::string words;
  if (!command.positionals.empty()) words = join(command.positionals.front().allowed, " ");
  const bool files = !command.positionals.empty() && words.empty();
  out += fmt::format("      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W '{}' -- \"$cur\"))\n",
                     option_words(command));
  if (files)
    out += "      else compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\"))\n";
  else
    out += fmt::format("      else COMPREPLY=($(compgen -W '{}' -- \"$cur\"))\n",
                       words.empty() ? option_words(command) : words);
  return out + "      fi ;;\n";
}

}  // namespace

std::string bash_completion(const std::vector<CommandSpec>& commands) {
  std::vector<std::string> names;
  for (const CommandSpec& command : commands) names.push_back(command.name);
  std::string out = R"(# bash completion of assay, made by: assay completion bash
# Completes the last item of a list separated by commas.
_assay_list() {
  local head=""
  [[ $cur == *,* ]] && head="${cur%,*},"
  COMPREPLY=($(compgen -P "$head" -W "$1" -- "${cur##*,}"))
  compopt -o nospace 2>/dev/null
}
_assay() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="" command="" i
  ((COMP_CWORD > 0)) && prev="${COMP_WORDS[COMP_CWORD - 1]}"
  COMPREPLY=()
  # bash splits --name=value into three words.
  if [[ $cur == "=" ]]; then cur=""
  elif [[ $prev == "=" ]] && ((COMP_CWORD > 1)); then prev="${COMP_WORDS[COMP_CWORD - 2]}"
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then command="${COMP_WORDS[i]}"; break; fi
  done
  case "$command" in
)";
  for (const CommandSpec& command : commands) out += command_case(command);
  out += fmt::format("    \"\") COMPREPLY=($(compgen -W '{} --help --version' -- \"$cur\")) ;;\n",
                     join(names, " "));
  return out + "  esac\n}\ncomplete -F _assay assay\n";
}

}  // namespace assay::cli
