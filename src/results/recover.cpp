// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "base/system.hpp"
#include "results/file_io.hpp"
#include "results/schema.hpp"
#include "results/writer.hpp"

namespace assay::results {
namespace {

/// A directory of our own beside `out`, for when the partial one is on another file system or not ours to
/// write to.
class Workplace {
 public:
  explicit Workplace(const Path& out) {
    std::string name = out.string() + ".XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) fail_io("create a directory beside", out);
    path_ = name;
  }
  ~Workplace() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  const Path& path() const noexcept { return path_; }

 private:
  Path path_;
};

void merge_into(const Path& merged, const Path& partial, PartialReader& reader) {
  try {
    reserve(merged, merged_bytes(partial));
    write_file(merged, reader, false);
  } catch (const Error& error) {
    const bool disk = error.kind() == ErrorKind::hdf5;
    throw Error(disk ? ErrorKind::io : error.kind(), error.what());
  }
}

/// The first thing that keeps readers from using a file; empty where there is none.
std::string first_problem(const Path& file) {
  try {
    const auto problems = check_file(file);
    return problems.empty() ? "" : problems.front();
  } catch (const Error& error) {
    return error.what();
  }
}

/// Whether `file`, which need not exist, lies below `directory`.
bool lies_in(const Path& file, const Path& directory) {
  std::error_code none;
  const Path at = std::filesystem::weakly_canonical(std::filesystem::absolute(file, none), none);
  const Path below = at.lexically_relative(std::filesystem::weakly_canonical(directory, none));
  return !below.empty() && *below.begin() != "..";
}

}  // namespace

Recovered recover(const Path& partial, const Path& file, bool force) {
  const Path out = target_of(file);
  if (lies_in(out, partial) || lies_in(out, partial / "cases"))
    throw_usage(out.string() + ": lies in " + partial.string() + ", which is removed when it is recovered");
  const h5::Quiet quiet;
  const TakeOverLock lock(partial);  // a run that resumed meanwhile would lose its directory
  const auto abandoned_owner = [&partial] {
    auto found = read_owner(partial);
    if (found && !(*found == this_process(found->run_id))) check_abandoned(partial, *found);
    return found;
  };
  const auto former = abandoned_owner();
  PartialReader reader(partial, Trust::others);
  const auto owner = abandoned_owner();  // of a run that has just made its directory
  if (former && !owner) throw Error(ErrorKind::data, partial.string() + ": its run has ended and removed it");
  check_replaceable(out, force);
  {
    const Workplace workplace(out);
    const Path merged = workplace.path() / "merged.h5";
    merge_into(merged, partial, reader);
    publish(merged, out, force);
  }
  const Recovered made{reader.skipped_cases, reader.damaged, first_problem(out)};
  // What could not be read stays for inspection. Where the file system has no locks the owner may have
  // changed.
  if (made.complete() && read_owner(partial) == owner) remove_partial(partial);
  return made;
}

}  // namespace assay::results
