// SPDX-License-Identifier: Apache-2.0
// Options as data: one table drives the command line, the TOML file, --help, completion and the echo in the
// results file.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace assay {

/// What an option has to do with what is measured. Only `measurement` enters the plan hash and must be the
/// same when a run is resumed; the others say where output goes, how it looks, or against what it is judged.
enum class OptionUse { measurement, presentation, output_file };
constexpr bool is_presentation(OptionUse use) noexcept { return use != OptionUse::measurement; }

enum class OptionKind { flag, text, integer, number, bytes, seconds, list, choice, choices, path };

/// Values that a number may have, both ends among them.
struct Range {
  double least, most = std::numeric_limits<double>::infinity();
};

struct OptionSpec {
  std::string name;  ///< long name without dashes; a suite's options are "gemm.dtypes"
  OptionKind kind = OptionKind::text;
  std::string default_text;  ///< as it would be typed; empty = unset
  std::string help;
  std::vector<std::string> allowed;  ///< of choice / choices
  std::string value_name;            ///< shown in --help, e.g. FILE
  bool repeatable = false;
  bool hidden = false;
  char short_name = 0;  ///< 'o' for -o; 0 = none
  OptionUse use = OptionUse::measurement;
  std::optional<Range> range =
      {};                  ///< of integer, number, bytes and seconds: checked whatever uses the option
  std::string alone = {};  ///< of choices: the one that goes with no other
};

/// Who gives an option its value. `both`: a configuration file names it, and the command line has precedence.
enum class OptionSource { command_line, file, both };

/// Parsed values by option name; only options of the table can be present, every one is (its default if not
/// given).
class OptionValues {
 public:
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::uint64_t, std::string,
                             std::vector<std::string>>;

  /// Parses and checks `texts` (several only when list-like or repeatable). Throws Error(usage) naming option
  /// and value.
  void set(const OptionSpec& spec, const std::vector<std::string>& texts,
           OptionSource source = OptionSource::command_line);

  void unset(const std::string& name);      ///< as if nobody gave it
  bool has(const std::string& name) const;  ///< present and not unset
  bool flag(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;  ///< number and seconds
  std::uint64_t bytes(const std::string& name) const;
  std::string text(const std::string& name) const;  ///< text, choice, path; empty when unset
  std::vector<std::string> list(const std::string& name) const;
  const std::map<std::string, Value>& all() const noexcept { return values_; }
  OptionUse use(const std::string& name) const;
  OptionSource source(const std::string& name) const;  ///< the command line where nobody gives a value

 private:
  std::map<std::string, Value> values_;
  std::map<std::string, OptionUse> uses_;
  std::map<std::string, OptionSource> sources_;
};

}  // namespace assay
