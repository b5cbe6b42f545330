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
  auto skip_to = [&, next = 5](int n) mutable {
    for (; next < n; ++next) fields >> field;
    ++next;
  };
  std::uint64_t user = 0, system = 0;
  skip_to(14);
  fields >> user;
  skip_to(15);
  fields >> system;
  stat.cpu_ticks = user + system;
  skip_to(22);
  if (!(fields >> stat.start)) stat.start = 0;
  skip_to(39);
  if (!(fields >> stat.cpu)) stat.cpu = -1;
  return stat;
}

}  // namespace assay
