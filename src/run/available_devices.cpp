// SPDX-License-Identifier: Apache-2.0
#include "run/available_devices.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <string>

#include "base/child_process.hpp"
#include "device/backend.hpp"

namespace assay {
namespace {

AvailableDevices devices_of(const DeviceBackend& backend) {
  AvailableDevices devices;
  devices.backend = backend.name();
  devices.pci_vendor = backend.pci_vendor();
  try {
    std::string why;
    for (const VisibleGpu& gpu : backend.visible(why, &devices.lost_gpus))
      devices.visible_gpus.push_back(gpu.uuid);
  } catch (const std::exception& e) {
    devices.lost_gpus.emplace_back(e.what());
  }
  devices.look = [&backend](const std::string& uuid) {
    GpuLook look{backend.free_bytes(uuid), backend.sweep_rate(uuid), backend.make_device(uuid)};
    look.device->synchronize();
    look.no_products = look.device->no_products();
    return look;
  };
  return devices;
}

}  // namespace

std::vector<AvailableDevices> available_devices(const Config& config) {
  std::vector<AvailableDevices> available;
  for (const DeviceBackend* backend : device_backends())
    if (backend->built() && (config.device == "auto" || config.device == backend->name()))
      available.push_back(devices_of(*backend));
  return available;
}

int count_gpus() {
  const auto& backends = device_backends();
  if (std::none_of(backends.begin(), backends.end(), [](const auto* backend) { return backend->built(); }))
    return 0;
  // Their runtimes must not be up in a process that forks ranks later.
  ChildProcess child("a process that counts GPUs", [&] {
    std::string why;
    std::size_t count = 0;
    for (const DeviceBackend* backend : backends)
      if (count == 0 && backend->built()) count = backend->visible(why).size();
    return static_cast<int>(std::min<std::size_t>(count, 127));
  });
  const int status = child.wait();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

}  // namespace assay
