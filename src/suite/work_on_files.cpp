// SPDX-License-Identifier: Apache-2.0
#include "suite/work_on_files.hpp"

#include <atomic>

namespace assay {
namespace {

std::atomic<supervisor::Heartbeat*> marked{nullptr};

}  // namespace

WorkOnFiles::WorkOnFiles(supervisor::Heartbeat* heartbeat) : heartbeat_(heartbeat) {
  if (heartbeat_ != nullptr) heartbeat_->call = supervisor::Call::files;
  marked = heartbeat_;
}

WorkOnFiles::~WorkOnFiles() {
  marked = nullptr;
  if (heartbeat_ != nullptr) heartbeat_->call = supervisor::Call::none;
  files_answered();
}

void files_answered() noexcept {
  if (supervisor::Heartbeat* heartbeat = marked) heartbeat->calls.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace assay
