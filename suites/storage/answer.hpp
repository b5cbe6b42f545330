// SPDX-License-Identifier: Apache-2.0
// Whether a directory answers at all: the server of a mount may not, for a while or for good, and whoever
// calls it waits.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "supervisor/heartbeat.hpp"

namespace assay::storage {

/// For a process that is made for it: opens and lists a directory, asks for its space, makes a directory in
/// it and removes that. What is refused is an answer, too. Closes all files of the process first, since
/// others would wait for their ends as long as it waits.
void touch(const std::string& directory) noexcept;

/// Those that do not answer within `seconds`. A process tries each: one that waits for a server cannot always
/// be ended.
std::vector<std::string> silent_ones(const std::vector<std::string>& directories, double seconds);

/// During its lifetime this rank is at work on files: its supervisor takes it as no hang that nothing moves
/// while it waits for them.
class WorkOnFiles {
 public:
  explicit WorkOnFiles(supervisor::Heartbeat* heartbeat);
  ~WorkOnFiles();
  WorkOnFiles(const WorkOnFiles&) = delete;
  WorkOnFiles& operator=(const WorkOnFiles&) = delete;

 private:
  supervisor::Heartbeat* heartbeat_;
};
/// Files have answered, on any thread: the supervisor of this rank sees that it moves.
void files_answered() noexcept;

}  // namespace assay::storage
