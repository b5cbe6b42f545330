// SPDX-License-Identifier: Apache-2.0
// What of NVIDIA's management library is used, declared anew: its header need not be there to build, nor its
// library to run. Names, numbers and layouts are those of the binary interface of the driver, which keeps old
// symbols and layouts for ever.
#pragma once

#include <cstddef>

namespace assay::nvml {

using Return = int;
using Device = struct DeviceOpaque*;
using EventSet = struct EventSetOpaque*;

inline constexpr Return success = 0, invalid_argument = 2, not_supported = 3, no_permission = 4,
                        driver_not_loaded = 9, timed_out = 10, function_not_found = 13, gpu_is_lost = 15,
                        version_mismatch = 18, argument_version_mismatch = 25, deprecated = 26;

inline constexpr unsigned text_bytes = 96;  ///< the longest text that is asked for: names and UUIDs

struct PciInfo {
  char legacy_address[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char address[32];  ///< "00000000:17:00.0"
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, address) == 36);

struct Memory {
  unsigned long long total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct Utilization {
  unsigned gpu, memory;  ///< percent
};
static_assert(sizeof(Utilization) == 8);

union Value {
  double as_double;
  int as_int;
  unsigned as_unsigned;
  unsigned long as_unsigned_long;
  unsigned long long as_unsigned_long_long;
  long long as_long_long;
  unsigned short as_unsigned_short;
};
enum ValueType : unsigned {
  type_double,
  type_unsigned,
  type_unsigned_long,
  type_unsigned_long_long,
  type_long_long,
  type_int,
  type_unsigned_short
};
struct FieldValue {
  unsigned field, scope;
  long long timestamp_us, latency_us;
  unsigned type;
  Return result;
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, type) == 24 &&
              offsetof(FieldValue, value) == 32);

/// nvmlGpuFabricInfo_v2_t.
struct FabricInfo {
  unsigned version;
  unsigned char cluster[16];
  Return status;  ///< of a registration that is completed
  unsigned clique;
  unsigned char state;
  unsigned health;  ///< two bits for each fabric_fault: 1 true, 2 false
};
static_assert(sizeof(FabricInfo) == 36 && offsetof(FabricInfo, health) == 32);
inline constexpr unsigned fabric_version = sizeof(FabricInfo) | 2U << 24;
inline constexpr unsigned char fabric_not_supported = 0, fabric_not_started = 1, fabric_in_progress = 2,
                               fabric_completed = 3;

/// nvmlEccSramErrorStatus_v1_t: counts, and whether they exceed what the part is replaced at.
struct SramStatus {
  unsigned version;
  unsigned long long counts[11];
  unsigned exceeded;
};
static_assert(sizeof(SramStatus) == 104 && offsetof(SramStatus, exceeded) == 96);
inline constexpr unsigned sram_version = sizeof(SramStatus) | 1U << 24;

struct EventData {
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32 && offsetof(EventData, data) == 16);

// Enumerations, as plain numbers.
inline constexpr int clock_sm = 1, clock_memory = 2;
inline constexpr int sensor_core = 0;
inline constexpr int error_corrected = 0, error_uncorrected = 1;
inline constexpr int counter_volatile = 0;
inline constexpr int location_sram = 7;
inline constexpr int link_replay = 0, link_recovery = 1, link_crc_flit = 2, link_crc_data = 3;
inline constexpr unsigned most_links = 36;
inline constexpr int link_end_gpu = 0, link_end_switch = 2;
inline constexpr unsigned long long event_xid = 0x8;

// Fields of nvmlDeviceGetFieldValues. The NVLink fields 32 to 59 and 96 to 119 are left out on purpose: since
// Hopper they answer success and 0, whatever the links do.
namespace field {
inline constexpr unsigned violation_power = 74, violation_thermal = 75, violation_sync_boost = 76,
                          violation_board_limit = 77, violation_low_utilization = 78,
                          violation_reliability = 79, memory_temperature = 82, total_energy = 83,
                          nvlink_replay = 161, nvlink_recovery = 162, nvlink_crc = 163,
                          nvlink_speed = 164,  ///< MB/s of a link, one way, framing included
    pcie_correctable = 173, pcie_nonfatal = 179, pcie_fatal = 180, nvlink5_received_errors = 208,
                          nvlink5_link_integrity = 211, nvlink5_recovery = 215, recovery_action = 230,
                          violation_sw_thermal = 269, violation_hw_thermal = 270, violation_hw_brake = 271;
}  // namespace field

// Why clocks are not higher: bits, of which several may be set at once.
namespace throttle {
inline constexpr unsigned long long idle = 0x1, application_clocks = 0x2, sw_power_cap = 0x4,
                                    hw_slowdown = 0x8, sync_boost = 0x10, sw_thermal = 0x20,
                                    hw_thermal = 0x40, hw_power_brake = 0x80, display = 0x100;
}  // namespace throttle

/// The entry points by their symbols. A null pointer: this driver has none of that name.
struct Functions {
  Return (*nvmlInit_v2)() = nullptr;
  Return (*nvmlShutdown)() = nullptr;
  const char* (*nvmlErrorString)(Return) = nullptr;
  Return (*nvmlSystemGetDriverVersion)(char*, unsigned) = nullptr;
  Return (*nvmlSystemGetNVMLVersion)(char*, unsigned) = nullptr;
  Return (*nvmlDeviceGetCount_v2)(unsigned*) = nullptr;
  Return (*nvmlDeviceGetHandleByIndex_v2)(unsigned, Device*) = nullptr;
  Return (*nvmlDeviceGetName)(Device, char*, unsigned) = nullptr;
  Return (*nvmlDeviceGetUUID)(Device, char*, unsigned) = nullptr;
  Return (*nvmlDeviceGetSerial)(Device, char*, unsigned) = nullptr;
  Return (*nvmlDeviceGetVbiosVersion)(Device, char*, unsigned) = nullptr;
  Return (*nvmlDeviceGetBoardPartNumber)(Device, char*, unsigned) = nullptr;
  Return (*nvmlDeviceGetPciInfo_v3)(Device, PciInfo*) = nullptr;
  Return (*nvmlDeviceGetMemoryInfo)(Device, Memory*) = nullptr;
  Return (*nvmlDeviceGetMaxClockInfo)(Device, int, unsigned*) = nullptr;
  Return (*nvmlDeviceGetClockInfo)(Device, int, unsigned*) = nullptr;
  Return (*nvmlDeviceGetPowerManagementDefaultLimit)(Device, unsigned*) = nullptr;
  Return (*nvmlDeviceGetPowerManagementLimitConstraints)(Device, unsigned*, unsigned*) = nullptr;
  Return (*nvmlDeviceGetEnforcedPowerLimit)(Device, unsigned*) = nullptr;
  Return (*nvmlDeviceGetEccMode)(Device, int*, int*) = nullptr;
  Return (*nvmlDeviceGetMigMode)(Device, unsigned*, unsigned*) = nullptr;
  Return (*nvmlDeviceGetPersistenceMode)(Device, int*) = nullptr;
  Return (*nvmlDeviceGetComputeMode)(Device, int*) = nullptr;
  Return (*nvmlDeviceGetCurrPcieLinkGeneration)(Device, unsigned*) = nullptr;
  Return (*nvmlDeviceGetMaxPcieLinkGeneration)(Device, unsigned*) = nullptr;
  Return (*nvmlDeviceGetCurrPcieLinkWidth)(Device, unsigned*) = nullptr;
  Return (*nvmlDeviceGetMaxPcieLinkWidth)(Device, unsigned*) = nullptr;
  Return (*nvmlDeviceGetMemoryBusWidth)(Device, unsigned*) = nullptr;
  Return (*nvmlDeviceGetNumGpuCores)(Device, unsigned*) = nullptr;
  Return (*nvmlDeviceGetNvLinkState)(Device, unsigned, int*) = nullptr;
  Return (*nvmlDeviceGetNvLinkErrorCounter)(Device, unsigned, int, unsigned long long*) = nullptr;
  Return (*nvmlDeviceGetNvLinkVersion)(Device, unsigned, unsigned*) = nullptr;
  Return (*nvmlDeviceGetNvLinkRemoteDeviceType)(Device, unsigned, int*) = nullptr;
  Return (*nvmlDeviceGetNvLinkRemotePciInfo_v2)(Device, unsigned, PciInfo*) = nullptr;
  Return (*nvmlDeviceGetGpuFabricInfoV)(Device, FabricInfo*) = nullptr;
  Return (*nvmlDeviceGetSramEccErrorStatus)(Device, SramStatus*) = nullptr;
  Return (*nvmlDeviceGetCudaComputeCapability)(Device, int*, int*) = nullptr;
  Return (*nvmlDeviceGetTotalEnergyConsumption)(Device, unsigned long long*) = nullptr;
  Return (*nvmlDeviceGetTemperature)(Device, int, unsigned*) = nullptr;
  Return (*nvmlDeviceGetUtilizationRates)(Device, Utilization*) = nullptr;
  Return (*nvmlDeviceGetCurrentClocksEventReasons)(Device, unsigned long long*) = nullptr;
  Return (*nvmlDeviceGetCurrentClocksThrottleReasons)(Device, unsigned long long*) = nullptr;
  Return (*nvmlDeviceGetRemappedRows)(Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  Return (*nvmlDeviceGetMemoryErrorCounter)(Device, int, int, int, unsigned long long*) = nullptr;
  Return (*nvmlDeviceGetTotalEccErrors)(Device, int, int, unsigned long long*) = nullptr;
  Return (*nvmlDeviceGetPcieReplayCounter)(Device, unsigned*) = nullptr;
  Return (*nvmlDeviceGetFieldValues)(Device, int, FieldValue*) = nullptr;
  Return (*nvmlDeviceGetSupportedEventTypes)(Device, unsigned long long*) = nullptr;
  Return (*nvmlEventSetCreate)(EventSet*) = nullptr;
  Return (*nvmlDeviceRegisterEvents)(Device, unsigned long long, EventSet) = nullptr;
  Return (*nvmlEventSetWait_v2)(EventSet, EventData*, unsigned) = nullptr;
  Return (*nvmlEventSetFree)(EventSet) = nullptr;
};

}  // namespace assay::nvml
