// SPDX-License-Identifier: Apache-2.0
// The whole results file. Private to src/results.
#pragma once

#include "results/disk.hpp"
#include "results/h5.hpp"
#include "results/partial.hpp"

namespace assay::results {

/// Throws Error(internal) when names, lengths, units or references of the inventory are wrong.
void check_start(const Writer::Start& start);

/// Writes the content of a partial directory as one results file, sealed and on disk, under the name `file`.
/// `running`: whether a directory without end.json is of a run that goes on.
void write_file(const Path& file, PartialReader& partial, bool running);

/// Opens a results file of this major version. Throws Error(data).
struct OpenFile {
  h5::Id id;
  h5::Limits limits;
};
OpenFile open_results(const Path& path, const CheckedFile& checked);

}  // namespace assay::results
