// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <unordered_set>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "import/builder.hpp"
#include "import/csv.hpp"
#include "import/import.hpp"
#include "import/units.hpp"
#include "results/text.hpp"

namespace assay::imports {
namespace {

/// A column of every sample with its unit.
struct Covariate {
  std::size_t column;
  std::string name;
  UnitScale scale;
};

struct Header {
  std::map<std::string, std::size_t> fixed;  ///< columns whose meaning is known
  std::vector<Covariate> covariates;
  std::vector<std::pair<std::size_t, std::string>> attributes;
  std::size_t width = 0;

  bool has(const char* name) const { return fixed.contains(name); }
};

/// The names a metric or column of a case cannot have; `errors` counts wrong results.
const std::set<std::string>& reserved() {
  static const std::set<std::string> names = {"entity", "source", "destination", "count",
                                              "sample", "block",  "t",           "parameters",
                                              "row",    "value",  "errors"};
  return names;
}

/// Names count in any case; the unit of a column does not.
std::string column_name(const std::string& field) {
  std::string name = field;
  std::transform(name.begin(), std::find(name.begin(), name.end(), '['), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

/// Nothing was measured there.
bool is_missing(const std::string& value) {
  return value.empty() || value == "N/A" || value == "n/a" || value == "NA";
}

[[noreturn]] void fail_number(const TextPosition& place, const std::string& name, const std::string& value) {
  const bool comma = value.find(',') != std::string::npos;
  fail(place, fmt::format("{} '{}' {}", name, value,
                          comma ? "has a comma: write a decimal point" : "is no finite number"));
}

Header read_header(const std::vector<std::string>& fields, const TextPosition& place) {
  static const std::set<std::string> meanings = {"node",     "device", "src",    "dst",   "metric",
                                                 "unit",     "better", "sample", "value", "time",
                                                 "clock_hz", "block",  "retest"};
  constexpr std::size_t most_columns = 256;  // each attribute is a table of its own
  if (fields.size() > most_columns) fail(place, fmt::format("more than {} columns", most_columns));
  Header header;
  header.width = fields.size();
  std::set<std::string> seen, bare_names;
  if (std::ranges::find(fields, "clock_hz", column_name) != fields.end()) bare_names.insert("clock");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string name = column_name(fields[i]);
    if (name.empty()) fail(place, fmt::format("column {} has no name", i + 1));
    if (name.size() > 60 || name.find_first_of("/\n") != std::string::npos)
      fail(place, fmt::format("column {} cannot be named '{}'", i + 1, name.substr(0, 60)));
    if (!seen.insert(name).second) fail(place, "duplicate column '" + name + "'");
    if (meanings.contains(name)) {
      header.fixed[name] = i;
      continue;
    }
    const auto bracket = name.find('[');
    if (bracket == std::string::npos) {
      if (name == "row" || name == "entity" || name == "." || name == "..")
        fail(place, "a column cannot be named '" + name + "'");
      header.attributes.emplace_back(i, name);
      continue;
    }
    const std::string bare = name.substr(0, bracket);
    if (bare.empty() || !name.ends_with(']'))
      fail(place, "column '" + name + "' is neither NAME nor NAME[UNIT]");
    if (reserved().contains(bare)) fail(place, "a column cannot be named '" + bare + "'");
    if (!bare_names.insert(bare).second) fail(place, "two columns are named '" + bare + "'");
    try {
      header.covariates.push_back({i, bare, unit_scale(name.substr(bracket + 1, name.size() - bracket - 2))});
    } catch (const Error& e) {
      fail(place, "column '" + name + "': " + e.what());
    }
  }
  // Samples are compared by position: the files of an import may order their columns differently.
  std::ranges::sort(header.covariates, {}, &Covariate::name);
  for (const char* name : {"metric", "unit", "better", "value"})
    if (!header.has(name)) fail(place, std::string("column '") + name + "' is missing");
  if (header.has("src") != header.has("dst")) fail(place, "src and dst come together");
  if (header.has("src") == header.has("node")) fail(place, "needs a column node, or src and dst");
  return header;
}

void set_end(const std::string& text, std::string& node, std::string& device) {
  const auto slash = text.find('/');
  node = text.substr(0, slash);
  device = slash == std::string::npos ? "" : text.substr(slash + 1);
}

/// The rows of one file.
class CsvImport {
 public:
  CsvImport(Builder& builder, Header header, std::string file, std::unordered_set<std::uint64_t>& seen)
      : builder_(builder), header_(std::move(header)), file_(std::move(file)), seen_(seen) {}

  /// Returns whether the row holds a value.
  bool row(const std::vector<std::string>& fields, std::size_t line) {
    const TextPosition place{file_, line};
    if (fields.size() != header_.width)
      fail(place, fmt::format("{} fields, the header has {}", fields.size(), header_.width));
    // Without a number or a time equal rows are samples that came out equal.
    if ((header_.has("sample") || header_.has("time")) && !seen_.insert(row_hash(fields)).second) {
      builder_.count_duplicate();
      return true;
    }
    Sample sample;
    sample.place = place;
    sample.suite = "imported";
    const auto [metric, retest] = retest_of(text(fields, "metric"));
    sample.name = builder_.case_name(metric, place);
    sample.retest = retest;
    if (header_.has("retest") && !text(fields, "retest").empty())
      sample.retest = whole(fields, "retest", place);
    if (sample.retest > most_retests)
      fail(place, fmt::format("retest {} is more than {}", sample.retest, most_retests));
    if (sample.name.empty()) fail(place, "metric '" + text(fields, "metric") + "' names nothing");
    sample.stage = header_.has("src") ? "pairs" : "node-local";
    if (header_.has("src")) {
      set_end(text(fields, "src"), sample.subject.node, sample.subject.device);
      set_end(text(fields, "dst"), sample.subject.peer_node, sample.subject.peer_device);
      if (sample.subject.peer_node.empty()) fail(place, "dst is empty");
    } else {
      sample.subject.node = text(fields, "node");
      if (header_.has("device")) sample.subject.device = text(fields, "device");
    }
    for (const auto& [column, name] : header_.attributes)
      builder_.attribute(sample.subject, name, fields[column], place);
    if (is_missing(text(fields, "value"))) {
      builder_.count_missing(sample);
      return false;
    }
    values(fields, place, sample);
    if (header_.has("sample")) sample.index = whole(fields, "sample", place);
    if (header_.has("block")) set_block(whole(fields, "block", place), place, sample);
    if (header_.has("time")) set_time(fields, place, sample);
    builder_.add(sample);
    return true;
  }

 private:
  static constexpr std::int64_t most_retests = 99, most_block = 999'999;

  static void set_block(std::int64_t block, const TextPosition& place, Sample& sample) {
    if (block > most_block) fail(place, fmt::format("block {} is more than {}", block, most_block));
    sample.block = static_cast<std::int32_t>(block);
    sample.common_blocks = true;
  }

  /// All that the row says, with the name of every column: files may order them differently.
  std::uint64_t row_hash(const std::vector<std::string>& fields) const {
    std::uint64_t hash = 0;
    for (const auto& [name, column] : header_.fixed)
      hash = mix64(hash, mix64(hash_text(name), hash_text(fields[column])));
    for (const auto& c : header_.covariates)
      hash = mix64(hash, mix64(hash_text(c.name), hash_text(fields[c.column])));
    for (const auto& [column, name] : header_.attributes)
      hash = mix64(hash, mix64(hash_text(name), hash_text(fields[column])));
    return hash;
  }

  /// "sgemm.c1": the first retest of sgemm.
  static std::pair<std::string, std::int64_t> retest_of(const std::string& metric) {
    const auto dot = metric.rfind(".c");
    std::int64_t number = 0;
    if (dot == std::string::npos || dot == 0 ||
        !parse_whole(std::string_view(metric).substr(dot + 2), number) || number < 1)
      return {metric, 0};
    return {metric.substr(0, dot), number};
  }

  void set_time(const std::vector<std::string>& fields, const TextPosition& place, Sample& sample) const {
    if (const auto time = parse_iso(text(fields, "time"))) {
      sample.t = *time;
      sample.dated = true;
      return;
    }
    constexpr double most_s = 1e12;  // of the schema
    if (!parse_number(text(fields, "time"), sample.t) || std::abs(sample.t) > most_s / 2)
      fail(place,
           "time '" + text(fields, "time") + "' is neither seconds nor ISO 8601 (2026-01-31T02:00:00Z)");
  }

  const std::string& text(const std::vector<std::string>& fields, const char* name) const {
    return fields[header_.fixed.at(name)];
  }
  double number(const std::vector<std::string>& fields, const char* name, const TextPosition& place,
                double factor = 1) const {
    double value = 0;
    if (!parse_number(text(fields, name), value) || !std::isfinite(value * factor))
      fail_number(place, name, text(fields, name));
    return value * factor;
  }
  std::int64_t whole(const std::vector<std::string>& fields, const char* name,
                     const TextPosition& place) const {
    std::int64_t value = 0;
    if (!parse_whole(text(fields, name), value) || value < 0)
      fail(place, fmt::format("{} '{}' is no whole number from 0", name, text(fields, name)));
    return value;
  }

  void values(const std::vector<std::string>& fields, const TextPosition& place, Sample& sample) {
    const std::string& better = text(fields, "better");
    if (better != "higher" && better != "lower" && better != "none")
      fail(place, "better '" + better + "' is not one of higher, lower, none");
    const UnitScale& scale = scale_of(text(fields, "unit"), place);
    sample.values.push_back({"value", scale.base, results::better_from(better), results::Role::metric,
                             number(fields, "value", place, scale.factor)});
    using results::Better;
    using results::Role;
    if (header_.has("clock_hz"))
      sample.values.push_back(
          {"clock", "Hz", Better::none, Role::covariate, number(fields, "clock_hz", place)});
    for (const Covariate& c : header_.covariates) {
      double value = 0;
      if (!parse_number(fields[c.column], value) || !std::isfinite(value * c.scale.factor))
        fail_number(place, c.name, fields[c.column]);
      sample.values.push_back({c.name, c.scale.base, Better::none, Role::covariate, value * c.scale.factor});
    }
  }

  const UnitScale& scale_of(const std::string& unit, const TextPosition& place) {
    const auto it = scales_.find(unit);
    if (it != scales_.end()) return it->second;
    try {
      return scales_.emplace(unit, unit_scale(unit)).first->second;
    } catch (const Error& e) {
      fail(place, e.what());
    }
  }

  Builder& builder_;
  Header header_;
  std::string file_;
  std::unordered_set<std::uint64_t>& seen_;  ///< rows of all files
  std::map<std::string, UnitScale> scales_;
};

/// Two names of another encoding could become one.
void check_utf8(const std::string& content, const std::string& file) {
  if (results::clean_text(content) == content) return;
  Lines lines(content);
  for (std::string_view line; lines.next(line);)
    if (results::clean_text(line) != line)
      fail({file, lines.number()}, "is not UTF-8: convert the file (iconv)");
}

void import_one(Builder& builder, const InputFile& file, std::unordered_set<std::uint64_t>& seen) {
  const std::string content = read_whole(file);
  CsvReader reader(content);
  std::vector<std::string> fields;
  const auto next = [&] {
    try {
      return reader.next(fields);
    } catch (const Error& e) {
      fail({file.path().string(), reader.line()}, e.what());
    }
  };
  const TextPosition whole{file.path().string(), 0};
  if (content.empty()) return builder.add_empty(whole, "is empty");
  check_utf8(content, whole.file);
  if (!next()) return builder.add_empty(whole, "has no header");
  CsvImport rows(builder, read_header(fields, {file.path().string(), reader.line()}), file.path().string(),
                 seen);
  bool any = false, any_row = false;
  while (next()) {
    // Spreadsheets leave lines of separators alone.
    if (std::ranges::all_of(fields, &std::string::empty)) continue;
    any_row = true;
    any = rows.row(fields, reader.line()) || any;
  }
  // Rows without a value name the parts that lack one.
  if (!any) builder.add_empty(whole, "has no samples", !any_row);
}

}  // namespace

results::Results import_csv(const std::vector<InputFile>& files) {
  Builder builder("csv");
  std::vector<std::string> names;
  std::unordered_set<std::uint64_t> seen;
  for (const auto& file : files) {
    import_one(builder, file, seen);
    names.push_back(file.path().string());
  }
  return builder.finish(names);
}

}  // namespace assay::imports
