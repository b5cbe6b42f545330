// SPDX-License-Identifier: Apache-2.0
// The directory of a run's checkpoints: who made it stands in its name, so that nothing stays of a run that
// was killed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace assay::train {

/// Throws Error(resource) where checkpoints of so many bytes in all do not fit below `scratch` beside what
/// must stay free. A file system that tells no size is taken as large enough, and so is one that is
/// read-only: what is created there fails with that reason.
void require_space(const std::filesystem::path& scratch, std::uint64_t bytes);

/// The name of the directory that this process makes. With `keep` nobody removes it.
std::string folder_name(std::uint64_t seed, bool keep);

/// Removes below `scratch` the directories of checkpoints whose makers are surely dead, with `pid` only those
/// of such a process. Touches nothing but shards and their markers, follows no link; returns how many
/// directories are gone, and does not throw for what it may not remove.
int remove_leftovers(const std::filesystem::path& scratch, std::optional<pid_t> pid = {});

}  // namespace assay::train
