// SPDX-License-Identifier: Apache-2.0
#include "base/end_signals.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace assay {

bool ignores(int signal) noexcept {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

std::vector<int> end_signals() {
  std::vector<int> signals = {SIGUSR1, SIGUSR2, SIGTERM};
  for (const int signal : {SIGINT, SIGHUP})
    if (!ignores(signal)) signals.push_back(signal);
  return signals;
}

void leave_group_of_terminal() noexcept {
  if (!ignores(SIGINT) && !ignores(SIGHUP)) return;
  setpgid(0, 0);
  // A group in the background is stopped where it reads a terminal.
  if (const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC); nothing >= 0) dup2(nothing, STDIN_FILENO);
}

}  // namespace assay
