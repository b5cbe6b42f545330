// SPDX-License-Identifier: Apache-2.0
#include "cli/confine.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>

#include "base/error.hpp"
#include "cli/output.hpp"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

/// Size of a file, or of the files in a directory two levels deep, as a partial directory is.
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

/// The same of "a.h5,b.h5".
std::uint64_t bytes_of_list(const std::string& list) {
  std::error_code code;
  if (fs::exists(list, code)) return bytes_of(list);
  std::uint64_t sum = 0;
  for (std::size_t from = 0, comma = 0; comma != std::string::npos; from = comma + 1) {
    comma = list.find(',', from);
    sum += bytes_of(list.substr(from, comma == std::string::npos ? comma : comma - from));
  }
  return sum;
}

std::uint64_t address_space_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// What an honest file of this size needs many times over.
void set_limits(std::uint64_t input_bytes) {
  const auto limit = [](auto resource, std::uint64_t value) {
    rlimit now{};
    if (::getrlimit(resource, &now) != 0) return;
    now.rlim_cur = std::min<rlim_t>(now.rlim_max, value);
    now.rlim_max = now.rlim_cur;
    ::setrlimit(resource, &now);
  };
  const std::uint64_t mb = input_bytes >> 20;
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, 10 + 10 * mb);
  limit(RLIMIT_AS, address_space_bytes() + (std::uint64_t{4} << 30) + 64 * input_bytes);
}

/// Where a child says what it has to say until it is known how it ended: a C library that stops a damaged process adds
/// lines of its own. -1 where the system has no such file.
int private_stderr() { return ::memfd_create("assay-stderr", MFD_CLOEXEC); }

void pass_on(int fd) {
  if (fd < 0 || ::lseek(fd, 0, SEEK_SET) != 0) return;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) std::fwrite(buffer, 1, static_cast<std::size_t>(n), stderr);
}

/// Never returns: what the C library and HDF5 would tidy up at exit may be what is damaged.
[[noreturn]] void run_child(const std::function<ExitCode()>& command, std::uint64_t input_bytes,
                            pid_t parent, int said) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (said >= 0) ::dup2(said, STDERR_FILENO);
  if (::getppid() != parent) ::_exit(static_cast<int>(ExitCode::internal));
  set_limits(input_bytes);
  ExitCode code = ExitCode::internal;
  try {
    code = command();
  } catch (const std::bad_alloc&) {
    print_error("the file needs more memory than there is");
    code = ExitCode::usage;
  } catch (const std::exception& e) {
    print_error(std::string("internal error: ") + e.what());
  } catch (...) {
    print_error("internal error: unknown exception");
  }
  std::fflush(nullptr);
  ::_exit(static_cast<int>(code));
}

}  // namespace

ExitCode confined(const std::vector<std::string>& inputs, const std::function<ExitCode()>& command) {
  std::uint64_t input_bytes = 0;
  std::string input;
  for (const std::string& name : inputs) {
    input += (input.empty() ? "" : ", ") + name;
    input_bytes += bytes_of_list(name);
  }
  std::fflush(nullptr);
  const int said = private_stderr();
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) run_child(command, input_bytes, parent, said);
  if (child < 0) {  // no more processes here: no worse than without a child
    if (said >= 0) ::close(said);
    return command();
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw Error(ErrorKind::internal, "the reading process was lost");
  }
  if (WIFEXITED(status)) pass_on(said);
  if (said >= 0) ::close(said);
  if (WIFEXITED(status)) return static_cast<ExitCode>(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  const bool endless = signal == SIGXCPU || signal == SIGKILL;
  throw Error(ErrorKind::data,
              fmt::format("{}: {} (signal {}): the file is damaged, or was made to do so", input,
                          endless ? "reading it does not end" : "reading it crashes", signal));
}

}  // namespace assay::cli
