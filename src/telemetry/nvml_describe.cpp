// SPDX-License-Identifier: Apache-2.0
// The inventory of GPUs.
#include <array>
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

std::string address_of(const nvml::PciInfo& pci) {
  char address[32];  // a GPU is function 0
  std::snprintf(address, sizeof address, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
  return address;
}

/// B/s one way of a link, by nvmlNvlinkVersion_t (1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0): lanes x signalling
/// rate.
double link_rate(unsigned version) {
  constexpr std::array rates = {unsupported, 20e9, 25e9, 25e9, 25e9, 25e9, 26.5625e9, 53.125e9};
  return version < rates.size() ? rates[version] : unsupported;
}

/// nvmlDeviceGpuRecoveryAction_t; empty where there is none to be had.
std::string recovery_action(double number) {
  constexpr std::array words = {"none", "reset", "reboot", "drain peer traffic", "drain and reset"};
  if (!(number >= 0)) return {};
  const auto index = static_cast<std::size_t>(number);
  return index < words.size() ? words[index] : "number " + std::to_string(index);
}

std::string fabric_trouble(unsigned health) {
  std::string text;
  unsigned shift = 0;
  for (const char* fault :
       {"degraded bandwidth", "route recovery", "route unhealthy", "access timeout recovery"}) {
    if ((health >> shift & 3U) == 1U) text += (text.empty() ? "" : ", ") + std::string(fault);
    shift += 2;
  }
  return text;
}

}  // namespace

void Nvml::describe_identity(int gpu, Gpu& out) const {
  out.name = text(f_.nvmlDeviceGetName, device(gpu));
  out.vbios = text(f_.nvmlDeviceGetVbiosVersion, device(gpu));
  out.part = text(f_.nvmlDeviceGetBoardPartNumber, device(gpu));
  if (nvml::PciInfo pci{}; f_.nvmlDeviceGetPciInfo_v3 != nullptr &&
                           f_.nvmlDeviceGetPciInfo_v3(device(gpu), &pci) == nvml::success) {
    out.pci = address_of(pci);
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

void Nvml::describe_links(int gpu, Gpu& out) const {
  std::tie(out.nvlinks_up, out.nvlinks) = links(gpu);
  for (const unsigned link : active_[static_cast<std::size_t>(gpu)]) {
    int end = -1;
    nvml::PciInfo pci{};
    if (f_.nvmlDeviceGetNvLinkRemoteDeviceType == nullptr ||
        f_.nvmlDeviceGetNvLinkRemoteDeviceType(device(gpu), link, &end) != nvml::success)
      continue;
    if (end == nvml::link_end_switch)
      out.nvlink_ends.emplace_back("switch");
    else if (end == nvml::link_end_gpu && f_.nvmlDeviceGetNvLinkRemotePciInfo_v2 != nullptr &&
             f_.nvmlDeviceGetNvLinkRemotePciInfo_v2(device(gpu), link, &pci) == nvml::success)
      out.nvlink_ends.push_back(address_of(pci));
    if (out.nvlink_rate_bytes_per_s > 0) continue;
    // Since Hopper by link. What does not know the field says so or answers 0.
    if (const double speed = fields(gpu, {{nvml::field::nvlink_speed, link}}).front().value; speed > 0)
      out.nvlink_rate_bytes_per_s = 1e6 * speed;
    unsigned version = 0;
    if (!(out.nvlink_rate_bytes_per_s > 0) && f_.nvmlDeviceGetNvLinkVersion != nullptr &&
        f_.nvmlDeviceGetNvLinkVersion(device(gpu), link, &version) == nvml::success)
      out.nvlink_rate_bytes_per_s = link_rate(version);
  }
}

/// What the driver itself says of the state of a GPU; younger drivers only.
void Nvml::describe_states(int gpu, Gpu& out) const {
  out.recovery_action = recovery_action(field(gpu, nvml::field::recovery_action).value);
  if (nvml::SramStatus sram{.version = nvml::sram_version, .counts = {}, .exceeded = 0};
      f_.nvmlDeviceGetSramEccErrorStatus != nullptr &&
      f_.nvmlDeviceGetSramEccErrorStatus(device(gpu), &sram) == nvml::success)
    out.sram_threshold = sram.exceeded != 0 ? "exceeded" : "kept";
  nvml::FabricInfo fabric{};
  fabric.version = nvml::fabric_version;
  if (f_.nvmlDeviceGetGpuFabricInfoV == nullptr ||
      f_.nvmlDeviceGetGpuFabricInfoV(device(gpu), &fabric) != nvml::success ||
      fabric.state == nvml::fabric_not_supported)
    return;
  out.fabric = fabric.state == nvml::fabric_not_started   ? "not started"
               : fabric.state == nvml::fabric_in_progress ? "in progress"
               : fabric.status == nvml::success           ? "completed"
                                                          : "failed (" + std::to_string(fabric.status) + ")";
  for (const unsigned char byte : fabric.cluster) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", byte);
    out.fabric_clique += hex;
  }
  out.fabric_clique += "/" + std::to_string(fabric.clique);
  out.fabric_trouble = fabric_trouble(fabric.health);
}

std::string Nvml::uuid(int gpu) const { return text(f_.nvmlDeviceGetUUID, device(gpu)); }

std::string Nvml::serial(int gpu) const { return text(f_.nvmlDeviceGetSerial, device(gpu)); }

Gpu Nvml::describe(int gpu) const {
  Gpu out;
  out.number = driver_number(gpu);
  describe_identity(gpu, out);
  describe_limits(gpu, out);
  describe_modes(gpu, out);
  describe_links(gpu, out);
  describe_states(gpu, out);
  return out;
}

void describe_gpus(const Nvml& nvml, Node& node) {
  if (const std::string driver = nvml.driver(); !driver.empty())
    node.software.edit()["nvidia.driver"] = driver;
  if (const std::string version = nvml.version(); !version.empty())
    node.software.edit()["nvidia.nvml"] = version;
  for (int gpu = 0; gpu < nvml.count(); ++gpu) {
    node.gpus.push_back(nvml.describe(gpu));
    node.gpu_uuids.push_back(nvml.uuid(gpu));
    node.gpu_serials.push_back(nvml.serial(gpu));
  }
  node.gpus_lost = nvml.lost();
  node.gpus_hidden = nvml.hidden();
}

}  // namespace assay
