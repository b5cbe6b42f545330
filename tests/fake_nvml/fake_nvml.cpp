// SPDX-License-Identifier: Apache-2.0
// A library with the symbols of NVML, whose GPUs stand in a file: see README.md. It keeps nothing between
// calls but which events it has told, so that a test can change a counter while a program runs. With
// FAKE_NVML_OLD it is that of an old driver, without younger symbols.
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

#include "telemetry/nvml_abi.hpp"
#include "tests/fake_gpus/gpus_file.hpp"

namespace {

using namespace assay::nvml;
using assay::fake::at;
using assay::fake::GpusFile;
using assay::fake::Json;
using Path = std::vector<std::string>;

constexpr Return unknown_error = 999;

std::size_t index_of(Device device) { return reinterpret_cast<std::size_t>(device) - 1; }
Device device_of(std::size_t index) { return reinterpret_cast<Device>(index + 1); }

/// What the file makes of asking: a number or a text, or {"status": WHY}, {"hang_s": S}, or both.
Return status_of(const Json& value) {
  if (value.is_null()) return not_supported;
  if (!value.is_object() || value.contains("rate")) return success;
  std::this_thread::sleep_for(std::chrono::duration<double>(value.value("hang_s", 0.0)));
  const std::string status = value.value("status", "error");
  if (status == "success") return success;
  if (status == "unsupported") return not_supported;
  if (status == "no_permission") return no_permission;
  if (status == "lost") return gpu_is_lost;
  return unknown_error;
}

Json gpu_of(Device device) {
  const Json gpus = GpusFile::get().gpus();
  return index_of(device) < gpus.size() ? gpus[index_of(device)] : Json();
}

Json value_of(Device device, const Path& path, Return& result) {
  const Json gpu = gpu_of(device);
  if (gpu.is_null() || gpu.value("lost", false)) {
    result = gpu_is_lost;
    return {};
  }
  Json value = at(gpu, path);
  result = status_of(value);
  return value;
}

template <typename Number>
Return put(Device device, const Path& path, Number* out, double factor = 1) {
  Return result = success;
  const Json value = value_of(device, path, result);
  if (result == success) *out = static_cast<Number>(assay::fake::number(value) * factor);
  return result;
}

Return put_text(Device device, const Path& path, char* out, unsigned length) {
  Return result = success;
  const Json value = value_of(device, path, result);
  if (result == success) std::snprintf(out, length, "%s", value.get<std::string>().c_str());
  return result;
}

Return put_text(const Json& value, char* out, unsigned length) {
  if (!value.is_string()) return not_supported;
  std::snprintf(out, length, "%s", value.get<std::string>().c_str());
  return success;
}

int major_of(Device device) {
  Return result = success;
  const Json compute = value_of(device, {"compute"}, result);
  return result == success ? std::atoi(compute.get<std::string>().c_str()) : 0;
}

int links_of(Device device) {
  Return result = success;
  const Json links = value_of(device, {"nvlink", "links"}, result);
  return result == success ? static_cast<int>(assay::fake::number(links)) : 0;
}

/// The first link has all the errors of a GPU.
Return put_link(Device device, unsigned link, const char* name, unsigned long long* out) {
  if (static_cast<int>(link) >= links_of(device)) return invalid_argument;
  const Return result = put(device, {"nvlink", name}, out);
  if (link != 0) *out = 0;
  return result;
}

struct Field {
  Path path;
  double factor = 1;
};

const std::map<unsigned, Field>& plain_fields() {
  static const std::map<unsigned, Field> fields = {
      {field::violation_power, {{"violations_ns", "power"}}},
      {field::violation_thermal, {{"violations_ns", "thermal"}}},
      {field::violation_sync_boost, {{"violations_ns", "sync_boost"}}},
      {field::violation_board_limit, {{"violations_ns", "board_limit"}}},
      {field::violation_low_utilization, {{"violations_ns", "low_utilization"}}},
      {field::violation_reliability, {{"violations_ns", "reliability"}}},
      {field::violation_sw_thermal, {{"violations_ns", "sw_thermal"}}},
      {field::violation_hw_thermal, {{"violations_ns", "hw_thermal"}}},
      {field::violation_hw_brake, {{"violations_ns", "hw_brake"}}},
      {field::memory_temperature, {{"memory_temperature_c"}}},
      {field::total_energy, {{"energy_j"}, 1000}},
      {field::recovery_action, {{"recovery_action"}}},
      {field::pcie_correctable, {{"pcie", "correctable"}}},
      {field::pcie_nonfatal, {{"pcie", "nonfatal"}}},
      {field::pcie_fatal, {{"pcie", "fatal"}}},
  };
  return fields;
}

/// The counters of each generation's links under the numbers of that generation.
const char* link_field(unsigned id, int major) {
  static const std::map<unsigned, const char*> hopper = {
      {field::nvlink_replay, "replay"}, {field::nvlink_recovery, "recovery"}, {field::nvlink_crc, "crc"}};
  static const std::map<unsigned, const char*> blackwell = {{field::nvlink5_received_errors, "replay"},
                                                            {field::nvlink5_recovery, "recovery"},
                                                            {field::nvlink5_link_integrity, "crc"}};
  const auto& known = major >= 10 ? blackwell : hopper;
  const auto at = known.find(id);
  return major >= 9 && at != known.end() ? at->second : nullptr;
}

bool is_legacy_link_field(unsigned id) { return (id >= 32 && id <= 59) || (id >= 96 && id <= 119); }

void answer(Device device, FieldValue& value) {
  unsigned long long number = 0;
  value.type = type_unsigned_long_long;
  const auto plain = plain_fields().find(value.field);
  if (plain != plain_fields().end()) {
    value.result = put(device, plain->second.path, &number, plain->second.factor);
  } else if (is_legacy_link_field(value.field)) {
    value.result = success;  // the trap: 0, whatever the links do
  } else if (value.field == field::nvlink_speed && major_of(device) >= 9) {
    value.result = put(device, {"nvlink", "speed_mb_s"}, &number);
  } else if (const char* name = link_field(value.field, major_of(device))) {
    value.result = put_link(device, value.scope, name, &number);
  } else {
    value.result = invalid_argument;
  }
  value.value.as_unsigned_long_long = number;
}

/// Events of the file that were told, and when listening began.
struct Listener {
  std::mutex mutex;
  std::set<std::pair<std::size_t, std::size_t>> told;
  double since = 0;
  static Listener& get() {
    static Listener listener;
    return listener;
  }
};

}  // namespace

extern "C" {

Return nvmlInit_v2() {
  const Json file = GpusFile::get().file();
  if (!file.is_object()) return driver_not_loaded;
  if (file.contains("init")) return status_of(file["init"]);
  return success;
}
Return nvmlShutdown() { return success; }
const char* nvmlErrorString(Return result) {
  return result == gpu_is_lost ? "GPU is lost" : "a made up error";
}
Return nvmlSystemGetDriverVersion(char* out, unsigned length) {
  return put_text(GpusFile::get().file().value("driver", Json()), out, length);
}
Return nvmlSystemGetNVMLVersion(char* out, unsigned length) {
  return put_text(GpusFile::get().file().value("nvml", Json()), out, length);
}
Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(GpusFile::get().gpus().size());
  return success;
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  const Json gpus = GpusFile::get().gpus();
  if (index >= gpus.size()) return invalid_argument;
  if (gpus[index].value("no_handle", false)) return gpu_is_lost;
  if (gpus[index].value("hidden", false)) return no_permission;
  *device = device_of(index);
  return success;
}
Return nvmlDeviceGetName(Device device, char* out, unsigned length) {
  return put_text(device, {"name"}, out, length);
}
Return nvmlDeviceGetUUID(Device device, char* out, unsigned length) {
  return put_text(device, {"uuid"}, out, length);
}
Return nvmlDeviceGetSerial(Device device, char* out, unsigned length) {
  return put_text(device, {"serial"}, out, length);
}
Return nvmlDeviceGetVbiosVersion(Device device, char* out, unsigned length) {
  return put_text(device, {"vbios"}, out, length);
}
Return nvmlDeviceGetBoardPartNumber(Device device, char* out, unsigned length) {
  return put_text(device, {"part"}, out, length);
}
Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  Return result = success;
  const Json value = value_of(device, {"pci"}, result);
  if (result != success) return result;
  *pci = {};
  std::snprintf(pci->address, sizeof pci->address, "%s", value.get<std::string>().c_str());
  return std::sscanf(pci->address, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) == 3 ? success
                                                                                           : unknown_error;
}
Return nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  *memory = {};
  return put(device, {"memory_bytes"}, &memory->total);
}
Return nvmlDeviceGetMaxClockInfo(Device device, int clock, unsigned* mhz) {
  return put(device, {"clocks", clock == clock_sm ? "sm_max" : "memory_max"}, mhz);
}
Return nvmlDeviceGetClockInfo(Device device, int clock, unsigned* mhz) {
  return put(device, {"clocks", clock == clock_sm ? "sm" : "memory"}, mhz);
}
Return nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned* mw) {
  return put(device, {"power", "default_w"}, mw, 1000);
}
Return nvmlDeviceGetPowerManagementLimitConstraints(Device device, unsigned* least, unsigned* most) {
  *least = 0;
  return put(device, {"power", "max_w"}, most, 1000);
}
Return nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* mw) {
  return put(device, {"power", "limit_w"}, mw, 1000);
}
Return nvmlDeviceGetEccMode(Device device, int* now, int* later) {
  const Return result = put(device, {"ecc", "mode"}, now);
  *later = *now;
  return result;
}
Return nvmlDeviceGetMigMode(Device device, unsigned* now, unsigned* later) {
  const Return result = put(device, {"mig"}, now);
  *later = *now;
  return result;
}
Return nvmlDeviceGetPersistenceMode(Device device, int* mode) { return put(device, {"persistence"}, mode); }
Return nvmlDeviceGetComputeMode(Device device, int* mode) { return put(device, {"compute_mode"}, mode); }
Return nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned* out) {
  return put(device, {"pcie", "generation"}, out);
}
Return nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned* out) {
  return put(device, {"pcie", "generation_max"}, out);
}
Return nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned* out) {
  return put(device, {"pcie", "width"}, out);
}
Return nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned* out) {
  return put(device, {"pcie", "width_max"}, out);
}
Return nvmlDeviceGetMemoryBusWidth(Device device, unsigned* out) {
  return put(device, {"memory_bus_bits"}, out);
}
Return nvmlDeviceGetNumGpuCores(Device device, unsigned* out) { return put(device, {"shader_cores"}, out); }
Return nvmlDeviceGetPcieReplayCounter(Device device, unsigned* out) {
  return put(device, {"pcie", "replay"}, out);
}
Return nvmlDeviceGetNvLinkState(Device device, unsigned link, int* active) {
  const int links = links_of(device);
  if (links == 0) return not_supported;
  if (static_cast<int>(link) >= links) return invalid_argument;
  int up = links;
  put(device, {"nvlink", "up"}, &up);
  *active = static_cast<int>(link) < up ? 1 : 0;
  return success;
}
Return nvmlDeviceGetNvLinkErrorCounter(Device device, unsigned link, int which, unsigned long long* out) {
  *out = 0;
  if (major_of(device) >= 9) return success;  // the same trap
  const Return result = put_link(device, link,
                                 which == link_replay     ? "replay"
                                 : which == link_recovery ? "recovery"
                                                          : "crc",
                                 out);
  if (which == link_crc_data) *out = 0;
  return result;
}
Return nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  Return result = success;
  const Json compute = value_of(device, {"compute"}, result);
  if (result != success) return result;
  return std::sscanf(compute.get<std::string>().c_str(), "%d.%d", major, minor) == 2 ? success
                                                                                     : unknown_error;
}
Return nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* mj) {
  return put(device, {"energy_j"}, mj, 1000);
}
Return nvmlDeviceGetTemperature(Device device, int, unsigned* out) {
  return put(device, {"temperature_c"}, out);
}
Return nvmlDeviceGetUtilizationRates(Device device, Utilization* out) {
  *out = {};
  const Return result = put(device, {"utilization", "gpu"}, &out->gpu);
  return result == success ? put(device, {"utilization", "memory"}, &out->memory) : result;
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* out) {
  return put(device, {"throttle_reasons"}, out);
}
Return nvmlDeviceGetTotalEccErrors(Device device, int type, int, unsigned long long* out) {
  return put(device, {"ecc", type == error_corrected ? "corrected" : "uncorrected"}, out);
}
Return nvmlDeviceGetMemoryErrorCounter(Device device, int type, int, int location, unsigned long long* out) {
  if (location != location_sram) return not_supported;
  return put(device, {"ecc", type == error_corrected ? "sram_corrected" : "sram_uncorrected"}, out);
}
Return nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) answer(device, values[i]);
  return success;
}
#ifndef FAKE_NVML_OLD
Return nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long* out) {
  return put(device, {"throttle_reasons"}, out);
}
Return nvmlDeviceGetRemappedRows(Device device, unsigned* correctable, unsigned* uncorrectable,
                                 unsigned* pending, unsigned* failure) {
  const Return result = put(device, {"remap", "correctable"}, correctable);
  put(device, {"remap", "uncorrectable"}, uncorrectable);
  put(device, {"remap", "pending"}, pending);
  put(device, {"remap", "failure"}, failure);
  return result;
}
Return nvmlDeviceGetNvLinkVersion(Device device, unsigned, unsigned* out) {
  return put(device, {"nvlink", "version"}, out);
}
/// Without "ends" all links go to switches.
Return nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned link, int* out) {
  const Json ends = at(gpu_of(device), {"nvlink", "ends"});
  *out = ends.is_array() && link < ends.size() && ends[link] != "switch" ? link_end_gpu : link_end_switch;
  return success;
}
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo* pci) {
  const std::string address = at(gpu_of(device), {"nvlink", "ends"})[link];
  return std::sscanf(address.c_str(), "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) == 3 ? success
                                                                                              : unknown_error;
}
Return nvmlDeviceGetGpuFabricInfoV(Device device, FabricInfo* out) {
  if (out->version != fabric_version) return argument_version_mismatch;
  unsigned state = 0;
  const Return result = put(device, {"fabric", "state"}, &state);
  out->state = static_cast<unsigned char>(state);
  put(device, {"fabric", "status"}, &out->status);
  put(device, {"fabric", "clique"}, &out->clique);
  put(device, {"fabric", "health"}, &out->health);
  return result;
}
Return nvmlDeviceGetSramEccErrorStatus(Device device, SramStatus* out) {
  if (out->version != sram_version) return argument_version_mismatch;
  return put(device, {"ecc", "sram_threshold_exceeded"}, &out->exceeded);
}
Return nvmlDeviceGetSupportedEventTypes(Device device, unsigned long long* types) {
  const Json events = gpu_of(device).value("events", Json());
  *types = events.is_array() ? event_xid : 0;
  return success;
}
Return nvmlEventSetCreate(EventSet* set) {
  *set = reinterpret_cast<EventSet>(1);
  const std::scoped_lock lock(Listener::get().mutex);
  Listener::get().since = assay::fake::monotonic_s();
  return success;
}
Return nvmlDeviceRegisterEvents(Device, unsigned long long, EventSet) { return success; }
Return nvmlEventSetWait_v2(EventSet, EventData* out, unsigned) {
  Listener& listener = Listener::get();
  const std::scoped_lock lock(listener.mutex);
  const Json gpus = GpusFile::get().gpus();
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const Json events = gpus[g].value("events", Json::array());
    for (std::size_t e = 0; e < events.size(); ++e) {
      if (assay::fake::monotonic_s() - listener.since < events[e].value("after_s", 0.0)) continue;
      if (!listener.told.insert({g, e}).second) continue;
      *out = {device_of(g), event_xid, events[e].value("xid", 0ULL), ~0U, ~0U};
      return success;
    }
  }
  return timed_out;
}
Return nvmlEventSetFree(EventSet) { return success; }
#endif

}  // extern "C"
