// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay::results {

/// What belongs to one ended case and is stored with it, atomically.
struct CaseBundle {
  CaseData data;
  std::vector<Entity> new_entities;  ///< appended to /entities, first row = entities known before
  std::vector<Miscompare> errors;
  std::vector<CounterRow> counters;
  TelemetryTable telemetry;  ///< of the time up to its end
  std::vector<FlagRow> flags;
  std::vector<SelftestRow> selftest;
};

/// Writes a run crash-safely: NAME.h5.partial/ is made by mkdir (the lock), every ended case is one file
/// renamed into it, and `finish` merges them into NAME.h5. One process (rank 0) owns it.
class Writer {
 public:
  /// Everything known before the first case; `entities` may grow by CaseBundle::new_entities.
  struct Start {
    RunInfo info;
    Json config;
    std::vector<PlanRow> plan;
    std::vector<EnvironmentRow> environment;
    std::vector<Entity> entities;
    std::map<std::string, InventoryTable> inventory;
  };

  /// Takes the lock and writes `owner` and the start. Throws Error(usage) in one line when the file exists
  /// (without `force`), the directory cannot be written, or a partial directory stands there (naming recover,
  /// --resume, --force).
  /// Ended cases are kept in the directory `spool` until the file is made, if it is given.
  static Writer create(const std::filesystem::path& file, const Start& start, bool force,
                       const std::filesystem::path& spool = {});
  /// Goes on with a directory that another process left behind: takes it over, keeps the cases that stand
  /// (see `is_final` in resume.hpp) and what the run is called, and numbers new ones after them. A case file
  /// that cannot be read is put aside, which `go_on` tells, and its case may be stored again. `start` is of
  /// the run that resumes. Throws Error(usage) in one line when the owner lives or another run is faster,
  /// when NAME.h5 exists (without `force`), or when `start` differs from the run that is resumed (see
  /// `resume_problem`).
  static Writer resume(const std::filesystem::path& partial, const Start& start, bool force);
  /// After `resume`, when the set-up has succeeded: stores the event `resumed`, what could not be read, and
  /// that faults are injected.
  void go_on();
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();  ///< leaves the partial directory where it is unless `finish` or `discard` was called

  /// Durable when it returns (fsync, rename), and so are the events before it. Of a case that did not end
  /// well in an earlier attempt, what it showed then is stored with it (see facts.hpp). Throws Error(io) when
  /// the disk refuses.
  void add_case(const CaseBundle& bundle);
  /// A case of an earlier run that did not end well: it stands until `add_case` replaces it.
  void add_unfinished(const CaseBundle& bundle);
  void add_event(const EventRow& event);
  /// Other hosts see by the time of `owner` that the run lives: to be called every few seconds.
  void show_alive() const noexcept;

  /// Merges, attaches scales, writes the verdict, fsyncs, link(2)s to NAME.h5 and removes the partial
  /// directory. `state` is complete or aborted.
  void finish(const VerdictData& verdict, const std::string& state);
  /// The same from what `load_own_partial` has read of the directory, judged since: samples are copied case
  /// by case, and the rest is not read again. The directory is there until this object ends, so `measured`
  /// can be used until then.
  void finish(const Results& measured, const VerdictData& verdict);
  /// The same of results that are complete in memory, cases and all: none was added before.
  void finish(const Results& results);
  /// For errors before anything was measured: removes the partial directory, or, after `resume`, releases it
  /// with all that it holds.
  void discard() noexcept;

  /// The cases (suite/name) that are stored and stand: of a resumed run those need not run again.
  const std::set<std::string>& stored() const noexcept;
  /// After `resume`: /entities with the rows that stored cases have added. Rows of the own table come first;
  /// new rows follow these.
  const std::vector<Entity>& known_entities() const noexcept;

  /// What the ended cases take on disk, about: so much is to be judged and merged.
  std::uint64_t bytes() const noexcept;

  /// For `--inject diskfull`: writing fails as on a full disk once this many bytes have been written.
  void inject_disk_full(std::uint64_t after_bytes) noexcept;

  const std::filesystem::path& file() const noexcept;
  const std::filesystem::path& partial() const noexcept;

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The partial directory that belongs to a results file: NAME.h5 -> NAME.h5.partial.
std::filesystem::path partial_of(const std::filesystem::path& file);

/// Throws Error(usage) where the partial directory of a results file exists: who writes it or wrote it, and
/// what can be done.
void check_no_partial(const std::filesystem::path& file);

/// What a results file lacks of the directory that it was made from.
struct Recovered {
  std::size_t skipped_cases = 0;
  bool damaged = false;  ///< cases, or parts of a case or events, could not be read
  std::string problem;   ///< of the file, read back and compared with the schema; empty: none

  bool complete() const noexcept { return !damaged && problem.empty(); }
};

/// Makes `out` from a partial directory, which stays where some of it could not be read or `out` does not
/// pass the check of the schema. Nothing is lost if it fails. Throws Error(data) or Error(io).
Recovered recover(const std::filesystem::path& partial, const std::filesystem::path& out, bool force);

}  // namespace assay::results
