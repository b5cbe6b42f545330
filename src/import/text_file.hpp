// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.hpp"

namespace assay::imports {

/// Where something was said, for messages.
struct TextPosition {
  std::string file;
  std::size_t line = 0;
};

/// Throws Error(data) "FILE:LINE: message", or "FILE: message" without a line. A long message is cut.
[[noreturn]] void fail(const TextPosition& place, const std::string& message);

/// The whole text of a file without a byte-order mark; empty where there is nothing but white space. Throws
/// Error(data) when it cannot be read, is compressed or holds NUL bytes.
std::string read_whole(const InputFile& file);

/// The text line by line, numbered from 1, without line ends.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool next(std::string_view& line);
  std::size_t number() const noexcept { return number_; }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

/// The number that `srun -l` puts before every line of a task, taken off; -1 where there is none.
std::int64_t take_label(std::string_view& line);

std::string_view trimmed(std::string_view text);
bool holds(std::string_view text, std::string_view part);
/// What is between blanks and tabs.
std::vector<std::string_view> words(std::string_view line);
/// A finite number, nothing else around it.
bool parse_number(std::string_view text, double& value);
bool parse_whole(std::string_view text, std::int64_t& value);

}  // namespace assay::imports
