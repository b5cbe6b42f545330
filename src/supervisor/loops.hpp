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
  int link;     ///< its end of the connection to the worker
  int signals;  ///< signalfd: SIGCHLD and the signals that end a run
  Heartbeat& heartbeat;
};

/// Time for the last orders to be read before a process, and with it the launcher's job, ends.
inline constexpr double farewell_s = 1.0;

/// Of rank 0's supervisor: one to each of the others of its node, and one to each other node, which may have
/// as many ranks.
int connections_of(const LaunchEnvironment& launch) noexcept;
/// Throws Error(usage) when this process may not open as many files.
void require_open_files(const LaunchEnvironment& launch);

/// Rank 0's supervisor: leads the run. Returns the exit code of all.
int collector_loop(const SupervisorPlan& plan, const LaunchEnvironment& launch, const Watch& watch);
/// Seconds, while this process runs, in which a supervisor meets the collector or never does. A collector
/// that misses a rank has given up long before.
constexpr double meeting_s(int ranks) noexcept { return 300 + 0.2 * ranks; }
/// Every other rank's supervisor. Ends the worker if it does not meet the collector within `limit_s`.
int supervisor_loop(const SupervisorPlan& plan, const LaunchEnvironment& launch, const Watch& watch,
                    double limit_s);

/// Where the plan has a `clean_up`: ends the worker, and calls it if a signal ended the worker. Takes at most
/// 3 s.
void clean_up_after(const SupervisorPlan& plan, Supervisor& supervisor, const Watch& watch);

/// The signal that ends the run, or 0 when only children ended. Empties `signals`.
int take_signal(int signals) noexcept;

}  // namespace assay::supervisor
