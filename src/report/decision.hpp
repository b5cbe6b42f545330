// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "results/model.hpp"

namespace assay::report {

/// What the verdict asks of whoever accepts the machine, in one sentence with the parts at fault: "Do not
/// accept: 2 of 64 nodes: sim17 (8 slow GPUs), sim30 (slow NIC 3)."
std::string decision_words(const results::Results& results, const results::VerdictData& verdict);

/// Why a PASS without promised values proves little; empty if there were limits or a baseline.
std::string unpromised_words(const std::string& limits_name, const std::string& baseline_name);

}  // namespace assay::report
