// SPDX-License-Identifier: Apache-2.0
// The directory that a run writes into until its file is complete. Private to src/results.
//   owner          who writes it
//   plan.json      the start of the run: identity, configuration, plan, environment, entities, inventory
//   cases/N.h5     one ended case each, with its errors and counters; N is the order in which they ended.
//                  After a resume the directory is called cases-2, cases-3 ...
//   events.jsonl   one event per line, each with its checksum
//   end.json       state and verdict, once the run is over
//   merged.h5      the results file in the making
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/confined.hpp"
#include "results/disk.hpp"
#include "results/model.hpp"
#include "results/writer.hpp"

namespace assay::results {

/// How a run ended.
struct End {
  std::string state, ended;
  VerdictData verdict;
};

std::string end_to_text(const End& end);
Path case_file(const Path& cases_directory, std::int64_t sequence);

/// Writes a case file, durably; a large one without an image of it in memory. `first_entity` is the row that
/// the first of `new_entities` gets. `spend` is told the size before the file has its name, and may throw.
void write_bundle(const Path& path, const CaseBundle& bundle, std::int64_t sequence, std::size_t first_entity,
                  const std::function<void(std::size_t)>& spend);

/// What a case file holds.
struct StoredBundle {
  CaseBundle bundle;
  std::int64_t sequence = 0, first_entity = 0;
};

/// Who wrote a directory: this process, or others, whose files are read in a process of their own.
enum class Trust { own, others };

/// How many bytes of samples of a run that ends are in memory.
constexpr std::size_t most_cached_bytes = std::size_t{32} << 20;

/// Reads a partial directory. A damaged case or event line is skipped and becomes an event.
class PartialReader {
 public:
  /// Throws Error(usage) when there is no such directory, Error(data) when its start cannot be read.
  /// With `cache`, samples stay in the files, which must be our own and remain.
  explicit PartialReader(const Path& partial, Trust trust = Trust::own,
                         std::shared_ptr<ValueCache> cache = nullptr);

  Writer::Start start;
  std::optional<End> end;
  std::vector<EventRow> events;

  using Each = std::function<void(CaseData&&)>;
  using EachFile = std::function<void(const Path&, const StoredBundle&)>;
  /// Calls `each` with the ended cases in their order, `each_file` with the files they are in, and collects
  /// all the rest. Once per reader.
  void read_cases(const Each& each, const EachFile& each_file = {});

  // what read_cases collected
  std::vector<Entity> entities;
  std::vector<Miscompare> errors;
  std::vector<CounterRow> counters;
  TelemetryTable telemetry;
  std::vector<FlagRow> flags;
  std::vector<SelftestRow> selftest;
  std::string last_ended;  ///< time of the last case
  bool damaged = false;
  std::map<std::string, Path> file_of;  ///< case -> its file
  std::size_t skipped_cases = 0;

  /// State, end and verdict of the run: as it ended, else running or aborted.
  RunInfo info(bool running) const;

 private:
  void read_events(const InputFile& file);
  void read_start(const Inputs& files);
  void take(StoredBundle&& stored, const Path& path, const Each& each, const EachFile& each_file);
  bool acceptable(CaseBundle& bundle, const Path& path);
  void note_damage(const std::string& text);
  void skip_file(const Path& path, const std::string& why);
  void place(std::vector<Entity>&& added, std::size_t first);

  Path partial_;
  Trust trust_;
  std::shared_ptr<ValueCache> cache_;
  std::uint64_t placeable_ = 0;  ///< rows without content that may still be added for lost ones
};

/// The files of the cases by their numbers (longer ones are later), damaged ones included.
std::vector<Path> case_files(const Path& partial);

/// Sum of the sizes of the files to merge, with what the merge adds.
std::uint64_t merged_bytes(const Path& partial);

}  // namespace assay::results
