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

/// A member of a population that is slow enough to be noted, warned of or measured again.
struct Suspect {
  std::size_t population = 0, member = 0;  ///< places in Screening::populations and in it
  std::string kind;                        ///< slow|slow_at_clock|throttled
  bool at_clock = false;  ///< the deficit is that of the residual, held against delta; otherwise of the rate,
                          ///< against delta_raw
  double deficit = 0;     ///< difference of log rates, positive is slower
  double delta = 0;       ///< fault threshold, a fraction of the rate
  double p = 1;  ///< adjusted for the population, the populations of the run, and the metrics combined
  bool combined = false;   ///< abnormal by several metrics of a suite together
  bool warn = false;       ///< worth a warning by itself
  bool by_size = false;    ///< a warning for the size of the deficit alone, whatever the spread of the others
  bool note = false;       ///< worth a note, nothing more
  bool candidate = false;  ///< far enough out to be measured again
  bool sure = false;       ///< may fail if the retest confirms it
  std::size_t siblings = 0;  ///< devices of its node against which alone it is slow; 0: slow among all peers
  bool spared = false;       ///< no candidate: so many parts are as slow that they may be another model
};

struct Screening {
  std::vector<Population> populations;
  std::vector<Suspect> suspects;  ///< by population, then member
  double budget = 0;              ///< chance of a wrong FAIL in a healthy run, at most alpha_fail
};

/// Removes suspects that may be healthy parts of another model: those that are slow together with so many
/// others that the group may be a model, and parts that are faster than such a group. Models come by whole
/// nodes: a device that is slow beside healthy devices of its node counts with other such devices only.
/// Sets `spared`, and clears `candidate` and `sure`. O(N log N) per population.
void spare_other_models(const EntityIndex& entities, const std::vector<Population>& populations,
                        std::vector<Suspect>& suspects);

/// All populations of the run. O(N log N) per metric.
Screening screen_populations(const Judgement& j);

}  // namespace assay::verdict
