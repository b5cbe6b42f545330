// SPDX-License-Identifier: Apache-2.0
// Child processes forked for one function of this program, and what they print.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

namespace assay {

/// Statuses are those of waitpid(2). The process that starts a child waits for it.
class ChildProcess {
 public:
  /// Forks. The child runs `act` and ends with its value; it skips the exit handlers of libraries, whose
  /// state may be what is damaged. An exception is printed and becomes ExitCode::internal. The child gets
  /// `when_orphaned` when the thread that started it ends. Throws Error(resource) "cannot fork <what>: ...".
  ChildProcess(const std::string& what, const std::function<int()>& act, int when_orphaned = SIGKILL);

  pid_t pid() const noexcept { return pid_; }
  void kill(int signal) const noexcept;
  /// Nothing while it lives.
  std::optional<int> ended();
  int wait();
  /// Whether it has ended after `ms` at most.
  bool ends_within(int ms);
  /// Sends SIGKILL after `grace_ms`.
  int wait_or_kill(int grace_ms);

 private:
  bool collect(int options);
  pid_t pid_;
  bool reaped_ = false;
  int status_ = 0;
};

/// As a shell gives it: 128 + the signal for a process that a signal ended.
int exit_code_of(int status) noexcept;

/// What a child prints, in a file in memory. A pipe would stay open for as long as any process that the child
/// started lives.
class CapturedOutput {
 public:
  CapturedOutput();  ///< throws Error(resource)
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  /// In the child: `fd`, such as STDOUT_FILENO, writes here from now on.
  void redirect(int fd) const noexcept;
  std::string text() const;
  void copy_to(std::FILE* stream) const;

 private:
  int fd_;
};

}  // namespace assay
