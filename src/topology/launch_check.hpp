// SPDX-License-Identifier: Apache-2.0
// Was the program started as it should have been? Asked before anything is measured.
#pragma once

#include <string>
#include <vector>

#include "base/system.hpp"
#include "topology/topology.hpp"

namespace assay {

/// What --expect-nodes, --expect-ranks, --expect-devices (per node) demand; 0 = nothing.
struct LaunchExpectations {
  std::int64_t nodes = 0, ranks = 0, devices = 0;
  bool host_only = false;  ///< --device host: GPUs are left alone on purpose

  /// An expected number of devices requires all of them to be measured.
  const char* severity_of_uncovered() const noexcept { return devices > 0 ? "inconclusive" : "warn"; }
};

struct LaunchFinding {
  std::string severity;       ///< info|warn|inconclusive|fail
  std::string kind;           ///< missing|mismatch|lost|singletons|oversubscribed|uncovered|uneven|quota|idle
  std::string text;           ///< one line that names the node or rank
  int node = -1;              ///< index into Topology::nodes, -1 = the whole launch
  std::string left_out = {};  ///< name of a node that takes no part because of it; empty: none

  std::string event_kind() const { return "launch-" + severity; }  ///< in /events
};

/// All findings, the same on every rank when `environment` is rank 0's. `sibling_singletons` as counted
/// below.
std::vector<LaunchFinding> check_launch(const Topology& topology, const LaunchExpectations& expectations,
                                        const LaunchEnvironment& environment, int sibling_singletons = 0);

/// How many other processes with this very command line the same parent started: more than none beside an MPI
/// world of one means that a launcher of another MPI started N separate programs. 0 if unknown.
int count_sibling_singletons(const std::string& proc = "/proc");

}  // namespace assay
