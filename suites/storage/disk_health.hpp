// SPDX-License-Identifier: Apache-2.0
// What disks log of themselves: NVMe's SMART log, ATA's device statistics, SCSI's log pages. For root only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>

namespace assay::storage {

/// NaN where the disk does not tell.
struct DiskHealth {
  double temperature_k = std::numeric_limits<double>::quiet_NaN(),
         percentage_used = std::numeric_limits<double>::quiet_NaN(),
         unsafe_shutdowns = std::numeric_limits<double>::quiet_NaN(),  ///< NVMe only
      media_errors = std::numeric_limits<double>::quiet_NaN();         ///< not corrected
};

/// Of the log page 02h, 512 bytes (NVM Express base specification, "SMART / Health Information").
DiskHealth parse_nvme(std::span<const std::uint8_t, 512> log) noexcept;

/// Of pages 4 (general errors), 5 (temperature) and 7 (solid state) of the device statistics log, 04h (ATA
/// Command Set, "Device Statistics"); zeros where the disk has no such page.
DiskHealth parse_ata(std::span<const std::uint8_t, 512> errors,
                     std::span<const std::uint8_t, 512> temperature,
                     std::span<const std::uint8_t, 512> solid_state) noexcept;

/// Log pages 02h and 03h (errors of writes and reads), 0Dh (temperature) and 11h (solid state media) of SCSI
/// Primary and Block Commands; empty where the disk has no such page.
DiskHealth parse_scsi(std::span<const std::uint8_t> writes, std::span<const std::uint8_t> reads,
                      std::span<const std::uint8_t> temperature,
                      std::span<const std::uint8_t> solid_state) noexcept;

/// Asks a disk, by its directory in sysfs and, for NVMe, that of its controller. Changes nothing on it.
DiskHealth health_of(const std::filesystem::path& block, const std::filesystem::path& controller);

}  // namespace assay::storage
