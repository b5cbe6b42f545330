// SPDX-License-Identifier: Apache-2.0
// What metrics, cases and plan rows say of themselves; what files before schema 1.3 leave out is filled in
// here and nowhere else.
#pragma once

#include "results/model.hpp"

namespace assay::results {

Judging judging_of(const CaseData& c, const Metric& m);
CaseTraits traits_of(const CaseData& c);
/// The checkers whose self-test a planned case needs. Declared is false for one that should have named some
/// and did not.
struct Checkers {
  bool declared = true;
  std::vector<std::string> names;
};
Checkers checkers_of(const PlanRow& row);

}  // namespace assay::results
