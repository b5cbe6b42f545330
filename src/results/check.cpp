// SPDX-License-Identifier: Apache-2.0
// A results file against the schema, without `load`: it goes on after a problem and names them all.
#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "results/archive.hpp"
#include "results/check_content.hpp"
#include "results/checker.hpp"
#include "results/reader.hpp"
#include "results/schema.hpp"
#include "results/telemetry_io.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

std::size_t table_rows(hid_t file, const std::string& path) {
  if (!h5::is_dataset(file, path + "/row")) return 0;
  const auto shape = h5::shape(h5::open_dataset(file, path + "/row"));
  return shape.size() == 1 ? shape[0] : 0;
}

class FileChecker : public Checker {
 public:
  using Checker::Checker;

  void check() {
    attributes(file_, "/", schema_.attributes);
    const bool judged = h5::has_link(file_, "/verdict");
    const auto wanted = [&](const std::string& path) { return judged || !path.starts_with("/verdict"); };
    const bool sampled = h5::has_link(file_, telemetry_group);
    for (const TableSpec& table : schema_.tables) {
      if (table.path.starts_with(telemetry_group) && !sampled) continue;
      if (wanted(table.path)) check_table(table, table.path);
    }
    for (const TextSpec& text : schema_.texts) {
      if (wanted(text.path)) check_text(text.path);
    }
    check_inventory();
    if (sampled) guard(telemetry_group, [&] { check_telemetry(); });
    if (judged) guard("/verdict", [&] { check_verdict(); });
  }

 private:
  void check_table(const TableSpec& table, const std::string& path) {
    if (!h5::is_group(file_, path)) return problem("missing table " + path);
    const std::size_t rows = table_rows(file_, path);
    guard(path, [&] { scale(h5::open_group(file_, path), path, "row"); });
    for (const Field& field : table.columns) {
      guard(path + "/" + field.name, [&] { column(path, field, rows); });
    }
  }

  void column(const std::string& path, const Field& field, std::size_t rows) {
    const std::string name = path + "/" + field.name;
    if (!h5::is_dataset(file_, name)) {
      if (field.required) problem("missing dataset " + name);
      return;
    }
    const h5::Id set = h5::open_dataset(file_, name);
    if (!type_is(set, name, field.type)) return;
    const auto shape = h5::check_dataset(set, name, field.type, limits_);
    if (shape != std::vector<std::size_t>{rows})
      return problem("wrong length of " + name + ": row has " + std::to_string(rows));
    attached(set, name, {"row"});
    if (!field.unit.empty()) unit(set, name, field.unit);
    if (field.refers) references(set, name, -1);
    column_values(set, name, field);
  }

  void check_inventory() {
    const std::string& top = schema_.inventory.path;
    if (!h5::is_group(file_, top)) return problem("missing group " + top);
    for (const std::string& kind : h5::children(h5::open_group(file_, top)))
      check_open_table(schema_.inventory, top + "/" + kind);
  }

  void check_telemetry() {
    TableSpec of_one = schema_.telemetry;
    std::erase_if(of_one.columns, [](const Field& field) { return field.refers; });
    for (const std::string& name : h5::children(h5::open_group(file_, telemetry_group))) {
      const std::string path = std::string(telemetry_group) + "/" + name;
      if (path == telemetry_flags) continue;
      const bool before = is_of_one_entity(file_, path);
      check_open_table(before ? of_one : schema_.telemetry, path);
      if (!before) continue;
      guard(path, [&] {
        std::int32_t row = -1;
        h5::get(h5::open_group(file_, path), "entity", h5::Type::int32, &row);
        if (row < 0 || static_cast<std::size_t>(row) >= entities_)
          problem("row " + std::to_string(row) + " of " + path + " is not in /entities, which has " +
                  std::to_string(entities_));
      });
    }
  }

  /// A table with columns beyond those of the schema.
  void check_open_table(const TableSpec& spec, const std::string& path) {
    check_table(spec, path);
    if (!h5::is_group(file_, path)) return;
    for (const std::string& name : h5::children(h5::open_group(file_, path))) {
      const bool known =
          std::ranges::any_of(spec.columns, [&](const Field& field) { return field.name == name; });
      if (name != "row" && !known) guard(path + "/" + name, [&] { open_column(path, name); });
    }
  }

  void open_column(const std::string& path, const std::string& name) {
    const std::string full = path + "/" + name;
    const h5::Id set = h5::open_dataset(file_, full);
    const h5::Stored type = h5::stored_type(h5::Id(h5::check(H5Dget_type(set), full)));
    if (type == h5::Stored::float64) {
      unit(set, full, "");
    } else if (type == h5::Stored::string) {
      utf8(h5::read_strings(set, full, limits_), full);
    } else {
      return problem("wrong type of " + full + ": " + h5::to_string(type) + " instead of string or float64");
    }
    if (h5::shape(set) != std::vector<std::size_t>{table_rows(file_, path)})
      problem("wrong length of " + full);
    attached(set, full, {"row"});
  }

  void check_text(const std::string& path) {
    if (!h5::is_dataset(file_, path)) return problem("missing dataset " + path);
    guard(path, [&] {
      const h5::Id set = h5::open_dataset(file_, path);
      if (!type_is(set, path, h5::Type::string)) return;
      const auto texts = h5::read_strings(set, path, limits_);
      if (texts.size() != 1 || !Json::accept(texts[0])) return problem("not JSON: " + path);
      if (texts[0][texts[0].find_first_not_of(" \t\r\n")] != '{') problem("no JSON object: " + path);
    });
  }

  std::int64_t count(hid_t group, const char* name) {
    std::int64_t value = 0;
    h5::get(group, name, h5::Type::int64, &value);
    return value;
  }

  /// planned = passed + failed + skipped + error + incomplete, and /plan has as many planned rows.
  void check_verdict() {
    const h5::Id group = h5::open_group(file_, "/verdict");
    attributes(group, "/verdict", schema_.verdict_attributes);
    const std::int64_t planned = count(group, "planned");
    std::int64_t sum = 0;
    for (const char* name : {"passed", "failed", "skipped", "error", "incomplete"}) sum += count(group, name);
    if (planned != sum) {
      problem("wrong accounting: planned is " + std::to_string(planned) +
              ", passed + failed + skipped + error + incomplete is " + std::to_string(sum));
    }
    const auto states = h5::read_strings(h5::open_dataset(file_, "/plan/state"), "/plan/state", limits_);
    const auto rows = std::count(states.begin(), states.end(), "planned");
    if (rows != planned) {
      problem("wrong accounting: planned is " + std::to_string(planned) + ", and /plan has " +
              std::to_string(rows) + " planned cases");
    }
  }
};

/// What every reader refuses, and what no run writes.
void check_as_read(const InputFile& input, std::vector<std::string>& problems) {
  try {
    const Results results = load_own(input);
    for (const auto& texts : {doubtful_content(results), broken_samples(results)})
      for (const std::string& text : texts) add_problem(problems, text);
  } catch (const Error& error) {
    const std::string why = error.what(), name = input.path().string() + ": ";
    add_problem(problems, why.starts_with(name) ? why.substr(name.size()) : why);
  }
}

std::vector<std::string> problems_of(const InputFile& input) {
  const h5::Quiet quiet;
  std::vector<std::string> problems;
  const OpenFile file = open_results(input, check_hdf5(input));
  const std::size_t entities = table_rows(file.id, "/entities");
  try {
    FileChecker(file.id, file.limits, entities, problems).check();
    check_cases(file, entities, problems);
    if (problems.empty()) check_as_read(input, problems);
  } catch (const TooManyProblems&) {
    problems.emplace_back("and more: the check stops here");
  }
  return problems;
}

}  // namespace

std::vector<std::string> check_file(const Path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw_usage(path.string() + " is a directory: make a results file of it with 'assay recover'");
  }
  try {
    return made_confined<std::vector<std::string>>(
        {path.string()}, [](const Inputs& inputs) { return problems_of(inputs.front()); });
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage || error.kind() == ErrorKind::resource) throw;
    const std::string why = error.what(), name = path.string();
    throw Error(ErrorKind::data, one_line(why.starts_with(name) ? why : name + ": " + why));
  } catch (const std::exception& error) {
    throw Error(ErrorKind::data, one_line(path.string() + ": " + error.what()));
  }
}

}  // namespace assay::results
