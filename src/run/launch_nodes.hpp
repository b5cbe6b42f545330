// SPDX-License-Identifier: Apache-2.0
// The nodes of a launch, asked one by one where the launch as a whole did not begin.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "run/launcher_process.hpp"

namespace assay {

/// The nodes on which a launcher with these words starts ranks, each once: those of its --host, --hostfile or
/// --nodelist, else those of the batch job (Slurm, PBS, LSF) or of Open MPI's default host file. Empty where
/// they are unknown.
std::vector<std::string> launch_nodes(const std::vector<std::string>& words);

/// Why, by name, of those nodes that do not answer.
using SilentNodes = std::map<std::string, std::string>;

/// Starts `program` by `launcher` (as typed, with `{exclude}`) on each of `nodes` alone, without the others
/// and `excluded`, many at once, for `limit_s` seconds each; of more than 64 nodes first on groups, and on
/// each node of those groups that do not answer, unless no group does in time; one that fails in time is
/// asked twice. Ends early, without having asked all, when a signal comes or `stop` says so. Throws
/// Error(usage) for a launcher that cannot be read.
SilentNodes silent_nodes(
    const std::string& launcher, const std::vector<std::string>& program, const std::set<std::string>& nodes,
    const std::set<std::string>& excluded, double limit_s, Signals& signals,
    const std::function<bool()>& stop = [] { return false; });

}  // namespace assay
