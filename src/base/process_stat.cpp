// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <sstream>

#include "base/system.hpp"

namespace assay {
namespace {

/// The name of the program that a loader was told to start, as that of the bundle is: it is no option, nor
/// the value of one. `words` end with a zero each.
std::string loaded_program(const std::string& words) {
  std::istringstream in(words);
  std::string word;
  std::getline(in, word, '\0');  // the loader
  while (std::getline(in, word, '\0')) {
    if (!word.starts_with("--")) return word.substr(word.rfind('/') + 1);
    if (word == "--library-path") std::getline(in, word, '\0');
  }
  return "";
}

}  // namespace

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

std::optional<double> process_age_s(const std::string& process) {
  const auto stat = process_stat(process);
  timespec now{};
  if (!stat || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  const double started_s = static_cast<double>(stat->start) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return std::max(0.0, static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - started_s);
}

double process_start_s(std::optional<double> age_s, int ranks) noexcept {
  const double most_s = 10 + 0.02 * std::max(ranks, 0);
  return age_s && *age_s <= most_s ? *age_s : 0;
}

std::string launcher_parent(bool daemons, const std::string& proc) {
  static constexpr std::array names = {"mpirun", "mpiexec", "orterun", "prterun", "orted", "prted"};
  constexpr std::size_t launchers = 4;
  const std::string parent = proc + "/" + std::to_string(getppid());
  std::string name = read_text(parent + "/comm").value_or("");
  if (name.starts_with("ld-linux") || name.starts_with("ld64"))
    name = loaded_program(read_text(parent + "/cmdline").value_or(""));
  const auto end = names.begin() + (daemons ? names.size() : launchers);
  return std::find(names.begin(), end, name) != end ? name : std::string();
}

}  // namespace assay
