// SPDX-License-Identifier: Apache-2.0
#include "run/device_offer.hpp"

#include "device/backend.hpp"

namespace assay {
namespace {

DeviceOffer offer_of(const DeviceBackend& backend) {
  DeviceOffer offer;
  offer.backend = backend.name();
  try {
    std::string why;
    for (const VisibleGpu& gpu : backend.visible(why, &offer.lost_gpus))
      offer.visible_gpus.push_back(gpu.uuid);
  } catch (const std::exception& e) {
    offer.lost_gpus.emplace_back(e.what());
  }
  offer.look = [&backend](const std::string& uuid) {
    GpuLook look{backend.free_bytes(uuid), backend.sweep_rate(uuid), backend.make_device(uuid)};
    look.device->synchronize();
    look.no_products = look.device->no_products();
    return look;
  };
  return offer;
}

}  // namespace

std::vector<DeviceOffer> device_offers(const Config& config) {
  std::vector<DeviceOffer> offers;
  for (const DeviceBackend* backend : device_backends())
    if (backend->built() && (config.device == "auto" || config.device == backend->name()))
      offers.push_back(offer_of(*backend));
  return offers;
}

}  // namespace assay
