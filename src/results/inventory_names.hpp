// SPDX-License-Identifier: Apache-2.0
// Columns of /inventory that are written in one place and judged in another: both sides take their names from
// here.
#pragma once

namespace assay::results::inventory {

// node
inline constexpr const char* memory_bytes = "memory_bytes";
inline constexpr const char* memory_bandwidth =
    "memory_bandwidth_bytes_per_s";  ///< what the DIMMs could deliver
// nic
inline constexpr const char* rate = "rate_bytes_per_s";
// pci; speeds in gigatransfers per second and lane
inline constexpr const char* link_speed = "speed_gt_s";
inline constexpr const char* max_link_speed = "max_speed_gt_s";
inline constexpr const char* link_width = "width";
inline constexpr const char* max_link_width = "max_width";

// node: empty where the kernel has none that matter; in other text columns empty is what a machine does not
// tell
inline constexpr const char* kernel_options = "kernel_options";
// node: columns only where a node has a GPU
inline constexpr const char* gpus = "gpus";
// device: columns only where a node has a GPU; a row is of a GPU where the kind says so
inline constexpr const char* device_kind = "device_kind";
inline constexpr const char* gpu = "gpu";
inline constexpr const char* gpu_link_generation =
    "pcie_generation_info";  ///< an idle GPU slows its link down
inline constexpr const char* gpu_max_link_generation = "pcie_generation_max";
inline constexpr const char* gpu_link_width = "pcie_width";
inline constexpr const char* gpu_max_link_width = "pcie_width_max";
inline constexpr const char* nvlinks = "nvlinks";
inline constexpr const char* nvlinks_up = "nvlinks_up";
// States that mean something by themselves: what others have does not matter.
inline constexpr const char* fabric = "fabric_info";
inline constexpr const char* fabric_trouble = "fabric_trouble_info";
inline constexpr const char* recovery_action = "recovery_action_info";
inline constexpr const char* sram_threshold = "sram_threshold_info";

}  // namespace assay::results::inventory
