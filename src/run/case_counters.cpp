// SPDX-License-Identifier: Apache-2.0
#include "run/case_counters.hpp"

namespace assay {

std::vector<double> CaseCounters::before() {
  auto before = set_.read();
  last_.resize(before.size(), 0);
  for (std::size_t i = 0; i < before.size(); ++i)
    if (set_.sources()[i].error && last_[i] < before[i]) before[i] = last_[i];
  return before;
}

}  // namespace assay
