// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/command.hpp"
#include "config/suggest.hpp"

namespace assay::cli {
namespace {

/// Text as roff takes it: nothing in it is a request, a hyphen stays one that can be copied to a shell, and a
/// list without spaces may be broken after a comma.
std::string roff(const std::string& text) {
  std::string out;
  bool fresh = true;
  for (const char c : text) {
    if (c != ' ' && out.ends_with(',')) out += "\\:";
    if (fresh && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    fresh = c == '\n';
  }
  return out;
}

std::string option_entry(const OptionSpec& option) {
  std::string left = option.short_name == 0 ? "" : fmt::format("\\-{}, ", option.short_name);
  left += roff("--" + option.name);
  std::string value = option.value_name;
  if (value.empty() && option.kind != OptionKind::flag) value = "VALUE";
  std::string out =
      fmt::format(".TP\n\\fB{}\\fR{}\n", left, value.empty() ? "" : " \\fI" + roff(value) + "\\fR");
  out += roff(option.help);
  if (!option.allowed.empty())
    out += roff(fmt::format(" ({})", join(option.allowed, option.kind == OptionKind::choice ? " | " : ", ")));
  if (!option.default_text.empty()) out += roff(fmt::format(" [{}]", option.default_text));
  return out + "\n";
}

std::string options_of(const CommandSpec& command) {
  std::string out, section;
  for (const OptionSpec& option : command.options) {
    if (option.hidden) continue;
    const auto dot = option.name.find('.');
    const std::string here = dot == std::string::npos ? "" : option.name.substr(0, dot);
    if (here != section) {
      section = here;
      out += fmt::format(".PP\nOptions of suite {}:\n", roff(section));
    }
    out += option_entry(option);
  }
  return out;
}

std::string examples(const std::vector<std::string>& lines) {
  std::string out = ".PP\n.nf\n";
  for (const std::string& line : lines) out += "    " + roff(line) + "\n";
  return out + ".fi\n";
}

/// `plan` takes the options of `run`: they are said once.
std::string command_section(const CommandSpec& command, const CommandSpec& run) {
  std::string out = fmt::format(".SS \"{}\"\n{}.\n", roff(command.usage), roff(command.summary));
  for (const Positional& positional : command.positionals) {
    std::string text = positional.help;
    if (positional.allowed.size() > 1) text += fmt::format(" ({})", join(positional.allowed, "|"));
    out += fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(positional.name), roff(text));
  }
  const bool as_run = command.name != run.name && command.options.size() == run.options.size();
  out += as_run ? ".PP\nOptions: those of \\fBrun\\fR.\n" : options_of(command);
  if (!command.examples.empty()) out += ".PP\nExamples:\n" + examples(command.examples);
  if (!command.footer.empty() && command.footer.rfind("Exit codes as", 0) != 0)
    out += ".PP\n" + roff(command.footer) + "\n";
  return out;
}

}  // namespace

std::string man_page(const std::vector<CommandSpec>& commands, const std::string& version) {
  // No date: the same source gives the same page.
  std::string out = fmt::format(
      ".\\\" SPDX-License-Identifier: Apache-2.0\n.\\\" Made by: assay man\n.TH ASSAY 1 \"\" \"assay {}\" "
      "\"User Commands\"\n",
      roff(version));
  out +=
      ".SH NAME\nassay \\- tests a cluster and every node, device and NIC in it\n"
      ".SH SYNOPSIS\n\\fBassay\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.br\n\\fBmpirun \\-n\\fR \\fIN\\fR "
      "\\fBassay run\\fR [\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\nassay measures on all MPI ranks at once, checks every timed result, stores every raw "
      "sample in one\n HDF5 file, and gives a verdict that names what is slow, wrong or missing. A "
      "required case without a measurement is never a PASS.\n"
      ".SH COMMANDS\n";
  for (const CommandSpec& command : commands) out += command_section(command, commands.front());
  out +=
      ".SH EXIT STATUS\n"
      ".TP\n0\nPASS (warnings may be printed)\n.TP\n1\nWARN, only with \\fB\\-\\-strict\\fR\n"
      ".TP\n2\nFAIL: at least one fault, and it is named\n.TP\n3\nINCONCLUSIVE: required evidence is "
      "missing\n"
      ".TP\n4\nusage or configuration error\n.TP\n5\ninternal error\n"
      ".SH ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\nno colour on a terminal\n";
  return out + ".SH SEE ALSO\n\\fBmpirun\\fR(1), \\fBh5dump\\fR(1)\n";
}

}  // namespace assay::cli
