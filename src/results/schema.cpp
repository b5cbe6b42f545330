// SPDX-License-Identifier: Apache-2.0
#include "results/schema.hpp"

#include <algorithm>
#include <cstdlib>

#include "results/schema_model.hpp"

namespace assay::results {
namespace {

[[noreturn]] void unknown(const std::string& what) {
  throw Error(ErrorKind::internal, "the results schema has no " + what);
}

const Field& named(const std::vector<Field>& fields, const std::string& name, const std::string& where) {
  const auto at = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
  if (at == fields.end()) unknown(where + "/" + name);
  return *at;
}

/// Major and minor; 0 for what is no number.
std::pair<int, int> numbers_of(const std::string& version) {
  const auto dot = version.find('.');
  return {std::atoi(version.c_str()), dot == std::string::npos ? 0 : std::atoi(version.c_str() + dot + 1)};
}

Field field(const Json& json, const std::map<std::string, std::vector<Json>>& values) {
  Field out;
  out.name = json.at("name");
  out.type = h5::type_from(json.at("type"));
  out.unit = json.value("unit", "");
  out.refers = json.contains("refers");
  out.required = json.value("required", true);
  out.dims = json.value("dims", std::vector<std::string>{});
  if (json.contains("values")) out.values = &values.at(json.at("values"));
  return out;
}

}  // namespace

const Field& TableSpec::column(const std::string& name) const { return named(columns, name, path); }

Schema::Schema() {
  const Json json = Json::parse(schema_text());
  format = json.at("format");
  version = json.at("version");
  major = std::stoi(version);
  units = json.at("units").get<std::vector<std::string>>();
  reserved_names = json.at("reserved").get<std::vector<std::string>>();
  for (const auto& [name, list] : json.at("values").items()) values[name] = list.get<std::vector<Json>>();
  values["units"] = json.at("units").get<std::vector<Json>>();
  const auto fields = [&](const Json& list) {
    std::vector<Field> out;
    for (const Json& item : list) out.push_back(field(item, values));
    return out;
  };
  attributes = fields(json.at("attributes"));
  for (const Json& text : json.at("texts")) texts.push_back({text.at("path"), text.at("required")});
  for (const Json& table : json.at("tables")) {
    tables.push_back({table.at("path"), table.at("required"), fields(table.at("columns"))});
  }
  inventory = {json.at("inventory").at("path"), false, fields(json.at("inventory").at("columns"))};
  telemetry = {json.at("telemetry").at("path"), false, fields(json.at("telemetry").at("columns"))};
  const Json& of_case = json.at("case");
  case_attributes = fields(of_case.at("attributes"));
  case_datasets = fields(of_case.at("datasets"));
  metric_attributes = fields(of_case.at("metric").at("attributes"));
  array_attributes = fields(of_case.at("array").at("attributes"));
  verdict_attributes = fields(json.at("verdict").at("attributes"));
}

const Schema& Schema::get() {
  static const Schema schema;
  return schema;
}

const TableSpec& Schema::table(const std::string& path) const {
  const auto at =
      std::find_if(tables.begin(), tables.end(), [&](const TableSpec& t) { return t.path == path; });
  if (at == tables.end()) unknown("table " + path);
  return *at;
}

const Field& Schema::case_dataset(const std::string& name) const {
  return named(case_datasets, name, "case");
}

bool Schema::reserved(const std::string& name) const {
  return std::find(reserved_names.begin(), reserved_names.end(), name) != reserved_names.end();
}

bool Schema::reads(const std::string& other) const {
  const int its = numbers_of(other).first;
  return its >= 1 && its <= major;
}

bool Schema::is_later(const std::string& other) const { return numbers_of(other) > numbers_of(version); }

bool is_unit(const std::string& unit) {
  const auto& units = Schema::get().units;
  return std::find(units.begin(), units.end(), unit) != units.end();
}

std::vector<std::string> allowed_values(const std::string& name) {
  const auto& values = Schema::get().values;
  const auto at = values.find(name);
  if (at == values.end()) unknown("list " + name);
  std::vector<std::string> out;
  for (const Json& value : at->second) out.push_back(value.get<std::string>());
  return out;
}

}  // namespace assay::results
