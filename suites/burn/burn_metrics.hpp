// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/metrics.hpp"

namespace assay::burn {

/// All that this suite measures.
const Metrics& metrics();

}  // namespace assay::burn
