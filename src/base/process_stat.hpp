// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a process in /proc/<pid>/stat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay {

struct ProcessStat {
  char state = 0;               ///< R, S, D, T, Z (zombie), X, ...
  int parent = -1;              ///< process id
  std::uint64_t cpu_ticks = 0;  ///< processor time of all its threads, user and system, in clock ticks
  std::uint64_t start = 0;      ///< clock ticks from boot to the start of the process
  int cpu = -1;                 ///< it ran on last
  /// Ended, and only not asked for yet by its parent.
  bool ended() const noexcept { return state == 'Z' || state == 'X'; }
};

/// `process` is a process id, "self", or a thread: "4711/task/4712". nullopt when there is no such process,
/// or nothing to be read of it.
std::optional<ProcessStat> process_stat(const std::string& process, const std::string& proc = "/proc");

/// Since it started; nullopt as above.
std::optional<double> process_age_s(const std::string& process);

/// What of the age of a process, of a launch of `ranks`, was its start: nothing where that is more than a
/// start takes. In a job script that ends with `exec` it was another program before.
double process_start_s(std::optional<double> age_s, int ranks) noexcept;

/// The name of the parent process where that is Open MPI's launcher, also one that a loader was told to
/// start, or with `daemons` one of its daemons, which may be older than the job; empty elsewhere.
std::string launcher_parent(bool daemons, const std::string& proc = "/proc");

}  // namespace assay
