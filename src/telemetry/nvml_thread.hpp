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
  static std::shared_ptr<NvmlThread> open(std::string& trouble, double patience_s = 20);
  ~NvmlThread();
  NvmlThread(const NvmlThread&) = delete;
  NvmlThread& operator=(const NvmlThread&) = delete;

  /// Runs `work` there. False when it did not end within `patience_s`, or an earlier one never did: then
  /// nothing is asked any more, and `work` may still be running, so it must own what it writes to.
  bool call(std::function<void(Nvml&)> work, double patience_s);
  bool stuck() const;

 private:
  struct State;
  explicit NvmlThread(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Asks for the GPUs of this node. The thread goes on to serve counters and telemetry; null where there is
/// nothing to ask.
std::shared_ptr<NvmlThread> probe_gpus(Node& node);

}  // namespace assay
