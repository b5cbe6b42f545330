// SPDX-License-Identifier: Apache-2.0
// The only file that includes CLI11. CLI11 splits the command line; values are checked by the option table,
// so that a wrong value reads the same from the command line and from a file.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "cli/command.hpp"
#include "config/suggest.hpp"

namespace assay::cli {
namespace {

/// A command with its CLI11 options, to read back what was given.
struct Bound {
  const CommandSpec* spec = nullptr;
  CLI::App* app = nullptr;
  std::vector<std::pair<std::string, CLI::Option*>> options;
  std::vector<CLI::Option*> positionals;
};

std::string cli_name(const OptionSpec& spec) {
  const std::string name = "--" + spec.name;
  return spec.short_name == 0 ? name : fmt::format("-{},{}", spec.short_name, name);
}

Bound bind(CLI::App& app, const CommandSpec& spec) {
  Bound bound;
  bound.spec = &spec;
  bound.app = app.add_subcommand(spec.name);
  bound.app->set_help_flag("-h,--help");
  bound.app->allow_extras();
  for (const OptionSpec& option : spec.options) {
    CLI::Option* added = option.kind == OptionKind::flag ? bound.app->add_flag(cli_name(option))
                                                         : bound.app->add_option(cli_name(option));
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    bound.options.emplace_back(option.name, added);
  }
  for (const Positional& positional : spec.positionals) {
    bound.positionals.push_back(bound.app->add_option(positional.name));
    if (positional.repeatable) bound.positionals.back()->expected(1, 1 << 20)->allow_extra_args();
  }
  return bound;
}

std::vector<std::string> option_names(const CommandSpec& spec) {
  std::vector<std::string> names{"help"};
  for (const OptionSpec& option : spec.options) {
    if (!option.hidden) names.push_back(option.name);
  }
  return names;
}

std::vector<std::string> command_names(const std::vector<CommandSpec>& commands) {
  std::vector<std::string> names;
  for (const CommandSpec& command : commands) names.push_back(command.name);
  return names;
}

/// "--name=" is taken by CLI11 as a name whose value follows: it would swallow the next option.
void reject_empty_values(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return;
    if (argument.size() > 3 && argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      throw_usage(argument.substr(0, argument.size() - 1) + ": empty value");
    }
  }
}

void reject_extras(const Bound& bound) {
  std::vector<std::string> extras = bound.app->remaining();
  std::erase(extras, "--");  // CLI11 leaves the mark itself behind
  if (extras.empty()) return;
  // An option that is not known comes first: the arguments after it may only be its values.
  const auto unknown =
      std::ranges::find_if(extras, [](const auto& text) { return text.size() > 1 && text[0] == '-'; });
  if (unknown == extras.end()) {
    throw_usage(fmt::format("{}: unexpected argument '{}' (usage: {})", bound.spec->name, extras.front(),
                            bound.spec->usage));
  }
  const std::string name = unknown->substr(0, unknown->find('='));
  const auto letters = name.find_first_not_of('-');
  const std::string bare = letters == std::string::npos ? "" : name.substr(letters);
  throw_usage(fmt::format("{}: unknown option of {}{}", name, bound.spec->name,
                          did_you_mean(bare, option_names(*bound.spec), "--")));
}

/// "--out --force": the second is no file name but an option whose turn it is.
void reject_swallowed_option(const Bound& bound, const std::string& name,
                             const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const std::string bare = text.substr(0, text.find('='));
    for (const std::string& known : option_names(*bound.spec)) {
      if (bare == "--" + known)
        throw_usage(fmt::format("--{}: needs a value, '{}' is an option", name, text));
    }
  }
}

Parsed read_back(const Bound& bound) {
  reject_extras(bound);
  Parsed parsed;
  parsed.command = bound.spec;
  for (const auto& [name, option] : bound.options) {
    if (option->count() == 0) continue;
    parsed.texts[name] = option->results();
    reject_swallowed_option(bound, name, parsed.texts[name]);
  }
  for (const CLI::Option* positional : bound.positionals) {
    const bool repeatable = positional->get_expected_max() > 1;
    if (positional->count() == 0) continue;
    const auto& typed = positional->results();
    parsed.positionals.insert(parsed.positionals.end(), typed.begin(),
                              repeatable ? typed.end() : typed.begin() + 1);
  }
  for (std::size_t i = parsed.positionals.size(); i < bound.spec->positionals.size(); ++i) {
    const Positional& missing = bound.spec->positionals[i];
    if (missing.required)
      throw_usage(
          fmt::format("{}: {} is missing (usage: {})", bound.spec->name, missing.name, bound.spec->usage));
  }
  return parsed;
}

Parsed help_for(const std::vector<Bound>& bounds) {
  Parsed parsed;
  parsed.help = true;
  for (const Bound& bound : bounds) {
    if (bound.app->parsed()) parsed.command = bound.spec;
  }
  return parsed;
}

[[noreturn]] void throw_without_command(const std::vector<CommandSpec>& commands,
                                        const std::vector<std::string>& extras) {
  const std::vector<std::string> names = command_names(commands);
  if (extras.empty()) throw_usage(fmt::format("no command given (commands: {})", join(names)));
  const std::string& first = extras.front();
  if (first.starts_with("-"))
    throw_usage(fmt::format("{}: unknown option; a command comes first (commands: {})", first, join(names)));
  throw_usage(
      fmt::format("{}: no such command{} (commands: {})", first, did_you_mean(first, names), join(names)));
}

}  // namespace

Parsed parse_arguments(const std::vector<CommandSpec>& commands, std::vector<std::string> arguments) {
  reject_empty_values(arguments);
  CLI::App app;
  app.set_help_flag("-h,--help");
  app.require_subcommand(0, 1);
  app.allow_extras();
  const CLI::Option* version = app.add_flag("--version");
  std::vector<Bound> bounds;
  for (const CommandSpec& command : commands) bounds.push_back(bind(app, command));
  // What other programs take, too: `assay help run`, `assay version`.
  if (!arguments.empty() && arguments.front() == "help") {
    std::ranges::rotate(arguments, arguments.begin() + 1);
    arguments.back() = "--help";
  } else if (arguments.size() == 1 && arguments.front() == "version") {
    arguments.front() = "--version";
  }
  const std::string first = arguments.empty() ? "" : arguments.front();
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    Parsed parsed = help_for(bounds);
    if (parsed.command == nullptr && !first.starts_with('-')) throw_without_command(commands, {first});
    return parsed;
  } catch (const CLI::ArgumentMismatch& e) {
    const std::string text = e.what();
    throw_usage(text.substr(0, text.find(':')) + ": needs a value");
  } catch (const CLI::ParseError& e) {
    throw_usage(e.what());
  }
  for (const Bound& bound : bounds) {
    if (!bound.app->parsed()) continue;
    // An unknown option before the command is an error too.
    if (const auto extras = app.remaining(); !extras.empty()) throw_without_command(commands, extras);
    return read_back(bound);
  }
  if (version->count() == 0) throw_without_command(commands, app.remaining());
  Parsed parsed;
  parsed.version = true;
  return parsed;
}

OptionValues option_values(const Parsed& parsed,
                           const std::map<std::string, std::vector<std::string>>& file_texts) {
  OptionValues values;
  for (const OptionSpec& spec : parsed.command->options) {
    const auto typed = parsed.texts.find(spec.name);
    const auto filed = file_texts.find(spec.name);
    const bool in_file = filed != file_texts.end();
    if (typed != parsed.texts.end()) {
      values.set(spec, typed->second, in_file ? OptionSource::both : OptionSource::command_line);
    } else if (in_file) {
      values.set(spec, filed->second, OptionSource::file);
    } else {
      values.set(spec, {});
    }
  }
  return values;
}

}  // namespace assay::cli
