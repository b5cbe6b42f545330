// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs. One of three implementations is linked: the CUDA runtime, its emulation on the host (tests),
// or none.
#pragma once

#include "device/backend.hpp"

namespace assay {

const DeviceBackend& cuda_backend();

}  // namespace assay
