// SPDX-License-Identifier: Apache-2.0
#include "report/html/markup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "report/layout.hpp"

namespace assay::report {

std::string escaped(std::string_view text) {
  const std::string valid = valid_utf8(std::string(text));
  std::string out;
  out.reserve(valid.size());
  for (const char c : valid) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\n': out += ' '; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          out += "\xEF\xBF\xBD";
        else
          out += c;
    }
  }
  return out;
}

Cell cell(std::string_view text, const char* style) { return {escaped(text), style}; }
Cell number_cell(std::string_view text) { return {escaped(text), "num"}; }
Cell markup_cell(std::string html, const char* style) { return {std::move(html), style}; }

namespace {

std::string with_class(const char* tag, const char* style) {
  return *style == '\0' ? fmt::format("<{}>", tag) : fmt::format("<{} class=\"{}\">", tag, style);
}

std::string body_of(const std::vector<std::vector<Cell>>& rows, std::size_t from, std::size_t to) {
  std::string out = "<tbody>";
  for (std::size_t r = from; r < to; ++r) {
    out += "<tr>";
    for (const Cell& c : rows[r]) out += with_class("td", c.style) + c.html + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody>";
}

}  // namespace

std::string table(const std::string& caption, const std::vector<Column>& columns,
                  const std::vector<std::vector<Cell>>& rows, std::size_t shown) {
  std::string head = "<thead><tr>";
  for (const Column& c : columns) {
    const std::string tag =
        *c.style == '\0' ? "<th scope=\"col\">" : fmt::format("<th scope=\"col\" class=\"{}\">", c.style);
    head += tag + escaped(c.title) + "</th>";
  }
  head += "</tr></thead>";
  const std::size_t first = std::min(shown, rows.size());
  // Focus is needed to scroll by keyboard.
  std::string out = "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" + escaped(caption) +
                    "\"><table><caption>" + escaped(caption) + "</caption>" + head + body_of(rows, 0, first) +
                    "</table></div>\n";
  if (first == rows.size()) return out;
  return out +
         fmt::format(
             "<details class=\"more\"><summary>{} more rows</summary><div class=\"scroll\" role=\"region\" "
             "tabindex=\"0\"><table>",
             rows.size() - first) +
         head + body_of(rows, first, rows.size()) + "</table></div></details>\n";
}

const char* state_class(std::string_view state) {
  if (state == "PASS" || state == "yes" || state == "FASTER" || state == "SAME") return "pass";
  if (state == "WARN" || state == "open") return "warn";
  if (state == "FAIL" || state == "no" || state == "SLOWER") return "fail";
  if (state == "INCONCLUSIVE" || state == "absent" || state == "AMBIGUOUS") return "inconclusive";
  return "none";
}

std::string state_chip(std::string_view state) {
  const std::string_view name = state_class(state);
  const char* shape = name == "pass"           ? "✓"
                      : name == "warn"         ? "!"
                      : name == "fail"         ? "✕"
                      : name == "inconclusive" ? "?"
                                               : "–";
  return fmt::format("<span class=\"chip {}\"><span aria-hidden=\"true\">{}</span> {}</span>", name, shape,
                     escaped(state));
}

std::string none(std::string_view why) { return "<p class=\"nothing\">" + escaped(why) + "</p>\n"; }

std::string signed_percent(double fraction) {
  if (std::isnan(fraction)) return "-";
  const double percent = 100 * fraction, size = std::abs(percent);
  return fmt::format("{}{:.{}f} %",
                     size < 0.005  ? ""
                     : percent < 0 ? "\u2212"
                                   : "+",
                     size,
                     size < 1     ? 2
                     : size < 100 ? 1
                                  : 0);
}

std::string shortened(const std::string& text, std::size_t most) {
  std::size_t length = 0;
  for (const char c : text) length += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  if (length <= most) return text;
  std::size_t from = text.size();
  for (std::size_t kept = 1; kept < most && from > 0;)
    if ((static_cast<unsigned char>(text[--from]) & 0xC0U) != 0x80U) ++kept;
  return "\u2026" + text.substr(from);
}

std::string quantity(double value, std::string_view unit) {
  return std::isnan(value) ? "-" : format_quantity(value, unit);
}

std::string fragment(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("._-/:").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

std::string part_link(std::string_view name) {
  if (name.empty() || name == "cluster") return escaped(name);
  const std::string node(name.substr(0, name.find_first_of("/>")));
  return fmt::format("<a href=\"#node/{}\">{}</a>", fragment(node), escaped(name));
}

}  // namespace assay::report
