// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/gpu_transports.hpp"

namespace assay {

const GpuTransports* sample_transports();
std::vector<GpuTransportInfo> sample_transport_infos();

}  // namespace assay
