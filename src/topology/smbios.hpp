// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "topology/topology.hpp"

namespace assay {

/// Data of the firmware's tables: DMTF DSP0134 (SMBIOS) types 1 and 17.
struct SmbiosTables {
  std::string system_uuid;  ///< lower case; empty when absent or a placeholder
  std::vector<Dimm> dimms;  ///< populated slots only, slots named uniquely
  std::vector<std::string> dimm_serials;
  int empty_slots = 0;
  /// Sum over memory channels of configured speed x data width; NaN unless every module names its channel and
  /// speed.
  double memory_bandwidth_bytes_per_s = unsupported;
};

/// Parses the raw table (/sys/firmware/dmi/tables/DMI). Never reads past `bytes`; stops at the first broken
/// structure.
SmbiosTables parse_smbios(const std::string& bytes);

/// Name of the memory channel a module sits on, from its device and bank locator; empty when the naming
/// scheme is unknown.
std::string memory_channel(const std::string& slot, const std::string& bank);

/// False for all-zero, all-one and well-known placeholder UUIDs, which many boards share.
bool usable_uuid(const std::string& uuid);

/// The text, or empty for the placeholders of firmware ("Unknown", "To Be Filled By
/// O.E.M.").
std::string firmware_text(const std::string& text);

}  // namespace assay
