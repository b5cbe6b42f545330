// SPDX-License-Identifier: Apache-2.0
// How findings were confirmed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay::report {

/// Retest cases (NAME.cK) by "suite/NAME".
class Retests {
 public:
  explicit Retests(const results::Results& results);

  /// "no", or "yes" with the reason: a retest, time, size or a fact.
  std::string confirmation_of(const results::Finding& f) const;

 private:
  /// Samples of the metric of a finding in retests of its part; 0: none was measured again.
  std::size_t samples_of(const results::Finding& f) const;

  const results::Results& results_;
  std::map<std::string, std::vector<const results::CaseData*>> cases_;
};

}  // namespace assay::report
