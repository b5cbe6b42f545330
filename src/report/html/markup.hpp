// SPDX-License-Identifier: Apache-2.0
// HTML that is made of texts: whatever comes from a file is escaped, and only what is written here is markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

/// Text for content and for attributes in double quotes. Control characters and what is no UTF-8 become
/// U+FFFD.
std::string escaped(std::string_view text);

/// A cell of a table: text, or markup that was made here.
struct Cell {
  std::string html;
  const char* style = "";  ///< class of the cell: "num", "wide", ...
};
Cell cell(std::string_view text, const char* style = "");
Cell number_cell(std::string_view text);
Cell markup_cell(std::string html, const char* style = "");

struct Column {
  const char* title;
  const char* style = "";
};
/// A table in a frame that scrolls by itself. `caption` is read out and shown; rows beyond `shown` are folded
/// away.
std::string table(const std::string& caption, const std::vector<Column>& columns,
                  const std::vector<std::vector<Cell>>& rows, std::size_t shown = 200);

/// The word of a state with its shape, so that colour is never all that tells.
std::string state_chip(std::string_view state);
/// A class name for a state: "pass", "fail", ...
const char* state_class(std::string_view state);
std::string none(std::string_view why);  ///< why a section has nothing to show

/// At most so many characters: the end of a longer text, after an ellipsis.
std::string shortened(const std::string& text, std::size_t most);
/// -3.2 % and the like; "-" for NaN.
std::string signed_percent(double fraction);
/// The quantity, or "-" for NaN.
std::string quantity(double value, std::string_view unit);

/// A node, device or NIC as a link to where the page tells of it.
std::string part_link(std::string_view name);
/// What a fragment may hold of a name: all but letters, digits and . _ - / : > is escaped by %.
std::string fragment(std::string_view name);

}  // namespace assay::report
