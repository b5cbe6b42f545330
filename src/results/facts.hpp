// SPDX-License-Identifier: Apache-2.0
// What a case has shown that no later measurement takes back. A case that did not end well runs again and its
// samples are replaced; these stand beside what it measures then.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "results/writer.hpp"

namespace assay::results {

struct Facts {
  std::vector<Miscompare> errors;
  std::vector<CounterRow> counters;  ///< of errors, that rose

  bool empty() const noexcept { return errors.empty() && counters.empty(); }
};

Facts facts_of(const CaseBundle& bundle);
/// The paths of cases with facts.
std::set<std::string> cases_with_facts(const Results& results);
/// Puts them before what the bundle has of its own: they were seen earlier.
void add_facts(Facts&& facts, CaseBundle& bundle);

}  // namespace assay::results
