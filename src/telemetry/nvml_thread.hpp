// SPDX-License-Identifier: Apache-2.0
// A driver in trouble may keep a caller for minutes, or for ever. So the library is used by a thread of its
// own, and callers wait for it with a deadline.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "telemetry/nvml.hpp"

namespace assay {

class NvmlThread {
 public:
  /// Opens the library there. Null where there is none; `trouble` is the reason why an installed one cannot
  /// be used.
  static std::shared_ptr<NvmlThread> open(std::string& trouble, double hang_s, double patience_s);
  ~NvmlThread();
  NvmlThread(const NvmlThread&) = delete;
  NvmlThread& operator=(const NvmlThread&) = delete;

  /// Runs `work` there. False when it did not end within `patience_s`: `work` may still be running, so it
  /// must own what it writes to. A driver that takes longer than `hang_s` and than that patience hangs:
  /// nothing is asked any more.
  bool call(std::function<void(Nvml&)> work, double patience_s);
  bool stuck() const;

 private:
  struct State;
  explicit NvmlThread(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Asks for the GPUs of this node. The thread goes on to serve counters and telemetry; null where there is
/// nothing to ask. A sample that is late by a second on a busy node is missing, and no sign of a driver that
/// hangs. `patience_s`: for the library to start and to tell of all GPUs. Without persistence mode the driver
/// starts each of them then, which takes up to a minute where there are many.
std::shared_ptr<NvmlThread> probe_gpus(Node& node, double hang_s = 5, double patience_s = 50);

}  // namespace assay
