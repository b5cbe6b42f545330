// SPDX-License-Identifier: Apache-2.0
#include "results/telemetry_io.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "results/schema.hpp"
#include "results/table.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

TelemetryTable read_samples(hid_t file, const h5::Limits& limits, const std::string& path) {
  const TableReader reader(file, path, limits);
  TelemetryTable table;
  table.entity.resize(reader.rows());
  table.t.resize(reader.rows());
  if (is_of_one_entity(file, path)) {
    std::int32_t row = -1;
    h5::get(h5::open_group(file, path), "entity", h5::Type::int32, &row);
    std::ranges::fill(table.entity, row);
  } else {
    reader.numbers("entity", h5::Type::int32, table.entity.data());
  }
  reader.numbers("t", h5::Type::float64, table.t.data());
  for (const std::string& column : reader.columns()) {
    const h5::Id set = reader.open(column);
    if (column == "t" || h5::stored_type(h5::Id(h5::check(H5Dget_type(set), column))) != h5::Stored::float64)
      continue;
    if (!h5::has_attribute(set, "unit"))
      throw Error(ErrorKind::data, "missing unit of " + path + "/" + column);
    table.number[column].resize(reader.rows());
    reader.numbers(column, h5::Type::float64, table.number[column].data());
    table.unit[column] = h5::get_string(set, "unit", limits);
  }
  return table;
}

}  // namespace

void TelemetryTable::append(TelemetryTable&& more) {
  const std::size_t before = t.size(), after = before + more.t.size();
  entity.insert(entity.end(), more.entity.begin(), more.entity.end());
  t.insert(t.end(), more.t.begin(), more.t.end());
  for (auto& [name, values] : more.number) {
    auto& column = number[name];
    column.resize(before, not_taken);
    column.insert(column.end(), values.begin(), values.end());
    unit.emplace(name, more.unit[name]);
  }
  for (auto& [name, values] : number) values.resize(after, not_taken);
}

std::string telemetry_problem(const TelemetryTable& table, std::size_t entities) {
  if (std::ranges::any_of(table.entity, [&](std::int32_t row) {
        return row < 0 || static_cast<std::size_t>(row) >= entities;
      }))
    return "telemetry refers to no row of /entities";
  if (table.entity.size() != table.t.size()) return "telemetry entity has another length than t";
  for (const auto& [name, values] : table.number) {
    if (!is_column_name(name) || name == "t" || name == "row" || name == "entity")
      return "telemetry cannot have a column \"" + name + "\"";
    if (values.size() != table.t.size()) return "telemetry " + name + " has another length than t";
    const auto unit = table.unit.find(name);
    if (unit == table.unit.end() || !is_unit(unit->second))
      return "telemetry " + name + " has no unit of the schema";
  }
  return "";
}

void write_telemetry(hid_t file, const TelemetryTable& table, const std::vector<FlagRow>& flags,
                     bool scales) {
  if (table.t.empty() && flags.empty()) return;
  const TableSpec& spec = Schema::get().telemetry;
  h5::create_group(file, telemetry_group);
  TableWriter writer(file, spec, spec.path, table.t.size(), scales);
  writer.numbers("t", h5::Type::float64, table.t.data());
  writer.numbers("entity", h5::Type::int32, table.entity.data());
  for (const auto& [column, values] : table.number)
    writer.extra_numbers(column, table.unit.at(column), values);
  writer.finish();
  write_table(file, telemetry_flags, flags, scales);
}

bool is_of_one_entity(hid_t file, const std::string& path) {
  return h5::has_attribute(h5::open_group(file, path), "entity");
}

void read_telemetry(hid_t file, const h5::Limits& limits, TelemetryTable& table,
                    std::vector<FlagRow>& flags) {
  if (!h5::is_group(file, telemetry_group)) return;
  for (const std::string& name : h5::children(h5::open_group(file, telemetry_group))) {
    const std::string path = std::string(telemetry_group) + "/" + name;
    if (path == telemetry_flags)
      flags = read_table<FlagRow>(file, path, limits);
    else if (path == Schema::get().telemetry.path || is_of_one_entity(file, path))
      table.append(read_samples(file, limits, path));
  }
}

}  // namespace assay::results
