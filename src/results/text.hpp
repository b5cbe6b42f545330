// SPDX-License-Identifier: Apache-2.0
// Text as the results file can hold it. For src/results and what reads texts of others into results.
#pragma once

#include <string>
#include <string_view>

namespace assay::results {

/// The same text if it is UTF-8 without NUL; otherwise with NULs dropped and wrong bytes replaced by U+FFFD.
std::string clean_text(std::string_view text);
/// Whether `printable` leaves the text as it is for being all ASCII without control characters.
bool is_plain(std::string_view text) noexcept;
/// The text without control characters, which could act on a terminal: they become spaces, unless `lines`
/// keeps line ends and tabs. Bytes that are not UTF-8 become U+FFFD.
std::string printable(std::string text, bool lines);
/// `printable` without line ends.
std::string one_line(std::string text);
/// [a-z0-9._-]{1,80}, and neither "." nor "..".
bool is_case_name(std::string_view name) noexcept;
/// A name for a column or metric: not empty, no slash, no NUL, not "." and at most 80 characters.
bool is_column_name(std::string_view name) noexcept;

}  // namespace assay::results
