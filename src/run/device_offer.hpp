// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.hpp"
#include "run/device_selection.hpp"

namespace assay {

/// What this process could measure with beside the CPUs, one offer for each backend that is built and wanted.
/// No backend is asked where nobody wants to know. What is wrong with a GPU is part of the offer.
std::vector<DeviceOffer> device_offers(const Config& config);

}  // namespace assay
