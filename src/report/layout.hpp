// SPDX-License-Identifier: Apache-2.0
// Fixed-width text: what lines up, what is cut, what is coloured.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/report.hpp"

namespace assay::report {

/// Characters (UTF-8 code points) of a text.
std::size_t columns_of(std::string_view text);
/// Cut to `width` with "~" in the middle, so that both the beginning and the end of a name stay readable.
std::string fit(const std::string& text, std::size_t width);
std::string left(const std::string& text, std::size_t width);   ///< fitted and padded on the right
std::string right(const std::string& text, std::size_t width);  ///< fitted and padded on the left
/// Breaks `text` at spaces into lines of at most `width`; later lines start with `indent` spaces. Ends with a
/// newline.
std::string wrap(const std::string& text, std::size_t width, std::size_t indent);
/// The word of a state in its colour; the plain word without colour.
std::string paint(const std::string& state, const std::string& text, const Style& style);
/// Bytes that are no UTF-8 make a file unreadable to others: they become U+FFFD, as in the JSON output.
std::string valid_utf8(const std::string& text);
std::string percent_text(double fraction);
/// "1 node", "2 nodes".
std::string plural(std::size_t n, const std::string& word);

}  // namespace assay::report
