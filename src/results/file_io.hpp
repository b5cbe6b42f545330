// SPDX-License-Identifier: Apache-2.0
// The whole results file. Private to src/results.
#pragma once

#include "results/disk.hpp"
#include "results/h5.hpp"
#include "results/partial.hpp"

namespace assay::results {

/// Throws Error(internal) when names, lengths, units or references of the inventory are wrong.
void check_start(const Writer::Start& start);

/// What goes into one results file. `cases` gives them one by one; whatever it finds out about the other
/// members is there when it returns.
struct FileContent {
  const Json& config;
  const std::vector<PlanRow>& plan;
  const std::vector<EnvironmentRow>& environment;
  const std::map<std::string, InventoryTable>& inventory;
  std::function<void(const std::function<void(const CaseData&)>&)> cases;
  const std::vector<Entity>& entities;
  const std::vector<Miscompare>& errors;
  const std::vector<CounterRow>& counters;
  const TelemetryTable& telemetry;
  const std::vector<FlagRow>& flags;
  const std::vector<EventRow>& events;
  const std::vector<SelftestRow>& selftest;
  const VerdictData* verdict;
  std::function<RunInfo()> info;
};

/// Of results in memory, which outlive it as `verdict` does.
FileContent content_of(const Results& results, const VerdictData* verdict,
                       const std::function<RunInfo()>& info);

/// Writes one results file, sealed and on disk, under the name `file`.
void write_file(const Path& file, const FileContent& content);
/// The same of a partial directory. `running`: whether one without end.json is of a run that goes on.
void write_file(const Path& file, PartialReader& partial, bool running);

/// Opens a results file of this major version. Throws Error(data). `input` outlives what is returned.
struct OpenFile {
  h5::Id id;
  h5::Limits limits;
};
OpenFile open_results(const InputFile& input, const CheckedFile& checked);

}  // namespace assay::results
