// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/metrics.hpp"

namespace assay::storage {

const Metrics& metrics();

}  // namespace assay::storage
