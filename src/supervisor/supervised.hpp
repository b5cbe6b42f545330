// SPDX-License-Identifier: Apache-2.0
// A run with a supervisor beside every rank. The process forks before MPI_Init: the child becomes the MPI
// process (the worker), the parent stays outside of MPI as its supervisor. Supervisors talk to the collector
// in rank 0's supervisor over TCP, so every rank is observed, its end is reported and the results are kept
// even while MPI hangs or a rank is dead: while the supervisor of a dead worker lives, the launcher does not
// end the other ranks.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "supervisor/controller.hpp"
#include "supervisor/worker_link.hpp"

namespace assay::supervisor {

struct SupervisorPlan {
  std::string folder;  ///< where the rendezvous file goes: beside the output
  std::function<std::unique_ptr<Controller>()> make_controller;  ///< called in rank 0's supervisor only
  std::function<int(WorkerLink&)> work;  ///< the worker, from before MPI_Init to its exit code
  bool code_in_file = false;             ///< who launched takes the run's code from the results file
  std::string without_collector;         ///< message when rank 0's supervisor is gone: where the results are
  /// After a worker that a signal ended, in a process of its own, for 2 s at most: removes what the
  /// worker's destructors would have removed.
  std::function<void(pid_t worker)> clean_up;
  /// In a process of its own: works in a directory a little, as a case does, and returns when that has
  /// answered.
  std::function<void(const std::string& directory)> touch;
};

/// Returns twice, once in the worker and once in its supervisor; both exit with the returned code. Throws
/// Error(resource) when the process cannot fork, Error(usage) when rank 0's supervisor may not open a file
/// for each rank.
int run_supervised(const SupervisorPlan& plan);

}  // namespace assay::supervisor
