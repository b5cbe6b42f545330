// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "foreign/builder.hpp"
#include "foreign/csv.hpp"
#include "foreign/foreign.hpp"
#include "foreign/units.hpp"

namespace assay::foreign {
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

/// The names a metric or column of a case cannot have.
const std::set<std::string>& reserved() {
  static const std::set<std::string> names = {"entity", "source", "destination", "count", "sample",
                                              "block",  "t",      "parameters",  "row",   "value"};
  return names;
}

Header read_header(const std::vector<std::string>& fields, const Place& place) {
  static const std::set<std::string> meanings = {"node", "device", "src",   "dst",  "metric",   "unit",
                                                 "better", "sample", "value", "time", "clock_hz", "block"};
  Header header;
  header.width = fields.size();
  std::set<std::string> seen;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string& name = fields[i];
    if (name.empty()) fail(place, fmt::format("column {} has no name", i + 1));
    if (name.size() > 60 || name.find_first_of("/\n") != std::string::npos)
      fail(place, fmt::format("column {} cannot be named '{}'", i + 1, name.substr(0, 60)));
    if (!seen.insert(name).second) fail(place, "column '" + name + "' is there twice");
    if (meanings.contains(name)) {
      header.fixed[name] = i;
      continue;
    }
    const auto bracket = name.find('[');
    if (bracket == std::string::npos) {
      if (name == "row" || name == "entity") fail(place, "a column cannot be named '" + name + "'");
      header.attributes.emplace_back(i, name);
      continue;
    }
    const std::string bare = name.substr(0, bracket);
    if (bare.empty() || !name.ends_with(']') || reserved().contains(bare))
      fail(place, "column '" + name + "' is neither NAME nor NAME[UNIT]");
    try {
      header.covariates.push_back({i, bare, unit_scale(name.substr(bracket + 1, name.size() - bracket - 2))});
    } catch (const Error& e) {
      fail(place, "column '" + name + "': " + e.what());
    }
  }
  for (const char* name : {"metric", "unit", "better", "value"})
    if (!header.has(name)) fail(place, std::string("column '") + name + "' is missing");
  if (header.has("src") != header.has("dst")) fail(place, "src and dst come together");
  if (header.has("src") == header.has("node")) fail(place, "either node or src and dst say what was measured");
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
  CsvImport(Builder& builder, Header header, std::string file)
      : builder_(builder), header_(std::move(header)), file_(std::move(file)) {}

  void row(const std::vector<std::string>& fields, std::size_t line) {
    const Place place{file_, line};
    if (fields.size() != header_.width)
      fail(place, fmt::format("{} fields, the header has {}", fields.size(), header_.width));
    Sample sample;
    sample.place = place;
    sample.suite = "imported";
    sample.name = Builder::case_name(text(fields, "metric"));
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
    values(fields, place, sample);
    if (header_.has("sample")) sample.index = whole(fields, "sample", place);
    if (header_.has("block")) sample.block = static_cast<std::int32_t>(whole(fields, "block", place) % 1000);
    if (header_.has("time")) sample.t = number(fields, "time", place);
    builder_.add(sample);
    for (const auto& [column, name] : header_.attributes)
      builder_.attribute(sample.subject, name, fields[column], place);
  }

 private:
  const std::string& text(const std::vector<std::string>& fields, const char* name) const {
    return fields[header_.fixed.at(name)];
  }
  double number(const std::vector<std::string>& fields, const char* name, const Place& place) const {
    double value = 0;
    if (!parse_number(text(fields, name), value))
      fail(place, fmt::format("{} '{}' is no finite number", name, text(fields, name)));
    return value;
  }
  std::int64_t whole(const std::vector<std::string>& fields, const char* name, const Place& place) const {
    std::int64_t value = 0;
    if (!parse_whole(text(fields, name), value) || value < 0)
      fail(place, fmt::format("{} '{}' is no whole number from 0", name, text(fields, name)));
    return value;
  }

  void values(const std::vector<std::string>& fields, const Place& place, Sample& sample) {
    const std::string& better = text(fields, "better");
    if (better != "higher" && better != "lower" && better != "none")
      fail(place, "better '" + better + "' is not one of higher, lower, none");
    const UnitScale& scale = scale_of(text(fields, "unit"), place);
    sample.values.push_back({"value", scale.base, results::better_from(better), results::Role::metric,
                             number(fields, "value", place) * scale.factor});
    using results::Better;
    using results::Role;
    if (header_.has("clock_hz"))
      sample.values.push_back({"clock", "Hz", Better::none, Role::covariate, number(fields, "clock_hz", place)});
    for (const Covariate& c : header_.covariates) {
      double value = 0;
      if (!parse_number(fields[c.column], value))
        fail(place, fmt::format("{} '{}' is no finite number", c.name, fields[c.column]));
      sample.values.push_back({c.name, c.scale.base, Better::none, Role::covariate, value * c.scale.factor});
    }
  }

  const UnitScale& scale_of(const std::string& unit, const Place& place) {
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
  std::map<std::string, UnitScale> scales_;
};

void import_one(Builder& builder, const std::filesystem::path& file) {
  const std::string content = read_whole(file);
  CsvReader reader(content);
  std::vector<std::string> fields;
  const auto next = [&] {
    try {
      return reader.next(fields);
    } catch (const Error& e) {
      fail({file.string(), reader.line()}, e.what());
    }
  };
  if (!next()) fail({file.string(), 0}, "has no header");
  CsvImport rows(builder, read_header(fields, {file.string(), reader.line()}), file.string());
  bool any = false;
  while (next()) {
    rows.row(fields, reader.line());
    any = true;
  }
  if (!any) fail({file.string(), 0}, "has no samples");
}

}  // namespace

results::Results import_csv(const std::vector<std::filesystem::path>& files) {
  Builder builder("csv");
  std::vector<std::string> names;
  for (const auto& file : files) {
    import_one(builder, file);
    names.push_back(file.string());
  }
  return builder.finish(names);
}

}  // namespace assay::foreign
