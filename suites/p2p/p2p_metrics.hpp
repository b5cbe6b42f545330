// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/metrics.hpp"

namespace assay::p2p {

/// All that this suite measures.
const Metrics& metrics();

}  // namespace assay::p2p
