// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace assay {

/// One line on standard error of a terminal: phase, elapsed, remaining. Prints nothing elsewhere.
class Progress {
 public:
  /// mode: auto|always|never; `color` is not used on this line.
  Progress(const std::string& mode, double budget_s);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::size_t done, std::size_t total, const std::string& what);
  void clear();
  bool active() const noexcept { return active_; }

 private:
  bool active_ = false;
  bool dirty_ = false;
  double begin_s_ = 0, budget_s_ = 0;
};

}  // namespace assay
