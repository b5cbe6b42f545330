// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "suite/suite.hpp"
#include "suites/storage/transfer.hpp"

namespace assay::storage {

/// Names of the libraries that a rank may lack (Suite::lacks).
inline constexpr const char *hdf5_name = "parallel HDF5", *cufile_name = "cuFile";

struct PathSpec {
  std::string directory;
  bool shared = false;  ///< written shared:DIR: all nodes see the same files
};
/// The directories of --storage.paths; throws Error(usage) for one that is relative, named twice, or holds
/// control characters.
std::vector<PathSpec> paths_of(const Config& config);

std::vector<Case> plan_cases(const PlanInput& input);
/// Whether the case moves between files and GPUs.
bool on_gpus(const Case& c);

/// Blocks of 1 MiB, chunks and files of this level, where each of `ranks` of a node may use `space` bytes;
/// `chunks` is 0 where these are too few. Files have `least_bytes` where the level has less.
Layout sequential_layout(Level level, std::uint64_t space, int ranks, std::uint64_t least_bytes = 0);

/// The records of IO500's "hard" cases, in a file that `ranks` write in turn: as many bytes as `easy` has, in
/// records of 47,008 bytes.
Layout hard_layout(const Layout& easy, int rank, int ranks);

}  // namespace assay::storage
