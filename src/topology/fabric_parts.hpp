// SPDX-License-Identifier: Apache-2.0
// What the readers of topology files share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/fabric.hpp"

namespace assay::fabric {

/// Lines of a text with their numbers, without line ends.
struct Line {
  std::size_t number = 0;
  std::string_view text;
};
std::vector<Line> lines_of(std::string_view text);
std::string_view trimmed(std::string_view text);
std::string lower(std::string_view text);

/// Throws Error(usage) "NAME:LINE: WHAT".
[[noreturn]] void wrong(const std::string& name, std::size_t line, const std::string& what);
/// A name as it may stand in results and messages: printable, without blanks, not too long. Throws as above.
std::string checked_name(std::string_view text, const char* what, const std::string& file, std::size_t line);

Fabric read_csv(const std::vector<Line>& lines, const std::string& name);
Fabric read_slurm(const std::vector<Line>& lines, const std::string& name);
Fabric read_ibnetdiscover(const std::vector<Line>& lines, const std::string& name);

}  // namespace assay::fabric
