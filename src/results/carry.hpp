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

/// Throws Error(usage) with one line that names the first thing in which `now` differs from `earlier`, so
/// that its cases cannot stand beside new ones: version, seed, level, memory, configuration, or a node or
/// device that was not there, unless nothing was planned. Fewer nodes and ranks are no difference.
void check_carry_over(const std::filesystem::path& path, const Results& earlier, const Writer::Start& now);

/// The rows `now` and behind them those parts that were lost in `earlier` and are not there: their losses
/// have a row even if no case is carried over.
std::vector<Entity> with_lost_parts(const Results& earlier, const std::vector<Entity>& now);

/// Stores in `writer`, which has just been created with `now`, the cases of `earlier` that stand (see
/// resume.hpp) and are planned now, and what became of its ranks. Entities are recognised by kind and id,
/// nodes known by their host name only by that; those that are not there any more are added behind the
/// others. Returns /entities as it is then.
std::vector<Entity> carry_over(Writer& writer, const Results& earlier, const Writer::Start& now);

}  // namespace assay::results
