// SPDX-License-Identifier: Apache-2.0
// Suspects among peers before the retest. The same function serves the retest stage, which measures its
// candidates, and the judgement, which reads the results.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "verdict/abnormality.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {

struct Suspect {
  std::size_t population = 0, member = 0;
  std::string kind;       ///< slow|slow_at_clock|throttled
  bool at_clock = false;  ///< the deficit is that of the residual, held against delta; otherwise of the rate,
                          ///< against delta_raw
  double deficit = 0;     ///< logarithmic
  double delta = 0;       ///< fraction
  double p = 1;  ///< adjusted for the population, the populations of the run, and the metrics combined
  bool combined = false;     ///< abnormal by several metrics of a suite together
  bool warn = false;         ///< worth a warning by itself
  bool by_size = false;      ///< a warning for its size alone, which says nothing of how the others differ
  bool note = false;         ///< worth a note, nothing more
  bool candidate = false;    ///< far enough out to be measured again
  bool sure = false;         ///< may fail if the retest confirms it
  std::size_t siblings = 0;  ///< devices of its node against which alone it is slow; 0: slow among all peers
  bool spared = false;  ///< no candidate because so many are as slow that they may be another kind of part
};

struct Screening {
  std::vector<Population> populations;
  std::vector<Suspect> suspects;  ///< by population, then member
  double budget = 0;  ///< chance that a healthy run has an abnormal member at the level of a fault: what was
                      ///< spent of alpha_fail
};

/// Those that are slow in so large a company that it may be another kind of part are no candidates, and
/// neither is a part that is faster than a side that may be one. A device that is slow beside healthy ones of
/// its node has only such devices for company: kinds come by whole nodes. O(N log N) per population.
void spare_kinds(const EntityIndex& entities, const std::vector<Population>& populations,
                 std::vector<Suspect>& suspects);

/// All populations of the run. O(N log N) per metric.
Screening screen_populations(const Judgement& j);

}  // namespace assay::verdict
