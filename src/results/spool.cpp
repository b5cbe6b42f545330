// SPDX-License-Identifier: Apache-2.0
// Where the case files of a partial directory are. With --spool they are on another file system: `cases` is a
// link to SPOOL/NAME.h5@HOST@RUN.cases, and a file in there, `partial`, tells whose they are.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "base/system.hpp"
#include "results/disk.hpp"

namespace assay::results {
namespace {

std::optional<Path> spooled(const Path& partial) {
  std::error_code code;
  const Path target = std::filesystem::read_symlink(cases_directory(partial), code);
  return code ? std::nullopt : std::optional(target);
}

/// Nothing is written or removed behind a link that somebody else made to a directory of another kind.
bool made_by_a_run(const Path& place) {
  std::error_code code;
  return place.is_absolute() && place.extension() == ".cases" &&
         std::filesystem::is_directory(std::filesystem::symlink_status(place, code)) &&
         (std::filesystem::exists(place / "partial", code) || std::filesystem::is_empty(place, code));
}

}  // namespace

Path cases_directory(const Path& partial) {
  Path found = partial / "cases";
  for (const Path& path : entries_of(partial)) {
    const std::string name = path.filename().string();
    std::error_code ignored;
    const auto status = std::filesystem::symlink_status(path, ignored);
    if (name.starts_with("cases-") &&
        (std::filesystem::is_symlink(status) || std::filesystem::is_directory(status)))
      found = std::max(found, path);
  }
  return found;
}

void make_cases(const Path& partial, const Path& spool, const std::string& run_id) {
  const Path cases = partial / "cases";
  if (spool.empty()) return make_directory(cases);
  const Path place = std::filesystem::absolute(spool).lexically_normal() /
                     (partial.stem().string() + "@" + host_name() + "@" + run_id + ".cases");
  // The link comes first, so that a process that is killed here leaves nothing in the spool that it lacks.
  if (::symlink(place.c_str(), cases.c_str()) != 0) fail_io("create", cases);
  if (::mkdir(place.c_str(), 0777) != 0) {
    const int why = errno;
    ::unlink(cases.c_str());  // what may stand there is not ours
    throw DiskError(ErrorKind::io,
                    "--spool: cannot create a directory in " + spool.string() + ": " + std::strerror(why),
                    why);
  }
  write_durable(place / "partial", std::filesystem::absolute(partial).string() + "\n");
  sync_directory(place.parent_path());
}

bool cases_are_here(const Path& partial) {
  const auto place = spooled(partial);
  return !place || made_by_a_run(*place);
}

void check_cases(const Path& partial) {
  if (cases_are_here(partial)) return;
  const auto place = spooled(partial);
  std::error_code code;
  throw_usage(partial.string() + ": its cases are in " + place->string() +
              (std::filesystem::exists(*place, code) ? ", which no run of assay has made"
                                                     : ", which is not on this machine"));
}

bool remove_spooled(const Path& partial) noexcept try {
  const auto place = spooled(partial);
  if (!place || !made_by_a_run(*place)) return true;
  return remove_with_last(*place, "partial");
} catch (...) {
  return false;
}

}  // namespace assay::results
