// SPDX-License-Identifier: Apache-2.0
#include "results/table.hpp"

#include <algorithm>
#include <numeric>

#include "results/json_io.hpp"
#include "results/text.hpp"

namespace assay::results {

TableWriter::TableWriter(hid_t parent, const TableSpec& spec, const std::string& name, std::size_t rows,
                         bool scales)
    : spec_(spec),
      rows_(rows),
      scales_(scales),
      group_(h5::has_link(parent, name) ? h5::open_group(parent, name) : h5::create_group(parent, name)) {
  std::vector<std::int32_t> numbers(rows);
  std::iota(numbers.begin(), numbers.end(), 0);
  h5::Id row = h5::create_dataset(group_, "row", h5::Type::int32, {rows}, numbers.data(), scales_);
  if (scales_) row_ = std::make_shared<h5::Scale>(std::move(row), "row");
}

const Field& TableWriter::expect(const std::string& column, h5::Type type) {
  const Field& field = spec_.column(column);
  if (field.type != type) {
    throw Error(ErrorKind::internal, "column " + spec_.path + "/" + column + " is " +
                                         h5::to_string(field.type) + " in the schema, not " +
                                         h5::to_string(type));
  }
  written_.insert(column);
  return field;
}

void TableWriter::attach(hid_t dataset) {
  if (scales_) h5::Scale::attach(dataset, {row_});
}

void TableWriter::strings(const std::string& column,
                          const std::function<std::string_view(std::size_t)>& text) {
  expect(column, h5::Type::string);
  attach(h5::create_strings(group_, column, rows_, text));
}

void TableWriter::numbers(const std::string& column, h5::Type type, const void* values) {
  const Field& field = expect(column, type);
  const h5::Id set = h5::create_dataset(group_, column, type, {rows_}, values, scales_);
  if (!field.unit.empty()) h5::put(set, "unit", field.unit);
  attach(set);
}

void TableWriter::extra_strings(const std::string& column, const std::vector<std::string>& values) {
  attach(h5::create_strings(group_, column, values.size(),
                            [&](std::size_t i) -> std::string_view { return values[i]; }));
}

void TableWriter::extra_numbers(const std::string& column, const std::string& unit,
                                const std::vector<double>& values) {
  const h5::Id set = h5::create_dataset(group_, column, h5::Type::float64, {rows_}, values.data(), scales_);
  h5::put(set, "unit", unit);
  attach(set);
}

void TableWriter::finish() {
  for (const Field& field : spec_.columns) {
    if (field.required && !written_.contains(field.name)) {
      throw Error(ErrorKind::internal,
                  "column " + spec_.path + "/" + field.name + " of the schema was not written");
    }
  }
  if (scales_) row_->finish();
}

TableReader::TableReader(hid_t file, const std::string& path, const h5::Limits& limits)
    : path_(path), limits_(limits), group_(h5::open_group(file, path)) {
  const auto dims = h5::check_dataset(open("row"), path_ + "/row", h5::Type::int32, limits_);
  if (dims.size() != 1) throw Error(ErrorKind::data, "dataset " + path_ + "/row is not one-dimensional");
  rows_ = dims[0];
}

h5::Id TableReader::open(const std::string& column) const {
  if (!h5::is_dataset(group_, column))
    throw Error(ErrorKind::data, "missing dataset " + path_ + "/" + column);
  return h5::open_dataset(group_, column);
}

void TableReader::strings(const std::string& column,
                          const std::function<void(std::size_t, std::string_view)>& each) const {
  const h5::Id set = open(column);
  const std::string name = path_ + "/" + column;
  if (h5::shape(set) != std::vector<std::size_t>{rows_})
    throw Error(ErrorKind::data, "dataset " + name + " has another length than row");
  h5::read_strings(set, name, limits_, each);
}

std::vector<std::string> TableReader::strings(const std::string& column) const {
  std::vector<std::string> out;
  strings(column, [&](std::size_t, std::string_view text) { out.emplace_back(text); });
  return out;
}

void TableReader::numbers(const std::string& column, h5::Type type, void* values) const {
  const h5::Id set = open(column);
  const std::string name = path_ + "/" + column;
  if (h5::check_dataset(set, name, type, limits_) != std::vector<std::size_t>{rows_}) {
    throw Error(ErrorKind::data, "dataset " + name + " has another length than row");
  }
  if (rows_ > 0) h5::read(set, name, type, values);
}

std::vector<std::string> TableReader::columns() const {
  std::vector<std::string> names = h5::children(group_);
  std::erase(names, "row");
  return names;
}

std::string join_members(const std::vector<std::string>& members) {
  Json list = Json::array();
  for (const std::string& member : members) list.push_back(clean_text(member));
  return list.dump();
}

std::vector<std::string> split_members(const std::string& text) {
  return parse(text).get<std::vector<std::string>>();
}

}  // namespace assay::results
