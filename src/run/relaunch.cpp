// SPDX-License-Identifier: Apache-2.0
#include "run/relaunch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/shell.hpp"
#include "run/selection.hpp"

namespace assay {
namespace {

/// The texts of an option that is to be said again; none where it stands at its default, or the configuration
/// file says it, which is named again.
std::vector<std::string> texts_of(const OptionSpec& spec, const OptionValues& values) {
  const auto it = values.all().find(spec.name);
  const OptionSource source = values.source(spec.name);
  if (!values.has(spec.name) || it == values.all().end() || source == OptionSource::file) return {};
  OptionValues defaults;
  if (!spec.default_text.empty()) defaults.set(spec, {spec.default_text});
  const auto usual = defaults.all().find(spec.name);
  const bool over_file = source == OptionSource::both;
  if (!over_file && usual != defaults.all().end() && usual->second == it->second) return {};
  return std::visit(
      [&](const auto& v) -> std::vector<std::string> {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return {};
        else if constexpr (std::is_same_v<T, bool>)
          return v || over_file ? std::vector<std::string>{v ? "" : "false"} : std::vector<std::string>{};
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
          return spec.kind == OptionKind::text || v.empty()
                     ? v
                     : std::vector<std::string>{fmt::format("{}", fmt::join(v, ","))};
        else
          return {fmt::format("{}{}", v, spec.kind == OptionKind::seconds ? "s" : "")};
      },
      it->second);
}

/// A flag takes a value only behind '='.
std::string words_of(const OptionSpec& spec, const std::string& text) {
  if (text.empty()) return " --" + spec.name;
  return fmt::format(" --{}{}{}", spec.name, spec.kind == OptionKind::flag ? "=" : " ", shell_word(text));
}

}  // namespace

std::string relaunch_line(const Config& config, const std::vector<OptionSpec>& specs,
                          const std::set<std::string>& lost_nodes, const std::string& file) {
  static const std::set<std::string> said_otherwise{"out",      "resume",   "force", "exclude",
                                                    "launcher", "relaunch", "spent"};
  std::string line = "assay run";
  for (const OptionSpec& spec : specs) {
    if (said_otherwise.contains(spec.name)) continue;
    for (const std::string& text : texts_of(spec, config.options)) line += words_of(spec, text);
  }
  std::string exclude = fmt::format("{}", fmt::join(lost_nodes, ","));
  try {
    if (const std::string before = node_list("exclude", config.exclude); !before.empty())
      exclude = fmt::format("{},{}", before, exclude);
  } catch (const Error&) {  // the file is gone; what was lost is excluded all the same
  }
  line += " --exclude " + shell_word(exclude);
  if (config.segments() == 1) return fmt::format("{} --resume {}", line, shell_word(file));
  // The segments of a soak are judged together, so the next ones need nothing of this file. The name that the
  // configuration file gives is taken: with its `force` the first ones would be replaced.
  if (config.options.source("out") == OptionSource::command_line) return line;
  const auto beside = std::filesystem::path(config.out).parent_path() / default_file_name();
  return fmt::format("{} --out {}", line, shell_word(beside.string()));
}

}  // namespace assay
