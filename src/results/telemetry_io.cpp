// SPDX-License-Identifier: Apache-2.0
#include "results/telemetry_io.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "results/schema.hpp"
#include "results/table.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

/// node07/gpu3 -> node07.gpu3: a name without levels.
std::string table_name(const TelemetryTable& table, const std::vector<Entity>* entities,
                       std::set<std::string>& used) {
  const auto row = static_cast<std::size_t>(table.entity);
  std::string name = entities != nullptr && row < entities->size() ? clean_text((*entities)[row].name)
                                                                   : std::to_string(table.entity);
  std::replace(name.begin(), name.end(), '/', '.');
  std::size_t most = std::min<std::size_t>(name.size(), 60);
  // Not within a character of several bytes.
  while (most < name.size() && (static_cast<unsigned char>(name[most]) & 0xc0U) == 0x80) --most;
  const std::string begin = name.substr(0, most);
  for (std::size_t number = used.size(); !is_column_name(name) || !used.insert(name).second; ++number)
    name = begin + "~" + std::to_string(number);
  return name;
}

}  // namespace

void append(TelemetryTable& all, TelemetryTable&& one) {
  const std::size_t before = all.t.size(), after = before + one.t.size();
  all.t.insert(all.t.end(), one.t.begin(), one.t.end());
  for (auto& [name, values] : one.number) {
    auto& column = all.number[name];
    column.resize(before, not_taken);
    column.insert(column.end(), values.begin(), values.end());
    all.unit.emplace(name, one.unit[name]);
  }
  for (auto& [name, values] : all.number) values.resize(after, not_taken);
}

std::string telemetry_problem(const TelemetryTable& table, std::size_t entities) {
  if (table.entity < 0 || static_cast<std::size_t>(table.entity) >= entities)
    return "telemetry refers to no row of /entities";
  for (const auto& [name, values] : table.number) {
    if (!is_column_name(name) || name == "t" || name == "row")
      return "telemetry cannot have a column \"" + name + "\"";
    if (values.size() != table.t.size()) return "telemetry " + name + " has another length than t";
    const auto unit = table.unit.find(name);
    if (unit == table.unit.end() || !is_unit(unit->second))
      return "telemetry " + name + " has no unit of the schema";
  }
  return "";
}

void write_telemetry(hid_t file, const std::vector<TelemetryTable>& tables, const std::vector<FlagRow>& flags,
                     const std::vector<Entity>* entities) {
  if (tables.empty() && flags.empty()) return;
  const bool scales = entities != nullptr;
  const TableSpec& spec = Schema::get().telemetry;
  const h5::Id group = h5::create_group(file, spec.path);
  std::set<std::string> used{telemetry_flags};
  for (const TelemetryTable& table : tables) {
    const std::string name = table_name(table, entities, used);
    TableWriter writer(group, spec, name, table.t.size(), scales);
    writer.numbers("t", h5::Type::float64, table.t.data());
    for (const auto& [column, values] : table.number)
      writer.extra_numbers(column, table.unit.at(column), values);
    writer.finish();
    h5::put(h5::open_group(group, name), "entity", table.entity);
  }
  write_table(file, spec.path + "/" + telemetry_flags, flags, scales);
}

void read_telemetry(hid_t file, const h5::Limits& limits, std::vector<TelemetryTable>& tables,
                    std::vector<FlagRow>& flags) {
  const std::string& top = Schema::get().telemetry.path;
  if (!h5::is_group(file, top)) return;
  for (const std::string& name : h5::children(h5::open_group(file, top))) {
    const std::string path = top + "/" + name;
    if (name == telemetry_flags) {
      flags = read_table<FlagRow>(file, path, limits);
      continue;
    }
    const TableReader reader(file, path, limits);
    TelemetryTable table;
    h5::get(h5::open_group(file, path), "entity", h5::Type::int32, &table.entity);
    table.t.resize(reader.rows());
    reader.numbers("t", h5::Type::float64, table.t.data());
    for (const std::string& column : reader.columns()) {
      const h5::Id set = reader.open(column);
      if (column == "t" ||
          h5::stored_type(h5::Id(h5::check(H5Dget_type(set), column))) != h5::Stored::float64)
        continue;
      if (!h5::has_attribute(set, "unit"))
        throw Error(ErrorKind::data, "missing unit of " + path + "/" + column);
      table.number[column].resize(reader.rows());
      reader.numbers(column, h5::Type::float64, table.number[column].data());
      table.unit[column] = h5::get_string(set, "unit", limits);
    }
    tables.push_back(std::move(table));
  }
  std::stable_sort(tables.begin(), tables.end(),
                   [](const auto& a, const auto& b) { return a.entity < b.entity; });
}

}  // namespace assay::results
