// SPDX-License-Identifier: Apache-2.0
// The properties of the given paths that all cases share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "suites/storage/file_system.hpp"
#include "transport/communicator.hpp"

namespace assay::storage {

struct Site {
  std::string run;        ///< 16 hexadecimal digits: part of the names of all that is made
  std::uint64_t key = 0;  ///< of all words
  std::vector<std::string> paths;
  std::vector<std::optional<FileSystem>> file_systems;  ///< that these lie in; none where it cannot be told
  std::vector<bool> shared;                             ///< several nodes see the same files
  std::vector<int> removed;                             ///< directories of dead runs, by this rank
  std::vector<double> media_errors;                     ///< of their disks at the beginning; NaN: not told
  /// B/s of the node, as measured in each path alone, by `Case::operation`; on its first rank only.
  std::map<std::string, std::map<std::size_t, double>> alone;
  int ranks = 1;
  std::size_t nodes = 1;
  std::vector<std::vector<std::string>> silent;  ///< nodes on which each path did not answer at the beginning

  /// "DIR does not answer on NODE, NODE (2 of 3 nodes)"
  std::string silence(std::size_t path) const;

  /// Files are numbered over ranks and paths.
  std::uint64_t file(int rank, std::size_t path) const noexcept {
    return (static_cast<std::uint64_t>(path) * static_cast<std::uint64_t>(ranks) +
            static_cast<std::uint64_t>(rank)) %
           most_files;
  }
  std::uint64_t files() const noexcept {
    const std::uint64_t all = paths.size() * static_cast<std::uint64_t>(ranks);
    return all < most_files ? all : most_files;
  }
  static constexpr std::uint64_t most_files = 1 << 16;
};

/// Collective: agrees on the run's name, removes what dead runs left, and finds out which paths several nodes
/// share. `silent_here`: the paths that do not answer on this node, which are not touched.
Site look_at(const std::vector<std::string>& paths, const std::vector<std::string>& silent_here,
             std::uint64_t seed, Communicator& world);

}  // namespace assay::storage
