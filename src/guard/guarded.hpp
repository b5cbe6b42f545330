// SPDX-License-Identifier: Apache-2.0
// A run with a guardian beside every rank. The process forks before MPI_Init: the child becomes the MPI
// process (the worker), the parent stays outside of MPI as its guardian. Guardians talk to the collector in
// rank 0's guardian over TCP, so every rank is observed, its end is reported and the results are kept even
// while MPI hangs or a rank is dead: while the guardian of a dead worker lives, the launcher does not end the
// other ranks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "guard/controller.hpp"
#include "guard/worker_link.hpp"

namespace assay::guard {

struct GuardPlan {
  std::string folder;  ///< where the rendezvous file goes: beside the output
  std::function<std::unique_ptr<Controller>()> make_controller;  ///< called in rank 0's guardian only
  std::function<int(WorkerLink&)> work;  ///< the worker, from before MPI_Init to its exit code
  std::string without_collector;         ///< message when rank 0's guardian is gone: where the results are
};

/// Returns twice, once in the worker and once in its guardian; both exit with the returned code. Throws
/// Error(resource) when the process cannot fork, Error(usage) when rank 0's guardian may not open a file for
/// each rank.
int run_guarded(const GuardPlan& plan);

}  // namespace assay::guard
