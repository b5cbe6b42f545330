// SPDX-License-Identifier: Apache-2.0
// What a run left behind in its partial directory, for the run that goes on with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "results/model.hpp"
#include "results/writer.hpp"

namespace assay::results {

/// What --resume takes over before it can plan. All of it comes from the directory alone.
struct ResumeInfo {
  RunInfo info;  ///< run_id, seed, level, plan_hash, started ... of the run that is resumed
  std::uint64_t memory_per_rank_bytes = 0;  ///< the agreed number that entered its plan
  bool seed_given = false;     ///< whether that run was given its seed, which its plan hash depends on
  Json config;                 ///< its resolved configuration
  std::filesystem::path file;  ///< NAME.h5 of NAME.h5.partial
  double elapsed_s = 0;        ///< wall time since it started: times of samples go on from here
};

/// Reads the start of the run; changes nothing. Takes a NAME.h5.partial directory, or the NAME.h5 of a run
/// that closed its file. Throws Error(usage) when `path` is neither, Error(data) when its start cannot be
/// read.
ResumeInfo read_resume(const std::filesystem::path& path);

/// Whether a resumed run keeps a case: those that passed or failed on all ranks are final. What was skipped,
/// is incomplete or ended in error, on some ranks or all, runs again and replaces what was stored.
bool is_final(const CaseData& c) noexcept;

/// One line naming the first thing in which `now` differs from the run that is resumed, so that it cannot go
/// on: version, seed, level, memory, nodes and their order, ranks and their places, other entities,
/// configuration, plan, plan hash. Empty when it can. `now.entities` may be shorter than `then.entities`,
/// which has grown.
std::string resume_problem(const Writer::Start& then, const Writer::Start& now);

/// The same for a run on fewer nodes and ranks: those that are there must have been there. The plan may be
/// another.
std::string carry_over_problem(const Writer::Start& then, const Writer::Start& now);

}  // namespace assay::results
