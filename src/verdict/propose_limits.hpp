// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "results/model.hpp"

namespace assay::verdict {

/// A file for --limits, proposed from a good run: per judged metric and processor or device model the bound
/// that all of its parts kept, with room for the delta of the metric's class below the median. TOML text;
/// units as --limits reads them.
std::string propose_limits(const results::Results& results, const std::string& file,
                           const std::string& state);

}  // namespace assay::verdict
