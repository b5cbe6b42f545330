// SPDX-License-Identifier: Apache-2.0
// Transports between NVIDIA GPUs. One of three implementations is linked: compiled against the CUDA Toolkit,
// against its emulation on the host (tests), or none.
#pragma once

#include "transport/gpu_transports.hpp"

namespace assay {

/// Null where this build has none.
const GpuTransports* cuda_transports();
std::vector<GpuTransportInfo> cuda_transport_infos();

}  // namespace assay
