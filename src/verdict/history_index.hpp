// SPDX-License-Identifier: Apache-2.0
// Earlier results files, and the index that spares reading them again: a directory of 30 runs of 1000 nodes
// is gigabytes of samples, and 30 MB of medians.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "verdict/snapshot.hpp"

namespace assay::verdict {

/// The index of a directory is a file of this name in it.
inline constexpr const char* index_name = "assay-history.index";

enum class IndexUse {
  read,   ///< an index that is there is used as far as it fits its files
  update  ///< and is written anew, by rename, when it did not fit; a directory that cannot be written is no
          ///< error, nor is one without results files: that of the first night
};

/// The runs in `path`: a results file or partial directory, an index, or a directory with results files
/// (NAME.h5; those still being written are left out), ordered by their start. Of a directory a run in several
/// files counts once. An entry of an index counts only while its file has the size and time of change it was
/// made from; other files are read. An index given by itself is stale if files beside it are new or changed:
/// Error(data). So does everything that cannot be read, in one line.
std::vector<Snapshot> read_runs(const std::string& path, IndexUse use);

/// Of runs that are there several times, such as copies or a run beside its continuation, leaves the one with
/// most series.
void leave_out_copies(std::vector<Snapshot>& runs);

/// "a.h5,b.h5" or one name, which may itself hold commas if it exists, as a list without empty names.
std::vector<std::string> names_of(const std::string& list);

/// The runs of all that `list` names, ordered by their start. Where a directory is among them, a run that is
/// there several times counts once.
std::vector<Snapshot> read_run_list(const std::string& list, IndexUse use);

/// Size and time of change of the file that a snapshot was made from.
struct IndexedRun {
  std::string file;  ///< name without folder
  std::int64_t bytes = 0, changed_ns = 0;
  Snapshot run;
};

/// The bytes of an index, and back. Throws Error(data) for anything that `index_bytes` did not write.
std::string index_bytes(const std::vector<IndexedRun>& runs);
std::vector<IndexedRun> parse_index(const std::string& bytes);

}  // namespace assay::verdict
