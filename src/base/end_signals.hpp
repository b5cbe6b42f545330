// SPDX-License-Identifier: Apache-2.0
// The signals that end a run.
#pragma once

#include <vector>

namespace assay {

/// Whether this process ignores a signal: nohup(1), or a command in the background of a script.
bool ignores(int signal) noexcept;

/// SIGUSR1, SIGUSR2, SIGTERM, SIGINT and SIGHUP, without those of a terminal (the last two) that this process
/// was started to ignore: where they are blocked to be read, they would arrive nevertheless.
std::vector<int> end_signals();

/// Terminals hang up on groups of processes. Launchers handle SIGHUP and SIGINT even where they were started
/// to ignore them (Open MPI, Slurm); then this process gets a group of its own, and nothing to read.
void leave_group_of_terminal() noexcept;

}  // namespace assay
