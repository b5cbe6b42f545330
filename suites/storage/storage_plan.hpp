// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "suite/suite.hpp"
#include "suites/storage/transfer.hpp"

namespace assay::storage {

/// Names of the libraries that a rank may lack (Suite::lacks).
inline constexpr const char *hdf5_name = "parallel HDF5", *cufile_name = "cuFile";

/// Whether all nodes see the same files below a directory: said by shared:DIR or local:DIR, else found by the
/// type of its mount.
enum class PathKind { found, local, shared };

struct PathSpec {
  std::string directory;
  PathKind kind = PathKind::found;

  /// What `Suite::lacks` tells of a directory that is to be found out and is on a network file system.
  std::string network_key() const { return "a local mount of " + directory; }
  bool shared(const std::map<std::string, std::string>& lacks) const {
    return kind == PathKind::shared || (kind == PathKind::found && lacks.contains(network_key()));
  }
};
/// The directories of --storage.paths; throws Error(usage) for one that is relative, named twice, or holds
/// control characters.
std::vector<PathSpec> paths_of(const Config& config);

/// The places in that list of those that are not shared by all nodes.
std::vector<std::size_t> local_paths(const Config& config, const std::map<std::string, std::string>& lacks);

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
