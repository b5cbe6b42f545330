// SPDX-License-Identifier: Apache-2.0
// A run that goes on, in a file of its own, with what an earlier one measured: when that one has closed its
// file, or when nodes that were lost are left out.
#pragma once

#include <filesystem>
#include <vector>

#include "results/model.hpp"
#include "results/writer.hpp"

namespace assay::results {

/// Reads NAME.h5 or a NAME.h5.partial that no process writes any more. Throws Error(usage) when one does,
/// Error(data) when it cannot be read.
Results load_earlier(const std::filesystem::path& path);

/// What an earlier run began with, as far as another one is compared with it.
Writer::Start start_of(const Results& earlier);

/// Throws Error(usage) with one line that names the first thing in which `now` differs from `earlier`, so
/// that its cases cannot stand beside new ones: version, seed, level, memory, configuration, or a node or
/// device that was not there, unless nothing was planned. Fewer nodes and ranks are no difference.
void check_carry_over(const std::filesystem::path& path, const Results& earlier, const Writer::Start& now);

/// Adds to `now`, before the file of `now` is made, the parts of `earlier` that are not there and were lost
/// or at fault, and the plan rows of cases that stand though `now` does not plan them.
void extend_start(const Results& earlier, Writer::Start& now);

/// Whether a partial directory was left behind while it took over the cases of an earlier run: it lacks some
/// of them, and that run is to be resumed again.
bool was_taking_over(const std::filesystem::path& partial);

/// Stores in `writer`, which has just been created with the extended `now`, the cases of `earlier` that stand
/// (see resume.hpp) and are planned now, those that failed or have facts (see facts.hpp) though they are not,
/// the facts of those that run again, and what became of its ranks. Entities are recognised by kind and id,
/// nodes known by their host name only by that; those that are not there any more are added behind the
/// others. Returns /entities as it is then.
std::vector<Entity> carry_over(Writer& writer, const Results& earlier, const Writer::Start& now);

}  // namespace assay::results
