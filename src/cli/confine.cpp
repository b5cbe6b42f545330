// SPDX-License-Identifier: Apache-2.0
#include "cli/confine.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <new>

#include "base/bounds.hpp"
#include "base/error.hpp"
#include "cli/output.hpp"

namespace assay::cli {
namespace {

/// Where a child says what it has to say until it is known how it ended: a C library that stops a damaged
/// process adds lines of its own. -1 where the system has no such file.
int private_stderr() { return ::memfd_create("assay-stderr", MFD_CLOEXEC); }

void pass_on(int fd) {
  if (fd < 0 || ::lseek(fd, 0, SEEK_SET) != 0) return;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;)
    std::fwrite(buffer, 1, static_cast<std::size_t>(n), stderr);
}

/// Never returns: what the C library and HDF5 would tidy up at exit may be what is damaged.
[[noreturn]] void run_child(const std::function<ExitCode()>& command, std::uint64_t bytes, pid_t parent,
                            int said) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (said >= 0) ::dup2(said, STDERR_FILENO);
  if (::getppid() != parent) ::_exit(static_cast<int>(ExitCode::internal));
  bound_process(bytes);
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

ExitCode confined(const std::vector<std::string>& inputs, const std::function<ExitCode()>& command,
                  unsigned weight) {
  const std::uint64_t bytes = weight * input_bytes(inputs);
  std::fflush(nullptr);
  const int said = private_stderr();
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) run_child(command, bytes, parent, said);
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
  throw Error(ErrorKind::data, describe_lost_reader(inputs, WTERMSIG(status)));
}

}  // namespace assay::cli
