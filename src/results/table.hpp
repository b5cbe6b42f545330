// SPDX-License-Identifier: Apache-2.0
// Tables: groups of equally long columns on one scale `row`, as the schema declares them. Private to
// src/results.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "results/h5.hpp"
#include "results/rows.hpp"
#include "results/schema_model.hpp"

namespace assay::results {

class TableWriter {
 public:
  /// Fills the group `name`, which is made if it is not there. `scales` is false in the file of a single
  /// case: scales are attached once, after the merge.
  TableWriter(hid_t parent, const TableSpec& spec, const std::string& name, std::size_t rows, bool scales);

  void strings(const std::string& column, const std::function<std::string_view(std::size_t)>& text);
  void numbers(const std::string& column, h5::Type type, const void* values);
  /// A column that the schema leaves open (inventory).
  void extra_strings(const std::string& column, const std::vector<std::string>& values);
  void extra_numbers(const std::string& column, const std::string& unit, const std::vector<double>& values);
  /// Throws Error(internal) when a column of the schema was not written.
  void finish();

 private:
  const Field& expect(const std::string& column, h5::Type type);
  void attach(hid_t dataset);

  const TableSpec& spec_;
  std::size_t rows_;
  bool scales_;
  h5::Id group_;
  std::shared_ptr<h5::Scale> row_;
  std::set<std::string> written_;
};

class TableReader {
 public:
  TableReader(hid_t file, const std::string& path, const h5::Limits& limits);
  std::size_t rows() const noexcept { return rows_; }
  bool has(const std::string& column) const { return h5::has_link(group_, column); }
  std::vector<std::string> strings(const std::string& column) const;
  void strings(const std::string& column,
               const std::function<void(std::size_t, std::string_view)>& each) const;
  void numbers(const std::string& column, h5::Type type, void* values) const;
  h5::Id open(const std::string& column) const;
  std::vector<std::string> columns() const;  ///< without `row`

 private:
  std::string path_;
  h5::Limits limits_;
  h5::Id group_;
  std::size_t rows_ = 0;
};

std::string join_members(const std::vector<std::string>& members);
std::vector<std::string> split_members(const std::string& text);

namespace detail {
template <class T>
constexpr h5::Type stored_as() {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::int32_t>) {
    return h5::Type::int32;
  } else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::optional<std::int64_t>>) {
    return h5::Type::int64;
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return h5::Type::uint64;
  } else {
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>);
    return h5::Type::float64;
  }
}
template <h5::Type type>
using Number = std::conditional_t<
    type == h5::Type::int32, std::int32_t,
    std::conditional_t<type == h5::Type::int64, std::int64_t,
                       std::conditional_t<type == h5::Type::uint64, std::uint64_t, double>>>;

template <class T>
Number<stored_as<T>()> to_number(const T& value) {
  if constexpr (std::is_same_v<T, std::optional<std::int64_t>>) {
    return value.value_or(-1);
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    return value.value_or(not_taken);
  } else {
    return value;
  }
}
template <class T>
T from_number(Number<stored_as<T>()> number) {
  if constexpr (std::is_same_v<T, std::optional<std::int64_t>>) {
    return number == -1 ? T() : T(number);
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    return std::isnan(number) ? T() : T(number);
  } else {
    return static_cast<T>(number);
  }
}
}  // namespace detail

/// Writes one column per described member of Row.
template <class Row>
void write_columns(TableWriter& table, const std::vector<Row>& rows) {
  describe(Of<Row>{}, [&]<class T>(const char* name, T Row::*member) {
    if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      std::string joined;
      table.strings(name, [&](std::size_t i) -> std::string_view {
        joined = join_members(rows[i].*member);
        return joined;
      });
    } else if constexpr (std::is_convertible_v<T, std::string>) {
      table.strings(name, [&](std::size_t i) -> std::string_view {
        const std::string& text = rows[i].*member;
        return text;
      });
    } else {
      std::vector<detail::Number<detail::stored_as<T>()>> values;
      values.reserve(rows.size());
      for (const Row& row : rows) values.push_back(detail::to_number<T>(row.*member));
      table.numbers(name, detail::stored_as<T>(), values.data());
    }
  });
}

template <class Row>
void write_table(hid_t file, const std::string& path, const std::vector<Row>& rows, bool scales) {
  TableWriter table(file, Schema::get().table(path), path, rows.size(), scales);
  write_columns(table, rows);
  if constexpr (std::is_same_v<Row, Miscompare>) {
    std::vector<std::uint64_t> bits;
    for (const Row& row : rows) bits.push_back(row.expected ^ row.actual);
    table.numbers("xor", h5::Type::uint64, bits.data());
  }
  table.finish();
}

template <class Row>
std::vector<Row> read_table(hid_t file, const std::string& path, const h5::Limits& limits) {
  const TableReader table(file, path, limits);
  const TableSpec& spec = Schema::get().table(path);
  std::vector<Row> rows(table.rows());
  describe(Of<Row>{}, [&]<class T>(const char* name, T Row::*member) {
    // A column that came with a later minor version: the rows keep what they are made with.
    if (!spec.column(name).required && !table.has(name)) return;
    if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      table.strings(name, [&](std::size_t i, std::string_view text) {
        rows[i].*member = split_members(std::string(text));
      });
    } else if constexpr (std::is_convertible_v<T, std::string>) {
      // Rows that follow each other often have the same text.
      table.strings(name, [&](std::size_t i, std::string_view text) {
        if (i > 0 && rows[i - 1].*member == text)
          rows[i].*member = rows[i - 1].*member;
        else
          rows[i].*member = T(text);
      });
    } else {
      std::vector<detail::Number<detail::stored_as<T>()>> values(rows.size());
      table.numbers(name, detail::stored_as<T>(), values.data());
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i].*member = detail::from_number<T>(values[i]);
    }
  });
  return rows;
}

/// Attributes of an object from the described members of one row, and back.
template <class Row>
void put_attributes(hid_t object, const Row& row) {
  describe(Of<Row>{}, [&]<class T>(const char* name, T Row::*member) {
    if constexpr (std::is_same_v<T, std::string>) {
      h5::put(object, name, row.*member);
    } else {
      h5::put(object, name, detail::to_number<T>(row.*member));
    }
  });
}

template <class Row>
void get_attributes(hid_t object, Row& row, const h5::Limits& limits) {
  describe(Of<Row>{}, [&]<class T>(const char* name, T Row::*member) {
    if constexpr (std::is_same_v<T, std::string>) {
      row.*member = h5::get_string(object, name, limits);
    } else {
      detail::Number<detail::stored_as<T>()> number{};
      h5::get(object, name, detail::stored_as<T>(), &number);
      row.*member = detail::from_number<T>(number);
    }
  });
}

}  // namespace assay::results
