// SPDX-License-Identifier: Apache-2.0
#include "run/launcher_process.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/end_signals.hpp"
#include "base/exit_code.hpp"

namespace assay {

Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : end_signals()) sigaddset(&set, signal);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, &old_);
  fd_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

Signals::~Signals() {
  close(fd_);
  sigprocmask(SIG_SETMASK, &old_, nullptr);
}

void Signals::pass_on(const std::function<void(int signal)>& to) {
  signalfd_siginfo info{};
  while (read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGCHLD) continue;
    any_ = true;
    to(static_cast<int>(info.ssi_signo));
  }
}

int become(std::vector<std::string>& words, const sigset_t& mask) {
  leave_group_of_terminal();
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv.front(), argv.data());
  std::fprintf(stderr, "assay: cannot start the launcher '%s': %s\n", argv.front(), std::strerror(errno));
  return static_cast<int>(ExitCode::usage);
}

Ended execute(std::vector<std::string> words, Signals& signals, const Overdue& overdue) {
  const CapturedOutput out;
  const auto act = [&] {
    out.redirect(STDOUT_FILENO);
    return become(words, signals.old());
  };
  ChildProcess child("a launcher", act, SIGTERM);
  const auto ended = [&] { return child.ended().has_value(); };
  int seconds_overdue = 0;
  std::optional<int> status;
  for (; !status; status = child.ended()) {
    pollfd fd{signals.fd(), POLLIN, 0};
    const std::string why = poll(&fd, 1, 1000) == 0 ? overdue(ended) : "";
    if (!why.empty()) {
      if (seconds_overdue == 0)
        std::fprintf(stderr, "assay: terminating the launcher: it still runs %s\n", why.c_str());
      child.kill(seconds_overdue++ < 10 ? SIGTERM : SIGKILL);
    }
    signals.pass_on([&](int signal) { child.kill(signal); });
  }
  return {exit_code_of(*status), out.text()};
}

}  // namespace assay
