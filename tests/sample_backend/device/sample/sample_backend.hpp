// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/backend.hpp"

namespace assay {

const DeviceBackend& sample_backend();

}  // namespace assay
