// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include <vector>

#include "results/model.hpp"

namespace assay::verdict {

/// A file for --limits, proposed from a good run: per judged metric and processor or device model the bound
/// that all of its parts kept, with room for the delta of the metric's class below the median. TOML text;
/// units as --limits reads them.
struct ProposedLimits {
  std::string text;
  std::size_t count = 0;
  std::vector<std::string> uncertain;  ///< those from few samples or a large spread: "METRIC (why)"
};
ProposedLimits propose_limits(const results::Results& results, const std::string& file,
                              const std::string& state);

}  // namespace assay::verdict
