// SPDX-License-Identifier: Apache-2.0
#include "run/relaunch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/shell.hpp"
#include "run/selection.hpp"

namespace assay {
namespace {

/// The texts of an option that is to be said again; none when it stands at its default.
std::vector<std::string> texts_of(const OptionSpec& spec, const OptionValues& values) {
  const auto it = values.all().find(spec.name);
  if (!values.has(spec.name) || it == values.all().end()) return {};
  OptionValues defaults;
  if (!spec.default_text.empty()) defaults.set(spec, {spec.default_text});
  const auto usual = defaults.all().find(spec.name);
  if (usual != defaults.all().end() && usual->second == it->second) return {};
  return std::visit(
      [&](const auto& v) -> std::vector<std::string> {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return {};
        else if constexpr (std::is_same_v<T, bool>)
          return v ? std::vector<std::string>{""} : std::vector<std::string>{};
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
          return spec.kind == OptionKind::text || v.empty()
                     ? v
                     : std::vector<std::string>{fmt::format("{}", fmt::join(v, ","))};
        else
          return {fmt::format("{}{}", v, spec.kind == OptionKind::seconds ? "s" : "")};
      },
      it->second);
}

}  // namespace

std::string relaunch_line(const Config& config, const std::vector<OptionSpec>& specs,
                          const std::set<std::string>& lost_nodes, const std::string& file) {
  static const std::set<std::string> said_otherwise{"out",      "resume",   "force", "exclude",
                                                    "launcher", "relaunch", "spent"};
  std::string line = "assay run";
  for (const OptionSpec& spec : specs) {
    if (said_otherwise.contains(spec.name)) continue;
    for (const std::string& text : texts_of(spec, config.options)) {
      line +=
          fmt::format(" --{}{}{}", spec.name, text.empty() ? "" : " ", text.empty() ? "" : shell_word(text));
    }
  }
  std::string exclude = fmt::format("{}", fmt::join(lost_nodes, ","));
  try {
    if (const std::string before = node_list("exclude", config.exclude); !before.empty())
      exclude = fmt::format("{},{}", before, exclude);
  } catch (const Error&) {  // the file is gone; what was lost is excluded all the same
  }
  line += " --exclude " + shell_word(exclude);
  // The segments of a soak are judged together, so the next ones need nothing of this file.
  return config.segments() > 1 ? line : fmt::format("{} --resume {}", line, shell_word(file));
}

}  // namespace assay
