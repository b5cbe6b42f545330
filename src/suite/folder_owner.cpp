// SPDX-License-Identifier: Apache-2.0
#include "suite/folder_owner.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ctime>
#include <vector>

#include "base/process_stat.hpp"
#include "base/random.hpp"
#include "base/system.hpp"

namespace assay {
namespace {

std::string boot_id() {
  const std::string text = read_text("/proc/sys/kernel/random/boot_id").value_or("");
  return fmt::format("{:08x}", static_cast<std::uint32_t>(hash_text(text)));
}

std::string pid_namespace() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? fmt::format("{:x}", info.st_ino) : "0";
}

/// When a process that has not ended began, in clock ticks since boot; 0 where there is none.
std::uint64_t start_of(const std::string& process) {
  const auto stat = process_stat(process);
  return stat && !stat->ended() ? stat->start : 0;
}

/// Seconds since 1970 at which this machine was started.
double boot_time() {
  timespec now{}, up{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &up);
  return static_cast<double>(now.tv_sec - up.tv_sec);
}

/// Host names go into names of files: letters, digits, dots; a minus separates.
std::string plain(std::string text) {
  for (char& c : text)
    if (!(std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.')) c = '_';
  return text.substr(0, 64);
}

template <typename T>
bool read_number(const std::string& text, T& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::string FolderOwner::name() const {
  return fmt::format("assay-{}-{}-{}-{}-{}-{}-{}{}", what, host, boot, pid_namespace, pid, start, run,
                     number > 0 ? fmt::format("-{}", number) : "");
}

FolderOwner FolderOwner::self(const std::string& what, const std::string& run) {
  return {what, plain(host_name()), boot_id(), assay::pid_namespace(), ::getpid(), start_of("self"), run, 0};
}

FolderOwner FolderOwner::parse(const std::string& what, const std::string& name) {
  const std::string prefix = "assay-" + what + "-";
  if (!name.starts_with(prefix)) return {};
  std::vector<std::string> parts;
  for (std::size_t at = prefix.size(); at <= name.size();) {
    const std::size_t end = std::min(name.find('-', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  if ((parts.size() != 6 && parts.size() != 7) || parts[5].size() != 16) return {};
  FolderOwner owner{what, parts[0], parts[1], parts[2], 0, 0, parts[5], 0};
  std::uint64_t run = 0;
  if (parts.size() == 7 && (!read_number(parts[6], owner.number) || owner.number < 1)) return {};
  if (!read_number(parts[3], owner.pid) || !read_number(parts[4], owner.start) ||
      !read_number(parts[5], run, 16))
    return {};
  return owner;
}

bool FolderOwner::surely_dead(double modified) const {
  const FolderOwner here = self(what, run);
  if (pid <= 0 || host != here.host) return false;
  if (boot != here.boot) return modified < boot_time();  // else another machine of this name
  if (pid_namespace != here.pid_namespace) return false;
  return start_of(std::to_string(pid)) != start;
}

}  // namespace assay
