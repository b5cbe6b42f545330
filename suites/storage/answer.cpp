// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/answer.hpp"

#include <unistd.h>

#include <csignal>
#include <exception>
#include <list>

#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "suites/storage/folder.hpp"

namespace assay::storage {
namespace {

/// Part of the name of a directory that is made to see whether the server answers.
constexpr const char* no_run = "0000000000000000";

}  // namespace

void touch(const std::string& directory) noexcept {
  ::close_range(0, ~0U, 0);
  try {
    const Folder folder(directory, no_run);
    (void)folder.space();
  } catch (const std::exception&) {  // it has answered
  }
}

std::vector<std::string> silent_ones(const std::vector<std::string>& directories, double seconds) {
  std::list<ChildProcess> tries;
  for (const std::string& directory : directories)
    tries.emplace_back("a process that looks at " + directory, [&] {
      touch(directory);
      return 0;
    });
  std::vector<std::string> silent;
  const double end_s = now_s() + seconds;
  auto child = tries.begin();
  for (const std::string& directory : directories) {
    while (!child->ended() && now_s() < end_s) ::usleep(500);
    if (!child->ended()) {
      child->kill(SIGKILL);  // and not waited for
      silent.push_back(directory);
    }
    ++child;
  }
  return silent;
}

}  // namespace assay::storage
