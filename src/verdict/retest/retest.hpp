// SPDX-License-Identifier: Apache-2.0
// Retests: suspects of the screening, and the cases to measure again in the same job before a part can fail.
// Screening is liberal; only new data fail an entity against its peers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/model.hpp"
#include "verdict/verdict.hpp"

namespace assay::verdict {

/// A directed pair of rows of /entities (devices or NICs).
struct LinkEnds {
  std::int32_t source = -1, destination = -1;
};

/// One screening case to be measured again. The retest case is stored as `<name>.cK` (K = 1, 2, ...) with the
/// same case_key, kind, metrics and stage; its rows are the candidates and the controls (or the links of
/// `rounds`), its samples lie in >= 3 blocks in which candidates and controls take turns, and its `t` holds
/// their times.
struct Retest {
  std::string suite, name;  ///< the screening case, without suffix
  std::string metric;       ///< what made them candidates
  std::vector<std::int32_t> candidates,
      controls;  ///< rows of /entities, disjoint. Links: devices or NICs, not links
  std::vector<std::vector<LinkEnds>>
      rounds;                 ///< links only: disjoint pairs per round, same partner first, then new ones
  std::int32_t samples = 30;  ///< samples per entity (per link: of all its rounds together)
  int number = 1;             ///< K of the retest case
  /// Another way of measuring, as parameter `variant` (and so with a case_key of its own). "halves": a
  /// collective of all nodes among all, their halves, quarters, ... side by side, covariate `group` =
  /// 1,000,000 x size + part.
  std::string variant;
};

/// The retests of a file, most promising first; empty without suspects, or when all were measured. Pure and
/// deterministic. The runner and the simulator call it after the last planned stage, run what fits the share
/// of the budget, and call again until it is empty.
std::vector<Retest> retests(const results::Results& results, const Options& options);

}  // namespace assay::verdict
