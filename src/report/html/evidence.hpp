// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "report/html/page.hpp"

namespace assay::report {

/// The samples behind the findings that name a metric, in their order; at most `most` findings.
std::vector<Evidence> evidence_of(const PageInput& input, const Seen& seen, std::size_t most);

}  // namespace assay::report
