// SPDX-License-Identifier: Apache-2.0
// The process of a launcher: started, observed and ended.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "base/child_process.hpp"

namespace assay {

/// Blocks the signals that end a run, while it lives, and forwards them to the launcher.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const noexcept { return fd_; }
  const sigset_t& old() const noexcept { return old_; }
  /// Whether one of them came.
  bool any() const noexcept { return any_; }
  /// Takes those that came.
  void pass_on(const std::function<void(int signal)>& to);

 private:
  sigset_t old_{};
  int fd_ = -1;
  bool any_ = false;
};

/// Replaces this process by a command with the signal mask `mask`, beyond the reach of a terminal where this
/// process is (nohup). Returns, an exit code, only when the command cannot be started.
int become(std::vector<std::string>& words, const sigset_t& mask);

struct Ended {
  int code = 0;     ///< as a shell gives it
  std::string out;  ///< standard output
};

/// Why a command is to be terminated, empty while it is not; `ended` tells whether it has ended meanwhile.
using Overdue = std::function<std::string(const std::function<bool()>& ended)>;

/// Runs a command, keeps what it writes to standard output, and waits for it: not for its daemons, which on a
/// host that was cut off outlive it. `overdue` is asked every second.
Ended execute(std::vector<std::string> words, Signals& signals, const Overdue& overdue);

}  // namespace assay
