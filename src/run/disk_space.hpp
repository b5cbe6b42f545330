// SPDX-License-Identifier: Apache-2.0
// What a run needs on disk, and whether there is as much.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "run/planner.hpp"

namespace assay {

/// Bytes at once when the last case has ended: the files of ended cases, which are not packed, and what the
/// merge reserves for the results file, which are as many though that file is packed.
struct DiskNeed {
  std::uint64_t cases = 0, merged = 0;
  std::uint64_t sum() const noexcept { return cases + merged; }
};
DiskNeed disk_need(const Plan& plan);

/// A directory and the file system that it is in.
struct DiskSpace {
  std::string directory;
  std::uint64_t free = 0, device = 0;
};
/// Nothing where the file system does not tell.
std::optional<DiskSpace> disk_space(const std::filesystem::path& directory);

/// Why there is too little; empty where there is enough, is not known, or where little is needed: a full disk
/// then ends a short run. `spool`: where ended cases are, if not beside the file.
std::string lack_of_space(const DiskNeed& need, const std::optional<DiskSpace>& out,
                          const std::optional<DiskSpace>& spool);

/// Throws Error(io) where there is too little for a new results file `file`.
void check_disk_space(const Plan& plan, const Config& config, const std::filesystem::path& file);

}  // namespace assay
