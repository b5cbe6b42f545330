// SPDX-License-Identifier: Apache-2.0
#include "guard/culprit.hpp"

#include <algorithm>
#include <functional>

namespace assay::guard {

std::vector<int> culprits(const std::vector<Suspect>& missing) {
  std::vector<int> found;
  if (missing.empty()) return found;
  const auto first = std::min_element(missing.begin(), missing.end(), [](const Suspect& a, const Suspect& b) {
    return a.at.phase < b.at.phase;
  })->at.phase;
  const auto last = std::max_element(missing.begin(), missing.end(), [](const Suspect& a, const Suspect& b) {
    return a.at.phase < b.at.phase;
  })->at.phase;
  const std::vector<std::function<bool(const Suspect&)>> rules = {
      [](const Suspect& s) { return !s.heard; },
      [](const Suspect& s) { return s.at.process_state == 'T' || s.at.process_state == 't' || s.at.process_state == 'Z'; },
      [&](const Suspect& s) { return first != last && s.at.phase == first; },
      [](const Suspect& s) { return s.at.call == Call::none && s.at.phase != Phase::mpi_init; },
      [](const Suspect& s) { return s.at.peer != no_peer; },
  };
  for (const auto& rule : rules) {
    for (const Suspect& s : missing)
      if (rule(s)) found.push_back(s.rank);
    if (!found.empty()) return found;
  }
  for (const Suspect& s : missing) found.push_back(s.rank);
  return found;
}

}  // namespace assay::guard
