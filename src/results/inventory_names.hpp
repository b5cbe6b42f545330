// SPDX-License-Identifier: Apache-2.0
// Columns of /inventory that are written in one place and judged in another: both sides take their names from here.
#pragma once

namespace assay::results::inventory {

// node
inline constexpr const char* memory_bytes = "memory_bytes";
inline constexpr const char* memory_bandwidth = "memory_bandwidth_bytes_per_s";  ///< what the DIMMs could deliver
// nic
inline constexpr const char* rate = "rate_bytes_per_s";
// pci; speeds in gigatransfers per second and lane
inline constexpr const char* link_speed = "speed_gt_s";
inline constexpr const char* max_link_speed = "max_speed_gt_s";
inline constexpr const char* link_width = "width";
inline constexpr const char* max_link_width = "max_width";

}  // namespace assay::results::inventory
