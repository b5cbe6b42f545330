// SPDX-License-Identifier: Apache-2.0
#include "results/text.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace assay::results {
namespace {

/// Length of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none (Unicode 15, table
/// 3-7).
std::size_t sequence(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto tail = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned b = byte(0);
  if (b < 0x80) return 1;
  if (b >= 0xc2 && b <= 0xdf) return tail(1) ? 2 : 0;
  if (b >= 0xe0 && b <= 0xef)
    return tail(1, b == 0xe0 ? 0xa0 : 0x80, b == 0xed ? 0x9f : 0xbf) && tail(2) ? 3 : 0;
  if (b >= 0xf0 && b <= 0xf4) {
    return tail(1, b == 0xf0 ? 0x90 : 0x80, b == 0xf4 ? 0x8f : 0xbf) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string clean_text(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return c > 0 && c < 0x7f; }))
    return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t n = sequence(text);
    if (n == 0) {
      out += "\xef\xbf\xbd";
    } else if (text[0] != '\0') {
      out += text.substr(0, n);
    }
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

bool is_plain(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::string printable(std::string text, bool lines) {
  if (is_plain(text)) return text;
  text = clean_text(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool line = lines && (c == '\n' || c == '\t');
    // U+0080 to U+009F are control characters too
    const bool second = c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (second) text[i++] = ' ';
    if (second || ((c < 0x20 || c == 0x7f) && !line)) text[i] = ' ';
  }
  return text;
}

std::string one_line(std::string text) { return printable(std::move(text), false); }

bool is_case_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > 80 || name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

bool is_column_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 80 && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos &&
         clean_text(name) == name;
}

}  // namespace assay::results
