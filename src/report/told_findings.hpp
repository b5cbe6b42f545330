// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay::report {

/// A line of a list of findings.
struct Told {
  const results::Finding* finding;  ///< of the findings given
  std::string text;
};

/// FAILs and WARNs in their order. What several references (a limit, peers, a baseline, the part's own
/// history) say of one part in one suite is told once: by the most severe finding, of equal ones by the most
/// binding reference, with the deficits against the others.
std::vector<Told> told_findings(const std::vector<results::Finding>& findings);

}  // namespace assay::report
