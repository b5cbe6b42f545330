// SPDX-License-Identifier: Apache-2.0
#include "run/device_offer.hpp"

#include "device/cuda/cuda_backend.hpp"

namespace assay {

DeviceOffer device_offer(const Config& config) noexcept {
  DeviceOffer offer;
  const CudaBackend& cuda = cuda_backend();
  offer.cuda_built = cuda.built();
  if (config.device == "host" || !offer.cuda_built) return offer;
  try {
    for (const VisibleGpu& gpu : cuda.visible(offer.why_none, &offer.lost_gpus))
      offer.visible_gpus.push_back(gpu.uuid);
  } catch (const std::exception& e) {
    offer.lost_gpus.emplace_back(e.what());
  }
  offer.look = [&cuda](const std::string& uuid) {
    GpuLook look{cuda.free_bytes(uuid), cuda.sweep_rate(uuid), cuda.make_device(uuid)};
    look.device->synchronize();
    return look;
  };
  return offer;
}

}  // namespace assay
