// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::imports {

/// Comma-separated values (RFC 4180: quotes, doubled quotes, line breaks inside quotes), record by record.
/// Semicolons or tabs separate where the first record has them and no comma. Empty lines and lines that begin
/// with # are left out.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : rest_(text) {}
  /// The fields of the next record. Returns false at the end. Throws Error(usage) for a quote that is wrong.
  bool next(std::vector<std::string>& fields);
  std::size_t line() const noexcept { return line_; }  ///< on which the record began

 private:
  bool field(std::string& out);  ///< true when another field follows
  std::string_view rest_;
  char separator_ = 0;  ///< not known before the first record
  std::size_t line_ = 0, following_ = 1;
};

}  // namespace assay::imports
