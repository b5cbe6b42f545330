// SPDX-License-Identifier: Apache-2.0
#include "report/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/json_io.hpp"

namespace assay::report {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

/// Byte position of the n-th character.
std::size_t position(std::string_view text, std::size_t n) {
  std::size_t i = 0;
  for (; i < text.size() && n > 0; --n) {
    ++i;
    while (i < text.size() && continues(text[i])) ++i;
  }
  return i;
}

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("+-.0123456789") == std::string_view::npos;
}

/// Where the word from `start` on ends. A number stays on the line of its unit.
std::size_t end_of_word(std::string_view text, std::size_t start, std::size_t most) {
  const auto next = [&](std::size_t from) { return std::min(text.find_first_of(" \n", from), text.size()); };
  const std::size_t end = next(start);
  if (end == text.size() || text[end] != ' ' || !is_number(text.substr(start, end - start))) return end;
  const std::size_t unit = next(end + 1);
  return unit - start <= most ? unit : end;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string fit(const std::string& text, std::size_t width) {
  const std::size_t length = columns_of(text);
  if (length <= width) return text;
  if (width < 3) return text.substr(0, position(text, width));
  const std::size_t head = (width - 1) / 2, tail = width - 1 - head;
  return text.substr(0, position(text, head)) + "~" + text.substr(position(text, length - tail));
}

std::string left(const std::string& text, std::size_t width) {
  const std::string cut = fit(text, width);
  return cut + std::string(width - columns_of(cut), ' ');
}

std::string right(const std::string& text, std::size_t width) {
  const std::string cut = fit(text, width);
  return std::string(width - columns_of(cut), ' ') + cut;
}

std::string wrap(const std::string& text, std::size_t width, std::size_t indent) {
  std::string out, line;
  const std::string margin(indent, ' ');
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = end_of_word(text, start, width - indent);
    std::string_view word = std::string_view(text).substr(start, end - start);
    std::size_t columns = columns_of(word);  // counted once: a word of a hostile file has ten million
    if (!line.empty() && line != margin && columns_of(line) + 1 + columns > width) {
      out += line + "\n";
      line = margin;
    }
    // A word longer than a line (a path, a list without spaces) is broken hard.
    for (; columns > width - indent; columns -= width - indent) {
      const std::size_t cut = position(word, width - indent);
      if (line != margin && !line.empty()) out += line + "\n";
      out.append(margin).append(word.substr(0, cut)).append("\n");
      word.remove_prefix(cut);
      line = margin;
    }
    line.append(line.empty() || line == margin ? "" : " ").append(word);
    start = end + 1;
  }
  return out + line + "\n";
}

std::string paint(const std::string& state, const std::string& text, const Style& style) {
  if (!style.color) return text;
  const char* code = state == "PASS"           ? "32"
                     : state == "FAIL"         ? "1;31"
                     : state == "WARN"         ? "33"
                     : state == "INCONCLUSIVE" ? "35"
                                               : "2";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string valid_utf8(const std::string& text) {
  return Json::parse(results::dump(Json(text))).get<std::string>();
}

std::string percent_text(double fraction) {
  if (!std::isfinite(fraction)) return "-";
  std::string text = fmt::format("{:.1f}%", 100.0 * fraction);
  return text == "-0.0%" ? text.substr(1) : text;
}

std::string plural(std::size_t n, const std::string& word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

}  // namespace assay::report
