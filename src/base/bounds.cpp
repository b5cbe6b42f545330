// SPDX-License-Identifier: Apache-2.0
#include "base/bounds.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <limits>

namespace assay {
namespace {

namespace fs = std::filesystem;

std::uint64_t bytes_of(const fs::path& path, int depth = 0) {
  std::error_code code;
  if (!fs::is_directory(path, code)) {
    const auto size = fs::file_size(path, code);
    return code ? 0 : size;
  }
  std::uint64_t sum = 0;
  fs::directory_iterator entries(path, code);
  for (; !code && depth < 3 && entries != fs::directory_iterator(); entries.increment(code))
    sum += bytes_of(entries->path(), depth + 1);
  return sum;
}

std::uint64_t address_space_bytes() noexcept {
  char text[32] = {};
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const bool read = ::read(file, text, sizeof text - 1) > 0;
  ::close(file);
  return read ? std::strtoull(text, nullptr, 10) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace

std::uint64_t input_bytes(const std::vector<std::string>& inputs) {
  std::uint64_t sum = 0;
  for (const std::string& list : inputs) {
    std::error_code code;
    if (fs::exists(list, code)) {
      sum += bytes_of(list);
      continue;
    }
    for (std::size_t from = 0, comma = 0; comma != std::string::npos; from = comma + 1) {
      comma = list.find(',', from);
      sum += bytes_of(list.substr(from, comma == std::string::npos ? comma : comma - from));
    }
  }
  return sum;
}

void bound_process(std::uint64_t input_bytes) noexcept {
  const auto limit = [](auto resource, std::uint64_t value) {
    rlimit now{};
    if (::getrlimit(resource, &now) != 0) return;
    now.rlim_cur = std::min<rlim_t>(now.rlim_max, value);
    now.rlim_max = now.rlim_cur;
    ::setrlimit(resource, &now);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, 10 + 10 * (input_bytes >> 20));
  limit(RLIMIT_AS, address_space_bytes() + (std::uint64_t{4} << 30) + 64 * input_bytes);
}

std::uint64_t free_address_space() noexcept {
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<std::uint64_t>::max();
  return space.rlim_cur - std::min<std::uint64_t>(space.rlim_cur, address_space_bytes());
}

std::uint64_t stacks_bytes() noexcept {
  constexpr std::uint64_t without_limit = 2U << 20;  // what the C library takes then
  rlimit stack{};
  const std::size_t count = std::max<std::size_t>(allowed_cpus().size(), 1);
  const bool limited = ::getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur != RLIM_INFINITY;
  return static_cast<std::uint64_t>(count) * (limited ? stack.rlim_cur : without_limit);
}

std::uint64_t most_open_files() noexcept {
  rlimit files{};
  return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_max : 0;
}

std::uint64_t raise_open_files() noexcept {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur;
}

std::string describe_lost_reader(const std::vector<std::string>& inputs, int signal) {
  std::string text;
  for (const std::string& name : inputs) text += (text.empty() ? "" : ", ") + name;
  // Limits of the shell's, which say nothing of the file.
  constexpr rlim_t small_stack = 1U << 20;
  rlimit stack{};
  if (signal == SIGXFSZ) return text + ": what it writes is larger than the limit of file sizes (ulimit -f)";
  if (signal == SIGSEGV && ::getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < small_stack)
    return text + ": cannot be read with a stack of " + std::to_string(stack.rlim_cur >> 10) +
           " KiB: raise the limit (ulimit -s)";
  const char* what = signal == SIGXCPU || signal == SIGKILL ? "reading it does not end"
                     : signal == SIGSYS                     ? "reading it makes a forbidden system call"
                                                            : "reading it crashes";
  return text + ": " + what + " (signal " + std::to_string(signal) +
         "): the file is damaged, or was made to do so";
}

}  // namespace assay
