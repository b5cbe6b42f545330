// SPDX-License-Identifier: Apache-2.0
#include "results/writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "results/case_io.hpp"
#include "results/described.hpp"
#include "results/facts.hpp"
#include "results/file_io.hpp"
#include "results/json_io.hpp"
#include "results/resume.hpp"
#include "results/telemetry_io.hpp"

namespace assay::results {
namespace {

[[noreturn]] void fail_stale(const Path& partial, const Path& file) {
  const auto owner = read_owner(partial);
  std::string who;
  if (owner && is_running(*owner))
    throw_usage(file.string() + ": a run is writing it (process " + std::to_string(owner->pid) + " on " +
                owner->host + ", in " + partial.string() + ")");
  if (owner) {
    check_abandoned(partial, *owner);
    who = " (run " + owner->run_id + " was written by process " + std::to_string(owner->pid) + " on " +
          owner->host + ")";
  }
  throw_usage(partial.string() + " exists" + who + ": finish it with 'assay recover " + partial.string() +
              " -o " + file.string() + "', continue it with --resume " + partial.string() +
              ", or drop it with --force");
}

void clear_stale(const Path& partial) {
  const auto owner = read_owner(partial);
  if (owner && is_running(*owner)) {
    throw_usage(partial.string() + " is being written by process " + std::to_string(owner->pid) +
                " on this host: --force does not drop the results of a live run");
  }
  if (owner) check_abandoned(partial, *owner);
  if (!remove_partial(partial))
    throw_usage("cannot remove " + partial.string() + ": it was not made by assay, or is not ours");
}

/// The merge as a person should hear of it when it fails.
template <class F>
void merging(const Path& partial, F&& merge) {
  const std::string kept = "; everything measured is kept in " + partial.string();
  try {
    merge();
  } catch (const Error& error) {
    const bool disk = error.kind() == ErrorKind::hdf5 || error.kind() == ErrorKind::io;
    throw Error(disk ? ErrorKind::io : error.kind(), error.what() + kept);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::io, error.what() + kept);
  }
}

/// What a person should hear of a disk that refuses: the name of the file that was asked for.
[[noreturn]] void fail_disk(const Path& file, const DiskError& error) {
  throw Error(ErrorKind::io, file.string() + ": " + std::strerror(error.number()));
}

}  // namespace

struct Writer::Impl {
  Path file, partial, owner_file;
  bool force = false, done = false;
  bool resumed = false;  ///< the directory holds what an earlier process measured
  std::size_t entities = 0;
  std::int64_t next = 0;
  Owner owner;
  Path cases;                   ///< the directory of the case files
  std::set<std::string> names;  ///< of the cases that are stored and stand
  struct Again {
    Path file;
    Facts facts;
  };
  std::map<std::string, Again> again;  ///< cases whose file a new one replaces
  bool unsynced = false;               ///< events were written since
  std::vector<Entity> known;
  std::uint64_t carried = 0;  ///< bytes of cases of a former process
  std::uint64_t written = 0, budget = ~std::uint64_t{0};
  bool remove_at_end = false;
  std::optional<EventRow> resumption;  ///< until it is told
  std::vector<std::string> damaged;    ///< the case files that were put aside, until they are told
  std::optional<Start> injected;       ///< of a run that goes on with faults: stored when it does

  ~Impl() {
    if (remove_at_end) remove_partial(partial);
  }

  /// A writer that lost the directory to another run must not write there; it throws.
  void check_owner() const {
    if (is_owner(partial, owner)) return;
    throw Error(ErrorKind::io, partial.string() + " was taken over by another process");
  }

  void spend(std::size_t bytes) {
    written += bytes;
    if (written <= budget) return;
    errno = ENOSPC;
    fail_io("write", partial);
  }

  /// What a former process stored. Leaves behind what belonged to its end, and what it did not finish
  /// writing.
  void take_stored(PartialReader& reader) {
    std::set<Path> taken;
    // Written anew from what was read of it: from now on all files here are our own.
    reader.read_cases([](CaseData&&) {},
                      [&](const Path& path, const StoredBundle& stored) {
                        write_bundle(path, stored.bundle, stored.sequence,
                                     static_cast<std::size_t>(stored.first_entity), [](std::size_t) {});
                        taken.insert(path);
                        const CaseData& data = stored.bundle.data;
                        if (is_final(data))
                          names.insert(data.path());
                        else
                          again.insert_or_assign(data.path(), Again{path, facts_of(stored.bundle)});
                      });
    known = reader.entities;
    entities = known.size();
    for (const Path& path : case_files(partial)) {
      next = std::max<std::int64_t>(next, std::strtol(path.stem().c_str(), nullptr, 10) + 1);
      if (!taken.contains(path)) put_aside(path);
    }
    // Also those that a process put aside which ended before it told.
    for (const Path& path : entries_of(cases_directory(partial))) {
      const std::string name = path.filename().string();
      const auto tells = [&](const EventRow& e) { return e.text.find(name) != std::string::npos; };
      if (path.extension() == ".damaged" && std::ranges::none_of(reader.events, tells))
        damaged.push_back(name);
    }
    for (const char* name : {"end.json", "merged.h5"}) ::unlink((partial / name).c_str());
    cut_torn_line(partial / "events.jsonl");
    carried = merged_bytes(partial);
  }

  /// Makes the results file of what `write` writes. It throws what a person should hear of.
  void merge(const End& end, const std::function<void(const Path&)>& write) {
    const h5::Quiet quiet;
    if (done) throw Error(ErrorKind::internal, "the results file is finished already");
    merging(partial, [&] {
      check_owner();
      const std::string text = end_to_text(end);
      spend(text.size());
      write_durable(partial / "end.json", text);
      const Path merged = partial / "merged.h5";
      spend(merged_bytes(partial));
      reserve(merged, merged_bytes(partial));
      write(merged);
      publish(merged, file, force);
    });
    done = true;
  }

  /// Stores a case with what an earlier attempt showed. It stands, or runs again.
  void store(const CaseBundle& bundle, bool stands) {
    const h5::Quiet quiet;
    const std::string name = bundle.data.path();
    const auto wrong = [&](const std::string& what) {
      throw Error(ErrorKind::internal, "results of " + name + ": " + what);
    };
    if (done) wrong("the file is finished");
    if (names.contains(name)) wrong("the case was stored before");
    const std::size_t all = entities + bundle.new_entities.size();
    std::string problem = problem_of(bundle.data, all);
    if (problem.empty()) problem = telemetry_problem(bundle.telemetry, all);
    if (!problem.empty()) wrong(problem);
    check_owner();
    // Events of this case are there when it is: without it, it would run again and tell them once more.
    if (std::exchange(unsynced, false)) sync_file(partial / "events.jsonl"), sync_directory(partial);
    const auto former = again.find(name);
    const bool anew = former == again.end();
    std::optional<CaseBundle> whole;
    if (!anew && !former->second.facts.empty()) add_facts(Facts(former->second.facts), whole.emplace(bundle));
    const CaseBundle& stored = whole ? *whole : bundle;
    const Path path = anew ? case_file(cases, next) : former->second.file;
    write_bundle(path, stored, next, entities, [this](std::size_t bytes) { spend(bytes); });
    next += anew ? 1 : 0;
    again.erase(name);
    if (stands)
      names.insert(name);
    else
      again.emplace(name, Again{path, facts_of(stored)});
    entities = all;
  }

  static void put_aside(const Path& path) {
    const Path to = path.string() + ".damaged";
    if (::rename(path.c_str(), to.c_str()) != 0) fail_io("rename", path);
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Path partial_of(const Path& file) { return file.string() + ".partial"; }

void check_no_partial(const Path& file) {
  if (is_there(partial_of(file))) fail_stale(partial_of(file), file);
}

Writer Writer::create(const Path& file, const Start& start, bool force, const Path& spool) {
  check_start(start);
  auto impl = std::make_unique<Impl>();
  impl->file = file;
  impl->partial = partial_of(file);
  impl->owner_file = impl->partial / "owner";
  impl->force = force;
  impl->entities = start.entities.size();
  if (file.empty() || !file.has_filename())
    throw_usage("\"" + file.string() + "\" is no name for a results file");
  check_replaceable(file, force);
  if (!force)
    check_no_partial(file);
  else if (is_there(impl->partial))
    clear_stale(impl->partial);
  if (::mkdir(impl->partial.c_str(), 0777) != 0) {
    if (errno == EEXIST) fail_stale(impl->partial, file);  // another run was faster
    throw_usage("cannot create " + impl->partial.string() + ": " + std::strerror(errno));
  }
  try {
    impl->owner = this_process(start.info.run_id);
    write_durable(impl->partial / "owner", to_text(impl->owner));
    impl->cases = impl->partial / "cases";
    make_cases(impl->partial, spool, impl->owner.run_id);
    write_durable(impl->partial / "plan.json", dump_sealed(start_to_json(start)) + "\n");
    sync_directory(file.parent_path());
  } catch (const DiskError& error) {
    remove_partial(impl->partial);
    // The place can be written: that it is full is no fault of who named it.
    if (error.number() == ENOSPC || error.number() == EDQUOT) fail_disk(file, error);
    throw_usage(error.what());
  } catch (const Error& error) {
    remove_partial(impl->partial);
    throw Error(error.kind() == ErrorKind::io ? ErrorKind::usage : error.kind(), error.what());
  }
  return Writer(std::move(impl));
}

Writer Writer::resume(const Path& partial, const Start& start, bool force) {
  const h5::Quiet quiet;
  const TakeOverLock lock(partial);
  if (const auto owner = read_owner(partial)) check_abandoned(partial, *owner);
  const ResumeInfo info = read_resume(partial);
  auto impl = std::make_unique<Impl>();
  impl->file = info.file;
  impl->partial = partial_of(info.file);
  impl->owner_file = impl->partial / "owner";
  impl->force = force;
  check_replaceable(impl->file, force);
  const auto check = [&](const Start& then) {
    if (const std::string problem = resume_problem(then, start); !problem.empty())
      throw_usage("--resume " + impl->partial.string() + ": " + problem);
  };
  // Before anything is touched: what cannot be read or listed is an error here.
  check(PartialReader(impl->partial, Trust::others).start);
  case_files(impl->partial);
  impl->owner = take_over(impl->partial, info.info.run_id);
  impl->resumed = true;
  impl->cases = cases_directory(impl->partial);
  PartialReader reader(impl->partial, Trust::others);  // again, now that no other process writes it
  check(reader.start);
  impl->take_stored(reader);
  Start grown = std::move(reader.start);
  grown.entities = impl->known;
  write_durable(impl->partial / "plan.json", dump_sealed(start_to_json(grown)) + "\n");
  impl->resumption = {
      info.elapsed_s, -1, "resumed",
      std::to_string(impl->names.size()) + " cases were there; resumed by " + start.info.command_line};
  if (start.info.injected && !grown.info.injected) {
    grown.info.injected = true;
    impl->injected = std::move(grown);
  }
  return Writer(std::move(impl));
}

void Writer::go_on() {
  if (const auto start = std::exchange(impl_->injected, {}))
    write_durable(impl_->partial / "plan.json", dump_sealed(start_to_json(*start)) + "\n");
  if (const auto event = std::exchange(impl_->resumption, {})) add_event(*event);
  for (const std::string& name : std::exchange(impl_->damaged, {}))
    add_event(
        {0, -1, damage_event,
         "a case file could not be read, and its case runs again: what it showed is unknown (" + name + ")"});
}

void Writer::add_case(const CaseBundle& bundle) {
  impl_->store(bundle, true);
  show_alive();
}

void Writer::add_unfinished(const CaseBundle& bundle) { impl_->store(bundle, false); }

void Writer::add_event(const EventRow& event) {
  impl_->check_owner();
  const std::string line = dump_sealed(event_to_json(event)) + "\n";
  impl_->spend(line.size());
  append(impl_->partial / "events.jsonl", line);
  impl_->unsynced = true;
}

void Writer::show_alive() const noexcept { ::utimensat(AT_FDCWD, impl_->owner_file.c_str(), nullptr, 0); }

void Writer::finish(const VerdictData& verdict, const std::string& state) {
  bool damaged = false;
  impl_->merge({state, utc_now_iso(), verdict}, [&](const Path& merged) {
    PartialReader reader(impl_->partial);
    write_file(merged, reader, false);
    damaged = has_damage(reader.events);
  });
  if (!damaged) remove_partial(impl_->partial);
}

void Writer::finish(const Results& measured, const VerdictData& verdict) {
  const std::string ended = utc_now_iso();
  const auto info = [&] {
    RunInfo out = measured.info;
    out.ended = ended;
    out.verdict = verdict.state;
    return out;
  };
  impl_->merge({measured.info.state, ended, verdict},
               [&](const Path& merged) { write_file(merged, content_of(measured, &verdict, info)); });
  impl_->remove_at_end = !has_damage(measured.events);
}

void Writer::finish(const Results& results) {
  const h5::Quiet quiet;
  const auto wrong = [](const std::string& what) { throw Error(ErrorKind::internal, "results: " + what); };
  if (impl_->done || !impl_->names.empty()) wrong("the file has content already");
  for (const CaseData& data : results.cases) {
    if (const std::string problem = problem_of(data, results.entities.size()); !problem.empty())
      wrong(data.path() + ": " + problem);
    if (!impl_->names.insert(data.path()).second) wrong("duplicate " + data.path());
  }
  if (const std::string problem = telemetry_problem(results.telemetry, results.entities.size());
      !problem.empty())
    wrong(problem);
  const auto info = [&] {
    RunInfo out = results.info;
    if (out.ended.empty()) out.ended = utc_now_iso();
    out.verdict = results.verdict ? results.verdict->state : "";
    return out;
  };
  const Path merged = impl_->partial / "merged.h5";
  try {
    write_file(merged, content_of(results, results.verdict ? &*results.verdict : nullptr, info));
  } catch (const DiskError& error) {
    fail_disk(impl_->file, error);
  } catch (const Error& error) {
    throw Error(error.kind() == ErrorKind::hdf5 ? ErrorKind::io : error.kind(), error.what());
  }
  publish(merged, impl_->file, impl_->force);
  impl_->done = true;
  remove_partial(impl_->partial);
}

void Writer::discard() noexcept {
  if (!impl_ || impl_->done) return;
  impl_->done = true;
  if (!impl_->resumed) {
    remove_partial(impl_->partial);
    return;
  }
  try {
    release(impl_->partial);
  } catch (const std::exception&) {
    // It stays ours; when this process has ended, the next one can take it over all the same.
  }
}

const std::set<std::string>& Writer::stored() const noexcept { return impl_->names; }
const std::vector<Entity>& Writer::known_entities() const noexcept { return impl_->known; }

std::uint64_t Writer::bytes() const noexcept { return impl_->carried + impl_->written; }

void Writer::inject_disk_full(std::uint64_t after_bytes) noexcept { impl_->budget = after_bytes; }

const Path& Writer::file() const noexcept { return impl_->file; }
const Path& Writer::partial() const noexcept { return impl_->partial; }

}  // namespace assay::results
