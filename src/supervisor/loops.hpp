// SPDX-License-Identifier: Apache-2.0
// Inside of the supervisor process: its two event loops.
#pragma once

#include "base/system.hpp"
#include "supervisor/supervised.hpp"
#include "supervisor/supervisor.hpp"

namespace assay::supervisor {

/// What a supervisor watches beside its sockets.
struct Watch {
  pid_t worker;
  int link;     ///< its end of the line to the worker
  int signals;  ///< signalfd: SIGCHLD and the signals that end a run
  Heartbeat& heartbeat;
};

/// Rank 0's supervisor has a line to each of the others. Throws Error(usage) when this process may not open
/// as many files.
void require_open_files(int ranks);

/// Rank 0's supervisor: leads the run. Returns the exit code of all.
int collector_loop(const SupervisorPlan& plan, const LaunchEnvironment& launch, const Watch& watch);
/// Every other rank's supervisor.
int supervisor_loop(const SupervisorPlan& plan, const LaunchEnvironment& launch, const Watch& watch);

/// The signal that ends the run, or 0 when only children ended. Empties `signals`.
int take_signal(int signals) noexcept;

}  // namespace assay::supervisor
