// SPDX-License-Identifier: Apache-2.0
// The inventory of GPUs.
#include <cstdio>
#include <tuple>

#include "base/system.hpp"
#include "telemetry/nvml.hpp"
#include "topology/sysfs.hpp"

namespace assay {
namespace {

using nvml::Device;
using nvml::Return;

std::string text(Return (*function)(Device, char*, unsigned), Device device) {
  char buffer[nvml::text_bytes] = "";
  if (function == nullptr || function(device, buffer, sizeof buffer) != nvml::success) return {};
  buffer[sizeof buffer - 1] = 0;
  return sysfs::clean(buffer);
}

double number(Return (*function)(Device, unsigned*), double factor, Device device) {
  unsigned value = 0;
  return function != nullptr && function(device, &value) == nvml::success ? value * factor : unsupported;
}

std::string on_off(bool on) { return on ? "on" : "off"; }

std::string on_off(Return (*function)(Device, int*), Device device) {
  int state = 0;
  return function != nullptr && function(device, &state) == nvml::success ? on_off(state != 0) : "";
}

const char* compute_mode(int mode) {
  switch (mode) {
    case 0: return "default";
    case 2: return "prohibited";
    case 3: return "exclusive process";
    default: return "exclusive thread";
  }
}

}  // namespace

void Nvml::describe_identity(int gpu, Gpu& out) const {
  out.uuid = text(f_.nvmlDeviceGetUUID, device(gpu));
  out.serial = text(f_.nvmlDeviceGetSerial, device(gpu));
  out.name = text(f_.nvmlDeviceGetName, device(gpu));
  out.vbios = text(f_.nvmlDeviceGetVbiosVersion, device(gpu));
  out.part = text(f_.nvmlDeviceGetBoardPartNumber, device(gpu));
  if (nvml::PciInfo pci{}; f_.nvmlDeviceGetPciInfo_v3 != nullptr &&
                           f_.nvmlDeviceGetPciInfo_v3(device(gpu), &pci) == nvml::success) {
    char address[32];  // a GPU is function 0
    std::snprintf(address, sizeof address, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
    out.pci = address;
    out.numa = static_cast<int>(read_integer("/sys/bus/pci/devices/" + out.pci + "/numa_node").value_or(-1));
  }
  int major = 0, minor = 0;
  if (f_.nvmlDeviceGetCudaComputeCapability != nullptr &&
      f_.nvmlDeviceGetCudaComputeCapability(device(gpu), &major, &minor) == nvml::success)
    out.compute = std::to_string(major) + "." + std::to_string(minor);
}

void Nvml::describe_limits(int gpu, Gpu& out) const {
  constexpr double hz_per_mhz = 1e6, w_per_mw = 1e-3;
  if (nvml::Memory memory{}; f_.nvmlDeviceGetMemoryInfo != nullptr &&
                             f_.nvmlDeviceGetMemoryInfo(device(gpu), &memory) == nvml::success)
    out.memory_bytes = static_cast<double>(memory.total);
  const auto clock = [&](int domain) {
    unsigned mhz = 0;
    return f_.nvmlDeviceGetMaxClockInfo != nullptr &&
                   f_.nvmlDeviceGetMaxClockInfo(device(gpu), domain, &mhz) == nvml::success
               ? mhz * hz_per_mhz
               : unsupported;
  };
  out.sm_clock_max_hz = clock(nvml::clock_sm);
  out.memory_clock_max_hz = clock(nvml::clock_memory);
  out.memory_bus_bits = number(f_.nvmlDeviceGetMemoryBusWidth, 1, device(gpu));
  out.shader_cores = number(f_.nvmlDeviceGetNumGpuCores, 1, device(gpu));
  out.power_limit_w = number(f_.nvmlDeviceGetEnforcedPowerLimit, w_per_mw, device(gpu));
  out.power_limit_default_w = number(f_.nvmlDeviceGetPowerManagementDefaultLimit, w_per_mw, device(gpu));
  unsigned least = 0, most = 0;
  if (f_.nvmlDeviceGetPowerManagementLimitConstraints != nullptr &&
      f_.nvmlDeviceGetPowerManagementLimitConstraints(device(gpu), &least, &most) == nvml::success)
    out.power_limit_max_w = most * w_per_mw;
  out.pcie_generation = pcie_generation(gpu).value;
  out.pcie_width = pcie_width(gpu).value;
  out.pcie_generation_max = number(f_.nvmlDeviceGetMaxPcieLinkGeneration, 1, device(gpu));
  out.pcie_width_max = number(f_.nvmlDeviceGetMaxPcieLinkWidth, 1, device(gpu));
  std::tie(out.nvlinks_up, out.nvlinks) = links(gpu);
}

void Nvml::describe_modes(int gpu, Gpu& out) const {
  int now = 0, later = 0;
  if (f_.nvmlDeviceGetEccMode != nullptr &&
      f_.nvmlDeviceGetEccMode(device(gpu), &now, &later) == nvml::success)
    out.ecc = on_off(now != 0) + (now != later ? ", " + on_off(later != 0) + " after a reset" : "");
  unsigned mig = 0, mig_later = 0;
  if (f_.nvmlDeviceGetMigMode != nullptr &&
      f_.nvmlDeviceGetMigMode(device(gpu), &mig, &mig_later) == nvml::success)
    out.mig = on_off(mig != 0) + (mig != mig_later ? ", " + on_off(mig_later != 0) + " after a reset" : "");
  out.persistence = on_off(f_.nvmlDeviceGetPersistenceMode, device(gpu));
  int mode = 0;
  if (f_.nvmlDeviceGetComputeMode != nullptr &&
      f_.nvmlDeviceGetComputeMode(device(gpu), &mode) == nvml::success)
    out.compute_mode = compute_mode(mode);
}

Gpu Nvml::describe(int gpu) const {
  Gpu out;
  describe_identity(gpu, out);
  describe_limits(gpu, out);
  describe_modes(gpu, out);
  return out;
}

void describe_gpus(const Nvml& nvml, Node& node) {
  if (const std::string driver = nvml.driver(); !driver.empty())
    node.software.edit()["nvidia.driver"] = driver;
  if (const std::string version = nvml.version(); !version.empty())
    node.software.edit()["nvidia.nvml"] = version;
  for (int gpu = 0; gpu < nvml.count(); ++gpu) node.gpus.push_back(nvml.describe(gpu));
  node.gpus_lost = nvml.lost();
}

}  // namespace assay
