// SPDX-License-Identifier: Apache-2.0
// Kinds of GPUs beside the host, as this build can use them. CMake lists them (ASSAY_BACKENDS): each is a
// folder <name> here and in transport, whose build without its toolkit says so.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"

namespace assay {

/// A GPU that this process may use.
struct VisibleGpu {
  int ordinal = -1;       ///< the number that its runtime gives it
  std::string uuid;       ///< "GPU-00112233-4455-..." as NVML and nvidia-smi write it
  std::string pci, name;  ///< "0000:17:00.0"
  double memory_bytes = 0;
  int multiprocessors = 0, major = 0, minor = 0;  ///< compute capability
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  /// As in --device, as Device::kind() of its devices, and in files.
  virtual std::string_view name() const noexcept = 0;
  virtual bool built() const noexcept = 0;
  /// Of its GPUs on the PCI bus, as sysfs writes it ("0x10de"); empty where it is not known.
  virtual std::string_view pci_vendor() const noexcept { return {}; }
  /// For `assay list`: versions and architectures, or why it is not built.
  virtual std::string description() const = 0;
  /// The GPUs that this process sees, in the runtime's order. When there are none, `why` says the reason. Of
  /// those that the runtime counts and cannot describe, `lost` gets a line each.
  virtual std::vector<VisibleGpu> visible(std::string& why,
                                          std::vector<std::string>* lost = nullptr) const = 0;
  /// Memory of the GPU `uuid` that is free. Makes this process one of its users. Throws Error(device)
  /// when it cannot be used, Error(resource) when that is because others use it.
  virtual double free_bytes(const std::string& uuid) const = 0;
  /// B/s of one sweep of a RAM pattern that verifies and writes, over at most 256 MiB and in a few
  /// milliseconds: what plans of time are made from, no result. Other users of the GPU slow it down. Throws
  /// as `free_bytes`.
  virtual double sweep_rate(const std::string& uuid) const = 0;
  /// A device on it. Throws Error(device).
  virtual std::unique_ptr<Device> make_device(const std::string& uuid) const = 0;
};

/// All that this build has, in the order in which --device auto tries them.
const std::vector<const DeviceBackend*>& device_backends();

}  // namespace assay
