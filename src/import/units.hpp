// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace assay::imports {

struct UnitScale {
  std::string base;   ///< of the closed list of the schema
  double factor = 1;  ///< base = factor x as written
};

/// "GB/s", "Gbps", "TFLOPS", "GFLOP/s", "us", "MHz", "%", "tokens/s" ... Throws Error(usage) for what is
/// unknown.
UnitScale unit_scale(const std::string& text);

}  // namespace assay::imports
