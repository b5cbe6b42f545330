// SPDX-License-Identifier: Apache-2.0
#include "import/text_file.hpp"

#include <charconv>
#include <cmath>

#include "base/error.hpp"

namespace assay::imports {

void fail(const TextPosition& place, const std::string& message) {
  const std::string where = place.line == 0 ? place.file : place.file + ":" + std::to_string(place.line);
  throw Error(ErrorKind::data, where + ": " + message);
}

std::string read_whole(const InputFile& file) {
  const TextPosition place{file.path().string(), 0};
  if (!file.exists()) fail(place, "there is no such file");
  std::string out = file.text();
  if (out.empty()) fail(place, "is empty");
  if (out.find('\0') != std::string::npos) fail(place, "is no text");
  if (out.starts_with("\xef\xbb\xbf")) out.erase(0, 3);
  return out;
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
