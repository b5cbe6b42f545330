// SPDX-License-Identifier: Apache-2.0
// The whole of `assay run` and `assay plan`, from a validated configuration to an exit code.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/exit_code.hpp"
#include "config/config.hpp"
#include "suite/suite.hpp"

namespace assay {

/// A file that is finished.
struct RunReport {
  const results::Results& results;
  const results::VerdictData& verdict;
  std::string file;
  double ran_s = 0;     ///< since the launcher, or this process, started; 0: nothing began
  double budget_s = 0;  ///< of the level, or of a segment of a soak
  bool last = true;     ///< no segment of a soak follows
};

struct RunHooks {
  /// Called on rank 0 to print the summary and write --json, --junit, --nodes. Returns the exit code of what
  /// was told: of the file, after the last segment of a soak of all its files. Throws Error for what could
  /// not be printed or written.
  std::function<int(const RunReport&)> report;
};

/// Runs on all ranks; starts and ends MPI. Returns the agreed exit code on every rank.
ExitCode run_session(int* argc, char*** argv, Config config, std::vector<std::unique_ptr<Suite>> suites,
                     const RunHooks& hooks);

/// What `plan` prints; runs nothing. Text to `out` on rank 0 only.
ExitCode plan_session(int* argc, char*** argv, Config config, std::vector<std::unique_ptr<Suite>> suites,
                      const std::function<void(const std::string&)>& out);

}  // namespace assay
