// SPDX-License-Identifier: Apache-2.0
// The process that starts a launcher stays outside of MPI: it outlives every rank, launches again without
// lost nodes, and exits with the code of the whole run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/exit_code.hpp"
#include "config/config.hpp"

namespace assay {

struct Relaunch {
  std::string launcher;                ///< --launcher; empty: the local one
  std::vector<std::string> local;      ///< words of the local one
  std::vector<std::string> arguments;  ///< of `assay run`, without those that differ between launches
  int relaunches = 2;
  std::function<void(const std::string&)> print;  ///< what the last launch wrote to standard output
  /// Of all launches, from the start of this process on without queues, where a file was written.
  std::function<void(double ran_s, double budget_s)> print_time;
};

/// Returns when the last launch has ended.
ExitCode run_relaunched(const Config& config, const Relaunch& how);

}  // namespace assay
