// SPDX-License-Identifier: Apache-2.0
#include "supervisor/supervised.hpp"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/bounds.hpp"
#include "base/child_process.hpp"
#include "base/end_signals.hpp"
#include "base/error.hpp"
#include "supervisor/loops.hpp"
#include "supervisor/trace.hpp"

namespace assay::supervisor {
namespace {

sigset_t supervisor_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : end_signals()) sigaddset(&set, signal);
  return set;
}

int work(const SupervisorPlan& plan, pid_t supervisor, int fd, Heartbeat& heartbeat,
         const sigset_t& old_mask) {
  // A worker without its supervisor would outlive the job.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(3);
  // The supervisor handles these and ends the run in order; the worker runs until it is told.
  for (const int signal : end_signals()) std::signal(signal, SIG_IGN);
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  answer_trace_requests(heartbeat);
  raise_open_files();  // over TCP a rank has a connection to every node
  WorkerLink link(fd, heartbeat);
  return plan.work(link);
}

/// A worker that was killed is gone at once, unless it waits for a device.
constexpr double worker_gone_s = 1.0;
constexpr int clean_up_s = 2;

/// Slurm tells it of a step that has all ranks. Else the other nodes may have as many ranks as rank 0's, or
/// fewer.
int nodes_of(const LaunchEnvironment& launch) noexcept {
  const auto told = [](const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? 0 : std::atoi(text);
  };
  const int nodes = told("SLURM_STEP_NUM_NODES");
  if (told("SLURM_STEP_NUM_TASKS") == launch.size && nodes > 0) return std::min(nodes, launch.size);
  return (launch.size - 1) / std::max(launch.local_size, 1) + 1;
}

}  // namespace

void clean_up_after(const SupervisorPlan& plan, Supervisor& supervisor, const Watch& watch) {
  if (!plan.clean_up || !supervisor.end_worker(worker_gone_s)) return;
  try {
    const auto clean_up = [&] {
      setsid();  // a launcher that was stopped kills the group of this process
      alarm(clean_up_s);
      plan.clean_up(watch.worker);
      return 0;
    };
    constexpr int goes_on = 0;
    ChildProcess cleaner("a process that cleans up", clean_up, goes_on);
    // Not waited for without end: where a disk hangs, not even SIGKILL ends it.
    if (!cleaner.ends_within(1000 * clean_up_s)) cleaner.kill(SIGKILL);
  } catch (const Error&) {  // no process to be had: the next start removes what is left
  }
}

int take_signal(int signals) noexcept {
  int found = 0;
  signalfd_siginfo info{};
  while (read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    if (info.ssi_signo != SIGCHLD) found = static_cast<int>(info.ssi_signo);
  return found;
}

int connections_of(const LaunchEnvironment& launch) noexcept {
  return std::max(launch.local_size, 1) - 1 + nodes_of(launch) - 1;
}

/// Of the supervisor: the worker does not take the texts of all ranks directly (mpi_communicator.cpp).
void require_open_files(const LaunchEnvironment& launch) {
  constexpr std::uint64_t others = 64;  // files, pending connections, what the launcher left open
  const int nodes = nodes_of(launch);
  const std::uint64_t needed = static_cast<std::uint64_t>(connections_of(launch)) + 1 + others,
                      allowed = most_open_files();
  if (launch.size > 1 && allowed < needed)
    throw_usage("rank 0 needs " + std::to_string(needed) + " open files for " + std::to_string(launch.size) +
                (nodes > 1 ? " ranks on " + std::to_string(nodes) + " nodes" : " ranks") +
                ", and its hard limit is " + std::to_string(allowed) +
                ": raise it where ranks are started (ulimit -Hn " + std::to_string(needed) + ")");
}

/// MPI and the threads of a rank with an arena of the C library, before it takes memory to measure in.
void require_address_space() {
  constexpr std::uint64_t mpi = (192U + 128U) << 20;
  const std::uint64_t needed = mpi + stacks_bytes(), free = free_address_space();
  if (free < needed)
    throw_usage("the limit of the address space is " + std::to_string((needed - free + 1023) >> 10) +
                " KiB too small to start a rank: raise it where ranks are started (ulimit -v)");
}

int run_supervised(const SupervisorPlan& plan) {
  require_address_space();
  LaunchEnvironment launch = launch_environment();
  if (!launch.launched || launch.rank < 0 || launch.size < 1) {
    launch.rank = 0;
    launch.size = launch.local_size = 1;
  }
  if (launch.rank == 0) require_open_files(launch);
  const SharedHeartbeat heartbeat;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(ErrorKind::resource,
                std::string("no connection between worker and supervisor: ") + std::strerror(errno));
  const sigset_t watched = supervisor_signals();
  sigset_t old_mask;
  sigprocmask(SIG_BLOCK, &watched, &old_mask);
  std::fflush(nullptr);
  const pid_t supervisor = getpid();
  const pid_t worker = fork();
  if (worker < 0)
    throw Error(ErrorKind::resource, std::string("cannot fork a worker: ") + std::strerror(errno));
  if (worker == 0) {
    close(ends[0]);
    return work(plan, supervisor, ends[1], *heartbeat, old_mask);
  }
  close(ends[1]);
  const int signals = signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
  const Watch watch{worker, ends[0], signals, *heartbeat};
  return launch.rank == 0 ? collector_loop(plan, launch, watch)
                          : supervisor_loop(plan, launch, watch, meeting_s(launch.size));
}

}  // namespace assay::supervisor
