// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.hpp"
#include "run/device_selection.hpp"

namespace assay {

/// The devices of this process beside the CPUs, of each backend that is built and needed. Errors
/// of a GPU are part of them.
std::vector<AvailableDevices> available_devices(const Config& config);

/// GPUs that this process could measure with.
int count_gpus();

}  // namespace assay
