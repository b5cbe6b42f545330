// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/heartbeat.hpp"

namespace assay {

/// During its lifetime this rank is at work on files in the directory that the parameter `path` of its case
/// names: its supervisor takes it as no hang that nothing moves while it waits for them. One at a time.
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

}  // namespace assay
