// SPDX-License-Identifier: Apache-2.0
// schema.json as values: writer, reader and checker take names, types and units from here. Private to
// src/results.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "results/h5.hpp"

namespace assay::results {

/// An attribute, a column of a table or a dataset of a case.
struct Field {
  std::string name;
  h5::Type type = h5::Type::string;
  std::string unit;
  const std::vector<Json>* values = nullptr;  ///< allowed ones; null = any
  bool refers = false;                        ///< to rows of /entities
  bool required = true;
  std::vector<std::string> dims;  ///< of a dataset of a case
};

struct TableSpec {
  std::string path;
  bool required = true;
  std::vector<Field> columns;
  /// Throws Error(internal) when the schema has no such column.
  const Field& column(const std::string& name) const;
};

struct TextSpec {
  std::string path;
  bool required = true;
};

class Schema {
 public:
  static const Schema& get();
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  const TableSpec& table(const std::string& path) const;     ///< throws Error(internal)
  const Field& case_dataset(const std::string& name) const;  ///< throws Error(internal)
  bool reserved(const std::string& name) const;
  bool reads(const std::string& other) const;     ///< of this major version or an earlier one
  bool is_later(const std::string& other) const;  ///< than that of the schema: may hold more

  std::string format, version;
  int major = 0;
  std::vector<std::string> units, reserved_names;
  std::map<std::string, std::vector<Json>> values;
  std::vector<Field> attributes, case_attributes, case_datasets, metric_attributes, array_attributes,
      verdict_attributes;
  std::vector<TextSpec> texts;
  std::vector<TableSpec> tables;
  TableSpec inventory;
  TableSpec telemetry;  ///< of one entity; with an attribute `entity`

 private:
  Schema();
};

}  // namespace assay::results
