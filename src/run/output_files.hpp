// SPDX-License-Identifier: Apache-2.0
// What launches leave behind: one results file, or one for each segment of a soak.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>

#include "config/config.hpp"
#include "results/disk.hpp"

namespace assay {

class OutputFiles {
 public:
  /// Remembers what is there: no launch has written it. `config` outlives this object.
  explicit OutputFiles(const Config& config);

  std::filesystem::path file(int segment) const;
  /// The number of segments that are written, one after the other.
  int written() const;
  bool all_written() const { return is_written(config_.segments()); }
  /// The file that is written now, or the last.
  std::filesystem::path current() const;
  /// The partial directory that belongs to it.
  std::filesystem::path partial() const;
  /// Who writes it, if it was not that of another run before.
  std::optional<results::Owner> new_owner() const;
  /// Whether it has a plan, and all cases that it was to take over.
  bool partial_is_whole() const;
  /// The last sign of life of its writer, by the clock of the file system; nothing where there is none.
  std::optional<std::filesystem::file_time_type> shown_alive() const;
  /// Of the file that is made of the partial directory; nothing where its cases are not on this machine.
  std::optional<std::uint64_t> bytes_to_close() const noexcept;
  /// A directory that is there is none of the next launch, which may wait in a queue.
  void remember_owner();
  bool has_begun() const { return written() > 0 || new_owner(); }
  /// A client of NFS keeps for up to a minute that a file is not there. A change of its own to the directory,
  /// which this makes, ends that.
  void look_anew() const noexcept;
  /// NAME.launchN.h5 to keep the results of launch `number`, or of the next number whose name nobody has.
  std::filesystem::path free_name(std::size_t number) const;

 private:
  bool is_written(int segment) const;

  const Config& config_;
  std::map<int, std::filesystem::file_time_type> before_;  ///< by segment
  std::optional<results::Owner> owner_before_;             ///< of a partial directory that was there
};

}  // namespace assay
