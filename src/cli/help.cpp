// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "cli/command.hpp"
#include "config/suggest.hpp"

namespace assay::cli {
namespace {

constexpr std::size_t columns = 80;

}  // namespace

std::string wrapped(std::string line, const std::string& text, std::size_t indent) {
  std::string out;
  line.resize(std::max(line.size(), indent), ' ');
  bool fresh = true;
  const auto wrap = [&] {
    out += line + "\n";
    line.assign(indent, ' ');
    fresh = true;
  };
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find(' ', begin);
    if (end == std::string::npos) end = text.size();
    std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (!fresh && line.size() + 1 + word.size() > columns) wrap();
    if (!fresh) line += ' ';
    while (line.size() + word.size() > columns) {  // a list without spaces: breaks after a comma
      const std::size_t room = columns - std::min(columns, line.size());
      const std::size_t comma = room == 0 ? std::string::npos : word.rfind(',', room - 1);
      if (comma == std::string::npos) break;
      line += word.substr(0, comma + 1);
      word.erase(0, comma + 1);
      wrap();
    }
    line += word;
    fresh = false;
  }
  return out + line + "\n";
}

namespace {

std::string option_help(const OptionSpec& option) {
  std::string left = option.short_name == 0 ? "      " : fmt::format("  -{}, ", option.short_name);
  left += "--" + option.name;
  if (!option.value_name.empty())
    left += " " + option.value_name;
  else if (option.kind != OptionKind::flag)
    left += " VALUE";
  std::string text = option.help;
  if (!option.allowed.empty())
    text += fmt::format(" ({})", join(option.allowed, option.kind == OptionKind::choice ? " | " : ", "));
  if (!option.default_text.empty()) text += fmt::format(" [{}]", option.default_text);
  constexpr std::size_t indent = 30;
  if (left.size() + 2 > indent) return left + "\n" + wrapped("", text, indent);
  return wrapped(left, text, indent);
}

/// The suite of an option "suite.name", "" of others.
std::string section_of(const OptionSpec& option) {
  const auto dot = option.name.find('.');
  return dot == std::string::npos ? "" : option.name.substr(0, dot);
}

}  // namespace

std::string options_help(const CommandSpec& command) {
  std::string out;
  std::string section;
  for (const OptionSpec& option : command.options) {
    if (option.hidden) continue;
    if (section_of(option) != section) {
      section = section_of(option);
      out += fmt::format("\nOptions of suite {}:\n", section);
    }
    out += option_help(option);
  }
  return out;
}

std::string help_text(const std::vector<CommandSpec>& commands) {
  std::string out =
      "assay tests a cluster and every node, device and NIC in it, and names what is\nslow, wrong or "
      "missing.\n\n"
      "Usage: assay COMMAND [OPTIONS]\n       mpirun -n N assay run [OPTIONS]\n\nCommands:\n";
  for (const CommandSpec& command : commands) out += wrapped("  " + command.name, command.summary, 14);
  out +=
      "\nOptions:\n  -h, --help  print this and exit; with a command: the options of the command\n"
      "  --version   versions of assay, its libraries, devices and transports\n\n"
      "Examples:\n  assay run --level smoke\n  mpirun -n 4 assay run --out q.h5\n  assay verdict q.h5\n";
  return out;
}

std::string help_text(const CommandSpec& command) {
  std::string out = fmt::format("assay {}: {}\n", command.name, command.summary);
  out += "\nUsage: " + command.usage + "\n";
  if (!command.positionals.empty()) out += "\nArguments:\n";
  for (const Positional& positional : command.positionals) {
    std::string text = positional.help;
    if (positional.allowed.size() > 1) text += fmt::format(" ({})", join(positional.allowed, "|"));
    out += wrapped("  " + positional.name, text, 30);
  }
  out += "\nOptions:\n" + wrapped("  -h, --help", "print this and exit", 30) + options_help(command);
  out += "\nExamples:\n";
  for (const std::string& example : command.examples) out += "  " + example + "\n";
  if (!command.footer.empty()) out += "\n" + command.footer + "\n";
  return out;
}

}  // namespace assay::cli
