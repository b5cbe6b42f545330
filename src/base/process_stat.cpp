// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.hpp"

#include <sstream>

#include "base/system.hpp"

namespace assay {

std::optional<ProcessStat> process_stat(const std::string& process, const std::string& proc) {
  const auto text = read_text(proc + "/" + process + "/stat");
  // The name in parentheses may hold blanks and parentheses.
  const std::size_t name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text->substr(name_end + 1));
  ProcessStat stat;
  fields >> stat.state >> stat.parent;  // fields 3 and 4
  std::string field;
  for (int n = 5; n <= 21; ++n) fields >> field;
  if (!(fields >> stat.start)) stat.start = 0;
  return stat;
}

}  // namespace assay
