// SPDX-License-Identifier: Apache-2.0
// The build without CUDA.
#include "transport/cuda/cuda_transports.hpp"

namespace assay {

const GpuTransports* cuda_transports() { return nullptr; }

std::vector<GpuTransportInfo> cuda_transport_infos() {
  return {{"nccl", false, "not built: no NCCL with CUDA where this was built"},
          {"cuda", false, "not built: no CUDA toolkit where this was built"}};
}

}  // namespace assay
