// SPDX-License-Identifier: Apache-2.0
#include "import/text_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.hpp"

namespace assay::imports {
namespace {

/// A message may quote a field of any length. UTF-8 is cut between characters.
std::string cut(const std::string& message) {
  constexpr std::size_t most = 400;
  if (message.size() <= most) return message;
  std::size_t end = most;
  while (end > most - 4 && (static_cast<unsigned char>(message[end]) & 0xc0U) == 0x80U) --end;
  return message.substr(0, end) + "...";
}

/// What the first bytes of a file say that is no plain text.
std::string other_format(std::string_view text) {
  constexpr std::array<std::string_view, 5> packed = {"\x1f\x8b", "PK\x03\x04", "BZh", "\x28\xb5\x2f\xfd",
                                                      "\xfd\x37zXZ"};
  if (std::ranges::any_of(packed, [&](std::string_view magic) { return text.starts_with(magic); }))
    return "is compressed: unpack it first";
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return "is UTF-16: write it as UTF-8";
  if (text.find('\0') != std::string_view::npos) return "is no text";
  const bool lines = text.find('\n') != std::string_view::npos;
  return !lines && holds(trimmed(text), "\r") ? "ends its lines with carriage returns alone" : "";
}

}  // namespace

void fail(const TextPosition& place, const std::string& message) {
  const std::string where = place.line == 0 ? place.file : place.file + ":" + std::to_string(place.line);
  throw Error(ErrorKind::data, where + ": " + cut(message));
}

std::string read_whole(const InputFile& file) {
  const TextPosition place{file.path().string(), 0};
  if (!file.exists()) fail(place, "there is no such file");
  std::string out = file.text();
  if (const std::string wrong = other_format(out); !wrong.empty()) fail(place, wrong);
  if (out.starts_with("\xef\xbb\xbf")) out.erase(0, 3);
  return trimmed(out).empty() ? "" : out;
}

bool Lines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const std::size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++number_;
  return true;
}

std::int64_t take_label(std::string_view& line) {
  const std::string_view text = trimmed(line);
  const auto colon = text.find(": ");
  std::int64_t label = -1;
  if (colon == std::string_view::npos || colon > 9 || !parse_whole(text.substr(0, colon), label) || label < 0)
    return -1;
  line = text.substr(colon + 2);
  return label;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view white = " \t\r\n";
  const auto first = text.find_first_not_of(white);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(white) - first + 1);
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    out.push_back(line.substr(at, end - at));
    at = end;
  }
  return out;
}

bool parse_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

bool parse_whole(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace assay::imports
