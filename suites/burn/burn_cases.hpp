// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"

namespace assay::burn {

/// `algorithm`: what the products are computed with; null where the library chooses by itself.
void run_mixed(const Case& c, const GemmAlgorithm* algorithm, Context& context);
void run_pulse(const Case& c, Context& context);

}  // namespace assay::burn
