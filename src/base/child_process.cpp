// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.hpp"

namespace assay {
namespace {

void read_all(int fd, const std::function<void(std::string_view)>& take) {
  std::array<char, 65536> buffer;
  off_t at = 0;
  for (ssize_t n; (n = ::pread(fd, buffer.data(), buffer.size(), at)) > 0; at += n)
    take({buffer.data(), static_cast<std::size_t>(n)});
}

}  // namespace

ChildProcess::ChildProcess(const std::string& what, const std::function<int()>& act, int when_orphaned) {
  std::fflush(nullptr);  // or the child prints it too
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw Error(ErrorKind::resource, "cannot fork " + what + ": " + std::strerror(errno));
  if (pid_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, when_orphaned);
  int code = static_cast<int>(ExitCode::internal);
  if (::getppid() != parent) ::_exit(code);
  try {
    code = act();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "assay: %s\n", e.what());
  } catch (...) {
    std::fprintf(stderr, "assay: unknown exception\n");
  }
  ::_exit(code);
}

void ChildProcess::kill(int signal) const noexcept {
  if (!reaped_) ::kill(pid_, signal);
}

bool ChildProcess::collect(int options) {
  while (!reaped_) {
    const pid_t ended = ::waitpid(pid_, &status_, options);
    if (ended == 0) return false;
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) throw Error(ErrorKind::internal, std::string("a child was lost: ") + std::strerror(errno));
    reaped_ = true;
  }
  return true;
}

std::optional<int> ChildProcess::ended() {
  return collect(WNOHANG) ? std::optional<int>(status_) : std::nullopt;
}

int ChildProcess::wait() {
  collect(0);
  return status_;
}

bool ChildProcess::ends_within(int ms) {
  for (int passed = 0; passed < ms && !collect(WNOHANG); ++passed) ::usleep(1000);
  return collect(WNOHANG);
}

int ChildProcess::wait_or_kill(int grace_ms) {
  if (!ends_within(grace_ms)) kill(SIGKILL);
  return wait();
}

int exit_code_of(int status) noexcept {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

CapturedOutput::CapturedOutput() : fd_(::memfd_create("assay-output", MFD_CLOEXEC)) {
  if (fd_ < 0)
    throw Error(ErrorKind::resource,
                std::string("no memory for what a process prints: ") + std::strerror(errno));
}

CapturedOutput::~CapturedOutput() { ::close(fd_); }

void CapturedOutput::redirect(int fd) const noexcept { ::dup2(fd_, fd); }

std::string CapturedOutput::text() const {
  std::string text;
  read_all(fd_, [&](std::string_view part) { text += part; });
  return text;
}

void CapturedOutput::copy_to(std::FILE* stream) const {
  read_all(fd_, [&](std::string_view part) { std::fwrite(part.data(), 1, part.size(), stream); });
}

}  // namespace assay
