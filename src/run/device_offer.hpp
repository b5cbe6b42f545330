// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.hpp"
#include "run/device_selection.hpp"

namespace assay {

/// What this process could measure with beside the CPUs. CUDA is not asked where nobody wants to know. Throws
/// nothing: what is wrong with a GPU is part of the offer.
DeviceOffer device_offer(const Config& config) noexcept;

}  // namespace assay
