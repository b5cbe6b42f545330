// SPDX-License-Identifier: Apache-2.0
#include "telemetry/nvml.hpp"

#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <utility>

#include "topology/sysfs.hpp"

namespace assay {
namespace {

using nvml::Return;

constexpr double hz_per_mhz = 1e6, j_per_mj = 1e-3;
constexpr double zero_celsius_k = 273.15;

/// Whether something cannot be told here, or could not be told this time.
Told told(Return result) {
  switch (result) {
    case nvml::success: return Told::value;
    case nvml::not_supported:
    case nvml::no_permission:
    case nvml::function_not_found:
    case nvml::argument_version_mismatch:
    case nvml::deprecated: return Told::absent;
    default: return Told::failed;
  }
}

/// Calls what may not be there; the result stands in the last argument. `factor` makes the unit of it.
template <typename Number, typename Function, typename... Arguments>
Reading ask(Function function, double factor, Arguments... arguments) {
  if (function == nullptr) return {};
  Number number{};
  const Told answer = told(function(arguments..., &number));
  return {answer, answer == Told::value ? static_cast<double>(number) * factor : unsupported};
}

double number_of(const nvml::FieldValue& value) {
  switch (value.type) {
    case nvml::type_double: return value.value.as_double;
    case nvml::type_unsigned: return value.value.as_unsigned;
    case nvml::type_unsigned_long: return static_cast<double>(value.value.as_unsigned_long);
    case nvml::type_unsigned_long_long: return static_cast<double>(value.value.as_unsigned_long_long);
    case nvml::type_long_long: return static_cast<double>(value.value.as_long_long);
    case nvml::type_int: return value.value.as_int;
    case nvml::type_unsigned_short: return value.value.as_unsigned_short;
    default: return unsupported;
  }
}

std::string text_from(Return (*function)(char*, unsigned)) {
  char text[nvml::text_bytes] = "";
  if (function == nullptr || function(text, sizeof text) != nvml::success) return {};
  text[sizeof text - 1] = 0;
  return sysfs::clean(text);
}

nvml::Functions load(void* library) {
  nvml::Functions f;
  const auto find = [library]<typename F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
  };
#define ASSAY_FIND(name) find(f.name, #name)
  ASSAY_FIND(nvmlInit_v2), ASSAY_FIND(nvmlShutdown), ASSAY_FIND(nvmlErrorString);
  ASSAY_FIND(nvmlSystemGetDriverVersion), ASSAY_FIND(nvmlSystemGetNVMLVersion);
  ASSAY_FIND(nvmlDeviceGetCount_v2), ASSAY_FIND(nvmlDeviceGetHandleByIndex_v2), ASSAY_FIND(nvmlDeviceGetName);
  ASSAY_FIND(nvmlDeviceGetUUID), ASSAY_FIND(nvmlDeviceGetSerial), ASSAY_FIND(nvmlDeviceGetVbiosVersion);
  ASSAY_FIND(nvmlDeviceGetBoardPartNumber), ASSAY_FIND(nvmlDeviceGetPciInfo_v3),
      ASSAY_FIND(nvmlDeviceGetMemoryInfo);
  ASSAY_FIND(nvmlDeviceGetMaxClockInfo), ASSAY_FIND(nvmlDeviceGetClockInfo);
  ASSAY_FIND(nvmlDeviceGetPowerManagementDefaultLimit),
      ASSAY_FIND(nvmlDeviceGetPowerManagementLimitConstraints);
  ASSAY_FIND(nvmlDeviceGetEnforcedPowerLimit), ASSAY_FIND(nvmlDeviceGetEccMode),
      ASSAY_FIND(nvmlDeviceGetMigMode);
  ASSAY_FIND(nvmlDeviceGetPersistenceMode), ASSAY_FIND(nvmlDeviceGetComputeMode);
  ASSAY_FIND(nvmlDeviceGetCurrPcieLinkGeneration), ASSAY_FIND(nvmlDeviceGetMaxPcieLinkGeneration);
  ASSAY_FIND(nvmlDeviceGetCurrPcieLinkWidth), ASSAY_FIND(nvmlDeviceGetMaxPcieLinkWidth);
  ASSAY_FIND(nvmlDeviceGetMemoryBusWidth), ASSAY_FIND(nvmlDeviceGetNumGpuCores);
  ASSAY_FIND(nvmlDeviceGetNvLinkState), ASSAY_FIND(nvmlDeviceGetNvLinkErrorCounter);
  ASSAY_FIND(nvmlDeviceGetNvLinkVersion), ASSAY_FIND(nvmlDeviceGetNvLinkRemoteDeviceType);
  ASSAY_FIND(nvmlDeviceGetNvLinkRemotePciInfo_v2), ASSAY_FIND(nvmlDeviceGetGpuFabricInfoV);
  ASSAY_FIND(nvmlDeviceGetSramEccErrorStatus);
  ASSAY_FIND(nvmlDeviceGetCudaComputeCapability), ASSAY_FIND(nvmlDeviceGetTotalEnergyConsumption);
  ASSAY_FIND(nvmlDeviceGetTemperature), ASSAY_FIND(nvmlDeviceGetUtilizationRates);
  ASSAY_FIND(nvmlDeviceGetCurrentClocksEventReasons), ASSAY_FIND(nvmlDeviceGetCurrentClocksThrottleReasons);
  ASSAY_FIND(nvmlDeviceGetRemappedRows), ASSAY_FIND(nvmlDeviceGetMemoryErrorCounter),
      ASSAY_FIND(nvmlDeviceGetTotalEccErrors);
  ASSAY_FIND(nvmlDeviceGetPcieReplayCounter), ASSAY_FIND(nvmlDeviceGetFieldValues);
  ASSAY_FIND(nvmlDeviceGetSupportedEventTypes), ASSAY_FIND(nvmlEventSetCreate),
      ASSAY_FIND(nvmlDeviceRegisterEvents);
  ASSAY_FIND(nvmlEventSetWait_v2), ASSAY_FIND(nvmlEventSetFree);
#undef ASSAY_FIND
  return f;
}

std::string words_of(const nvml::Functions& f, Return result) {
  const char* words = f.nvmlErrorString != nullptr ? f.nvmlErrorString(result) : nullptr;
  return (words != nullptr ? sysfs::clean(words) : "error") + " (" + std::to_string(result) + ")";
}

}  // namespace

Nvml::Opened Nvml::open() {
  const char* named = std::getenv("ASSAY_NVML_LIBRARY");
  const std::string file = named != nullptr && *named != 0 ? named : "libnvidia-ml.so.1";
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return {nullptr, named != nullptr && *named != 0 ? "ASSAY_NVML_LIBRARY: cannot load " + file : ""};
  const nvml::Functions f = load(library);
  const bool whole = f.nvmlInit_v2 != nullptr && f.nvmlShutdown != nullptr &&
                     f.nvmlDeviceGetCount_v2 != nullptr && f.nvmlDeviceGetHandleByIndex_v2 != nullptr;
  const Return result = whole ? f.nvmlInit_v2() : nvml::function_not_found;
  if (result == nvml::success) return {std::unique_ptr<Nvml>(new Nvml(library, f)), ""};
  const std::string trouble = "NVML cannot start: " + words_of(f, result);
  dlclose(library);
  // The library is part of many container images and of machines whose GPU was taken out.
  return {nullptr, result == nvml::driver_not_loaded ? "" : trouble};
}

Nvml::Nvml(void* library, const nvml::Functions& functions) : library_(library), f_(functions) {
  unsigned count = 0;
  if (const Return result = f_.nvmlDeviceGetCount_v2(&count); result != nvml::success)
    lost_.push_back("GPUs cannot be counted: " + words_of(f_, result));
  for (unsigned i = 0; i < count; ++i) {
    nvml::Device handle = nullptr;
    const Return result = f_.nvmlDeviceGetHandleByIndex_v2(i, &handle);
    if (result == nvml::success) {
      devices_.push_back(handle);
      numbers_.push_back(static_cast<int>(i));
    } else if (result == nvml::no_permission) {  // a job or container is given some of the GPUs
      hidden_.push_back(static_cast<int>(i));
    } else {
      lost_.push_back("GPU " + std::to_string(i) + " of the driver does not answer: " + words_of(f_, result));
    }
  }
  listening_.assign(devices_.size(), false);
  for (const nvml::Device handle : devices_) {
    major_.push_back(major_capability(handle));
    active_.push_back(links_up(handle));
  }
}

Nvml::~Nvml() {
  if (events_ != nullptr && f_.nvmlEventSetFree != nullptr) f_.nvmlEventSetFree(events_);
  f_.nvmlShutdown();
  dlclose(library_);
}

std::string Nvml::driver() const { return text_from(f_.nvmlSystemGetDriverVersion); }
std::string Nvml::version() const { return text_from(f_.nvmlSystemGetNVMLVersion); }

Reading Nvml::clock_hz(int gpu, int clock) const {
  return ask<unsigned>(f_.nvmlDeviceGetClockInfo, hz_per_mhz, device(gpu), clock);
}

Reading Nvml::energy_j(int gpu) const {
  const auto direct = ask<unsigned long long>(f_.nvmlDeviceGetTotalEnergyConsumption, j_per_mj, device(gpu));
  if (direct.told != Told::absent) return direct;
  auto read = field(gpu, nvml::field::total_energy);
  read.value *= j_per_mj;
  return read;
}

Reading Nvml::temperature_k(int gpu) const {
  auto read = ask<unsigned>(f_.nvmlDeviceGetTemperature, 1, device(gpu), nvml::sensor_core);
  read.value += zero_celsius_k;
  return read;
}

Reading Nvml::utilisation(int gpu, bool memory) const {
  if (f_.nvmlDeviceGetUtilizationRates == nullptr) return {};
  nvml::Utilization rates{};
  const Told answer = told(f_.nvmlDeviceGetUtilizationRates(device(gpu), &rates));
  return {answer, answer == Told::value ? (memory ? rates.memory : rates.gpu) * 0.01 : unsupported};
}

Reading Nvml::throttle_reasons(int gpu) const {
  const auto renamed = ask<unsigned long long>(f_.nvmlDeviceGetCurrentClocksEventReasons, 1, device(gpu));
  if (renamed.told != Told::absent) return renamed;
  return ask<unsigned long long>(f_.nvmlDeviceGetCurrentClocksThrottleReasons, 1, device(gpu));
}

Reading Nvml::pcie_generation(int gpu) const {
  return ask<unsigned>(f_.nvmlDeviceGetCurrPcieLinkGeneration, 1, device(gpu));
}
Reading Nvml::pcie_width(int gpu) const {
  return ask<unsigned>(f_.nvmlDeviceGetCurrPcieLinkWidth, 1, device(gpu));
}
Reading Nvml::pcie_replays(int gpu) const {
  return ask<unsigned>(f_.nvmlDeviceGetPcieReplayCounter, 1, device(gpu));
}

Reading Nvml::ecc_errors(int gpu, int type, bool sram) const {
  if (!sram)
    return ask<unsigned long long>(f_.nvmlDeviceGetTotalEccErrors, 1, device(gpu), type,
                                   nvml::counter_volatile);
  return ask<unsigned long long>(f_.nvmlDeviceGetMemoryErrorCounter, 1, device(gpu), type,
                                 nvml::counter_volatile, nvml::location_sram);
}

Nvml::Remapped Nvml::remapped_rows(int gpu) const {
  if (f_.nvmlDeviceGetRemappedRows == nullptr) return {};
  unsigned correctable = 0, uncorrectable = 0, pending = 0, failure = 0;
  const Told answer =
      told(f_.nvmlDeviceGetRemappedRows(device(gpu), &correctable, &uncorrectable, &pending, &failure));
  const auto of = [answer](unsigned n) {
    return Reading{answer, answer == Told::value ? static_cast<double>(n) : unsupported};
  };
  return {of(correctable), of(uncorrectable), of(pending), of(failure)};
}

std::vector<Reading> Nvml::fields(int gpu, const std::vector<FieldOf>& wanted) const {
  std::vector<Reading> readings(wanted.size());
  if (f_.nvmlDeviceGetFieldValues == nullptr || wanted.empty()) return readings;
  std::vector<nvml::FieldValue> values(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    values[i].field = wanted[i].id;
    values[i].scope = wanted[i].scope;
    values[i].result = nvml::not_supported;
  }
  const Return all = f_.nvmlDeviceGetFieldValues(device(gpu), static_cast<int>(values.size()), values.data());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Return result = all == nvml::success ? values[i].result : all;
    if (result == nvml::invalid_argument)
      continue;  // a driver that is older than a field does not know what is meant
    const Told answer = told(result);
    readings[i] = {answer, answer == Told::value ? number_of(values[i]) : unsupported};
  }
  return readings;
}

int Nvml::major_capability(nvml::Device device) const {
  int major = 0, minor = 0;
  if (f_.nvmlDeviceGetCudaComputeCapability == nullptr) return 0;
  return f_.nvmlDeviceGetCudaComputeCapability(device, &major, &minor) == nvml::success ? major : 0;
}

std::vector<unsigned> Nvml::links_up(nvml::Device device) const {
  std::vector<unsigned> up;
  for (unsigned link = 0; f_.nvmlDeviceGetNvLinkState != nullptr && link < nvml::most_links; ++link) {
    int active = 0;
    if (f_.nvmlDeviceGetNvLinkState(device, link, &active) == nvml::success && active != 0)
      up.push_back(link);
  }
  return up;
}

Reading Nvml::one_link(int gpu, unsigned link, int which) const {
  return ask<unsigned long long>(f_.nvmlDeviceGetNvLinkErrorCounter, 1, device(gpu), link, which);
}

// Blackwell has other counters than Hopper, and Hopper than those before it. Asking the old way gets 0 for an
// answer.
Nvml::LinkErrors Nvml::link_errors(int gpu) const {
  const auto index = static_cast<std::size_t>(gpu);
  LinkErrors errors;
  const auto add = [](Reading& sum, const Reading& one) {
    if (sum.told == Told::failed || one.told == Told::absent) return;
    const bool first = sum.told == Told::absent || one.told == Told::failed;
    sum = {one.told, first ? one.value : sum.value + one.value};
  };
  if (major_[index] >= 9) {
    const bool blackwell = major_[index] >= 10;
    std::vector<FieldOf> wanted;
    for (const unsigned link : active_[index])
      for (const unsigned id : {blackwell ? nvml::field::nvlink5_received_errors : nvml::field::nvlink_replay,
                                blackwell ? nvml::field::nvlink5_recovery : nvml::field::nvlink_recovery,
                                blackwell ? nvml::field::nvlink5_link_integrity : nvml::field::nvlink_crc})
        wanted.push_back({id, link});
    const auto read = fields(gpu, wanted);
    for (std::size_t i = 0; i < read.size(); ++i)
      add(i % 3 == 0 ? errors.replay : i % 3 == 1 ? errors.recovery : errors.crc, read[i]);
  } else if (major_[index] > 0) {
    for (const unsigned link : active_[index]) {
      add(errors.replay, one_link(gpu, link, nvml::link_replay));
      add(errors.recovery, one_link(gpu, link, nvml::link_recovery));
      add(errors.crc, one_link(gpu, link, nvml::link_crc_flit));
      add(errors.crc, one_link(gpu, link, nvml::link_crc_data));
    }
  }
  return errors;
}

std::pair<double, double> Nvml::links(int gpu) const {
  if (f_.nvmlDeviceGetNvLinkState == nullptr) return {unsupported, unsupported};
  int up = 0, all = 0;
  for (unsigned link = 0; link < nvml::most_links; ++link) {
    int active = 0;
    if (f_.nvmlDeviceGetNvLinkState(device(gpu), link, &active) != nvml::success) continue;
    ++all;
    up += active != 0 ? 1 : 0;
  }
  if (all == 0) return {unsupported, unsupported};
  return {up, all};
}

bool Nvml::listen() {
  if (f_.nvmlEventSetCreate == nullptr || f_.nvmlDeviceRegisterEvents == nullptr ||
      f_.nvmlEventSetWait_v2 == nullptr)
    return false;
  if (events_ == nullptr && f_.nvmlEventSetCreate(&events_) != nvml::success) return false;
  bool any = false;
  for (std::size_t gpu = 0; gpu < devices_.size(); ++gpu) {
    unsigned long long types = nvml::event_xid;
    if (f_.nvmlDeviceGetSupportedEventTypes != nullptr &&
        f_.nvmlDeviceGetSupportedEventTypes(devices_[gpu], &types) != nvml::success)
      continue;
    if ((types & nvml::event_xid) == 0) continue;
    listening_[gpu] = f_.nvmlDeviceRegisterEvents(devices_[gpu], nvml::event_xid, events_) == nvml::success;
    any = any || listening_[gpu];
  }
  return any;
}

bool Nvml::listens_to(int gpu) const { return listening_[static_cast<std::size_t>(gpu)]; }

std::vector<Xid> Nvml::take_xids() {
  constexpr int most = 1000;  // a GPU that is dying may tell of it without end
  std::vector<Xid> xids;
  for (int i = 0; events_ != nullptr && i < most; ++i) {
    nvml::EventData event{};
    if (f_.nvmlEventSetWait_v2(events_, &event, 0) != nvml::success) break;
    if ((event.type & nvml::event_xid) == 0) continue;
    for (std::size_t gpu = 0; gpu < devices_.size(); ++gpu)
      if (devices_[gpu] == event.device)
        xids.push_back({static_cast<int>(gpu), static_cast<int>(event.data)});
  }
  return xids;
}

}  // namespace assay
