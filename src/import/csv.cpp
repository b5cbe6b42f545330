// SPDX-License-Identifier: Apache-2.0
#include "import/csv.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "import/text_file.hpp"

namespace assay::imports {
namespace {

constexpr std::size_t most_fields = 10'000;

char separator_of(std::string_view header) {
  for (const char c : {',', ';', '\t'})
    if (header.find(c) != std::string_view::npos) return c;
  return ',';
}

}  // namespace

bool CsvReader::field(std::string& out) {
  out.clear();
  if (rest_.starts_with('"')) {
    rest_.remove_prefix(1);
    while (true) {
      const std::size_t quote = rest_.find('"');
      if (quote == std::string_view::npos) throw_usage("a quote is not closed");
      for (const char c : rest_.substr(0, quote)) following_ += c == '\n' ? 1 : 0;
      out.append(rest_.substr(0, quote));
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) break;
      out += '"';
      rest_.remove_prefix(1);
    }
    if (!rest_.empty() && rest_[0] != separator_ && rest_[0] != '\n' && rest_[0] != '\r')
      throw_usage("text after a closing quote");
  } else {
    // One search: a line may be as long as the file.
    const std::array ends{separator_, '\n'};
    const std::size_t end =
        std::min(rest_.find_first_of(std::string_view(ends.data(), ends.size())), rest_.size());
    out = trimmed(rest_.substr(0, end));
    rest_.remove_prefix(end);
  }
  if (rest_.starts_with("\r\n")) rest_.remove_prefix(1);
  if (rest_.empty()) return false;
  const bool more = rest_[0] == separator_;
  following_ += more ? 0 : 1;
  rest_.remove_prefix(1);
  return more;
}

bool CsvReader::next(std::vector<std::string>& fields) {
  while (!rest_.empty()) {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = trimmed(rest_.substr(0, end));
    if (!line.empty() && line[0] != '#') break;
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++following_;
  }
  if (rest_.empty()) return false;
  if (separator_ == 0) separator_ = separator_of(rest_.substr(0, rest_.find('\n')));
  line_ = following_;
  std::size_t n = 0;
  for (bool more = true; more; ++n) {
    if (n == most_fields) throw_usage("more than " + std::to_string(most_fields) + " fields");
    if (n == fields.size()) fields.emplace_back();
    more = field(fields[n]);
  }
  fields.resize(n);
  return true;
}

}  // namespace assay::imports
