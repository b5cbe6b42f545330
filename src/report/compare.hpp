// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/report.hpp"
#include "verdict/compare.hpp"

namespace assay::report {

/// What `assay compare` prints: per metric both medians, the ratio of the rates with its interval, spread and
/// worst unit.
std::string compare_text(const verdict::CompareResult& result, const verdict::CompareOptions& options,
                         const Style& style);
/// The same and more for programs: `assay compare --json`.
std::string compare_json(const verdict::CompareResult& result, const verdict::CompareOptions& options);

}  // namespace assay::report
