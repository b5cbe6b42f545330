// SPDX-License-Identifier: Apache-2.0
// A run as its supervisors see it: the real collector, run controller and file writer in one process, and in
// others the real routes and relays of all other ranks, over real sockets. The ranks are made: they measure
// nothing and hand in records: of each device, and of the links of a case of pairs.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace assay::bench {

/// Nodes that something happens to in the second case; -1: none.
struct Upset {
  int killed = -1;  ///< its relay ends
  int silent = -1;  ///< all its supervisors stop
  int slow = -1;    ///< 100 times slower than the others, in all cases
  bool any() const noexcept { return killed >= 0 || silent >= 0 || slow >= 0; }
};

/// What is run: cases of a level that match, with so many samples of each row.
struct Work {
  std::string level, cases;
  std::size_t samples = 100;
};

/// Wall-clock times; the made ranks of all nodes share the cores with rank 0's supervisor.
struct Rehearsed {
  double first_sample_s = 0;  ///< from the launch until the first case is handed out
  double gather_s = 0;        ///< handing out a case, collecting it and storing it: median
  double end_s = 0;           ///< from the end of the last case to the exit of rank 0's supervisor
  double first_cpu_s = 0, gather_cpu_s = 0,
         end_cpu_s = 0;      ///< processor time of rank 0's supervisor in these
  double supervisor_mb = 0;  ///< most memory of rank 0's supervisor until the last case is stored
  double judging_mb = 0;     ///< the same until it exits
  double file_mb = 0;
  int cases = 0, exit_code = -1;
  std::string state;  ///< of the verdict of the file, judged again
  std::vector<std::string> reasons;
  std::set<std::string> lost;   ///< nodes of lost ranks and the kind of the loss, as the collector says
  std::set<std::string> named;  ///< nodes that a finding of the file or its parts are of
};

/// Throws Error when a process of it fails.
Rehearsed rehearse(int nodes, const Work& work, const Upset& upset, const std::string& folder);

}  // namespace assay::bench
