// SPDX-License-Identifier: Apache-2.0
#include "results/writer.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "results/case_io.hpp"
#include "results/file_io.hpp"
#include "results/json_io.hpp"

namespace assay::results {
namespace {

void make_directory(const Path& path) {
  if (::mkdir(path.c_str(), 0777) != 0) fail_io("create", path);
}

/// Says who stands in the way and what can be done about it.
[[noreturn]] void fail_stale(const Path& partial, const Path& file) {
  const auto owner = read_owner(partial);
  std::string who;
  if (owner) {
    who = " (run " + owner->run_id + (is_running(*owner) ? " is being written" : " was written") +
          " by process " + std::to_string(owner->pid) + " on " + owner->host + ")";
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
  if (!remove_partial(partial))
    throw_usage("cannot remove " + partial.string() + ": it was not made by assay, or is not ours");
}

bool is_there(const Path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
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

}  // namespace

struct Writer::Impl {
  Path file, partial;
  bool force = false, done = false;
  std::size_t entities = 0;
  std::int64_t next = 0;
  std::set<std::string> names;
  std::uint64_t written = 0, budget = ~std::uint64_t{0};

  void spend(std::size_t bytes) {
    written += bytes;
    if (written <= budget) return;
    errno = ENOSPC;
    fail_io("write", partial);
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Path partial_of(const Path& file) { return file.string() + ".partial"; }

Writer Writer::create(const Path& file, const Start& start, bool force) {
  check_start(start);
  auto impl = std::make_unique<Impl>();
  impl->file = file;
  impl->partial = partial_of(file);
  impl->force = force;
  impl->entities = start.entities.size();
  if (file.empty() || !file.has_filename())
    throw_usage("\"" + file.string() + "\" is no name for a results file");
  if (std::filesystem::is_directory(file)) throw_usage(file.string() + " is a directory");
  if (!force && is_there(file))
    throw_usage(file.string() + " exists: choose another name, or overwrite it with --force");
  if (is_there(impl->partial)) {
    if (!force) fail_stale(impl->partial, file);
    clear_stale(impl->partial);
  }
  if (::mkdir(impl->partial.c_str(), 0777) != 0) {
    if (errno == EEXIST) fail_stale(impl->partial, file);  // another run was faster
    throw_usage("cannot create " + impl->partial.string() + ": " + std::strerror(errno));
  }
  try {
    write_durable(impl->partial / "owner", to_text(this_process(start.info.run_id)));
    make_directory(impl->partial / "cases");
    write_durable(impl->partial / "plan.json", dump_sealed(start_to_json(start)) + "\n");
    sync_directory(file.parent_path());
  } catch (const Error& error) {
    remove_partial(impl->partial);
    throw Error(error.kind() == ErrorKind::io ? ErrorKind::usage : error.kind(), error.what());
  }
  return Writer(std::move(impl));
}

void Writer::add_case(const CaseBundle& bundle) {
  const h5::Quiet quiet;
  const auto wrong = [&](const std::string& what) {
    throw Error(ErrorKind::internal, "results of " + bundle.data.path() + ": " + what);
  };
  if (impl_->done) wrong("the file is finished");
  if (impl_->names.contains(bundle.data.path())) wrong("the case was stored before");
  const std::size_t entities = impl_->entities + bundle.new_entities.size();
  if (const std::string problem = problem_of(bundle.data, entities); !problem.empty()) wrong(problem);
  const std::string image = bundle_image(bundle, impl_->next, impl_->entities);
  impl_->spend(image.size());
  write_durable(case_file(impl_->partial, impl_->next), image);
  ++impl_->next;
  impl_->entities = entities;
  impl_->names.insert(bundle.data.path());
}

void Writer::add_event(const EventRow& event) {
  const std::string line = dump_sealed(event_to_json(event)) + "\n";
  impl_->spend(line.size());
  append(impl_->partial / "events.jsonl", line);
}

void Writer::finish(const VerdictData& verdict, const std::string& state) {
  const h5::Quiet quiet;
  if (impl_->done) throw Error(ErrorKind::internal, "the results file is finished already");
  merging(impl_->partial, [&] {
    const std::string text = end_to_text({state, utc_now_iso(), verdict});
    impl_->spend(text.size());
    write_durable(impl_->partial / "end.json", text);
    const Path merged = impl_->partial / "merged.h5";
    impl_->spend(merged_bytes(impl_->partial));
    reserve(merged, merged_bytes(impl_->partial));
    PartialReader reader(impl_->partial);
    write_file(merged, reader, false);
    publish(merged, impl_->file, impl_->force);
  });
  impl_->done = true;
  remove_partial(impl_->partial);
}

void Writer::discard() noexcept {
  if (!impl_ || impl_->done) return;
  impl_->done = true;
  remove_partial(impl_->partial);
}

void Writer::inject_disk_full(std::uint64_t after_bytes) noexcept { impl_->budget = after_bytes; }

const Path& Writer::file() const noexcept { return impl_->file; }
const Path& Writer::partial() const noexcept { return impl_->partial; }

}  // namespace assay::results
