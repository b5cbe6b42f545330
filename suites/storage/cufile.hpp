// SPDX-License-Identifier: Apache-2.0
// NVIDIA's cuFile (GPUDirect Storage), opened when it is used: files are moved to and from the memory of a
// GPU. Where the path between them is missing, cuFile by default goes through host memory and says nothing
// ("compatibility mode"); here that is forbidden first, and named.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "device/device.hpp"
#include "suites/storage/engine.hpp"

namespace assay::storage {

/// Why cuFile cannot be opened on this node; empty where it can.
std::string why_no_cufile();

/// What moved through the kernel module nvidia-fs on this node, all processes together, in bytes: a multiple
/// of 1 MiB. Nothing where there is no such module or it does not count.
struct NvidiaFsBytes {
  double read = 0, written = 0;
};
/// Of the text of /proc/driver/nvidia-fs/stats.
std::optional<NvidiaFsBytes> parse_nvidia_fs(const std::string& stats);
std::optional<NvidiaFsBytes> nvidia_fs_now();

/// How far cuFile's own word goes for a file.
enum class GpuPath {
  direct,    ///< compatibility mode is forbidden, and the file is one of a block device, opened with O_DIRECT
  unproven,  ///< forbidden, but of other files cuFile documents ways through host memory all the same
  compat     ///< it needs compatibility mode: through host memory
};

/// Moves requests between their file and the memory of `device`, at most `depth` at a time. Their data are
/// placed from the start of its arena on as they are in the memory that was given to `use_memory`. The file
/// `fd` decides on the path; its first 4096 bytes are overwritten. Throws Error(resource) where cuFile has no
/// way at all, and while it moves for errors of cuFile that are none of the system.
std::unique_ptr<Engine> make_cufile_engine(Device& device, int depth, int fd, GpuPath& path);

}  // namespace assay::storage
