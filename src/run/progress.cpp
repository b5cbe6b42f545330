// SPDX-License-Identifier: Apache-2.0
#include "run/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "base/units.hpp"

namespace assay {
namespace {
/// Under a launcher our own standard error is a pipe; the launcher's is what the person looks at.
bool person_watches() {
  if (!launch_environment().launched) return isatty(STDERR_FILENO) != 0;
  const std::string link = fmt::format("/proc/{}/fd/2", getppid());
  char target[256];
  const ssize_t n = readlink(link.c_str(), target, sizeof target - 1);
  if (n <= 0) return false;
  const std::string name(target, static_cast<std::size_t>(n));
  return name.starts_with("/dev/pts/") || name.starts_with("/dev/tty");
}
}  // namespace

Progress::Progress(const std::string& mode, double budget_s)
    : active_(mode == "always" || (mode == "auto" && person_watches())),
      begin_s_(now_s()),
      budget_s_(budget_s) {}

Progress::~Progress() { clear(); }

void Progress::show(std::size_t done, std::size_t total, const std::string& what) {
  if (!active_) return;
  const double elapsed = now_s() - begin_s_;
  const double left = budget_s_ > elapsed ? budget_s_ - elapsed : 0;
  const std::string line = fmt::format("[{}/{}] {:<40.40} {} elapsed, at most {} left", done, total, what,
                                       format_seconds(elapsed), format_seconds(left));
  std::fprintf(stderr, "\r%-79.79s", line.c_str());
  std::fflush(stderr);
  dirty_ = true;
}

void Progress::clear() {
  if (!dirty_) return;
  std::fprintf(stderr, "\r%79s\r", "");
  std::fflush(stderr);
  dirty_ = false;
}

}  // namespace assay
