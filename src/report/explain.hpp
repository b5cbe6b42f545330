// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/report.hpp"
#include "verdict/explain.hpp"

namespace assay::report {

/// `assay verdict --explain NAME`: state, findings in full, every metric with its references, counters,
/// events, errors.
std::string explain_text(const verdict::Explanation& e, const Style& style);

}  // namespace assay::report
