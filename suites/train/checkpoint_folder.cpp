// SPDX-License-Identifier: Apache-2.0
#include "suites/train/checkpoint_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/system.hpp"
#include "base/units.hpp"
#include "suite/folder_owner.hpp"
#include "suite/space.hpp"

namespace assay::train {
namespace {

namespace fs = std::filesystem;
constexpr const char* suite = "train";

/// Of a directory, no link; empty where it cannot be read.
std::vector<fs::path> inside(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error))) return all;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    all.push_back(it->path());
  return all;
}

bool remove_folder(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::path& step : inside(folder)) {
    if (!step.filename().string().starts_with("step-")) continue;
    for (const fs::path& file : inside(step))
      if (const std::string name = file.filename(); name.starts_with("shard-") || name == "DONE")
        fs::remove(file, ignored);
    fs::remove(step, ignored);
  }
  return fs::remove(folder, ignored);
}

}  // namespace

void require_space(const fs::path& scratch, std::uint64_t bytes) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::resource,
                fmt::format("{}: --train.scratch: {}: {}", host_name(), scratch.string(), why));
  };
  struct statvfs info {};
  if (::statvfs(scratch.c_str(), &info) != 0)
    refuse(fmt::format("cannot ask for space: {}", std::strerror(errno)));
  const Space space = space_of(info);
  const std::uint64_t reserve = reserve_bytes(space.total);
  const bool read_only = (info.f_flag & ST_RDONLY) != 0;
  if (space.total == 0 || read_only || space.available >= bytes + reserve) return;
  refuse(fmt::format("{} of {} are free, {} must stay so: too little for checkpoints, which need {}",
                     format_bytes(space.available), format_bytes(space.total), format_bytes(reserve),
                     format_bytes(bytes)));
}

std::string folder_name(std::uint64_t seed, bool keep) {
  const std::uint64_t run = mix64(seed, static_cast<std::uint64_t>(now_s() * 1e6));
  return FolderOwner::self(suite, fmt::format("{:016x}", run)).name() + (keep ? "-kept" : "");
}

int remove_leftovers(const fs::path& scratch, std::optional<pid_t> pid) {
  int removed = 0;
  for (const fs::path& folder : inside(scratch)) {
    const FolderOwner owner = FolderOwner::parse(suite, folder.filename());
    if (owner.pid <= 0 || owner.pid != pid.value_or(static_cast<pid_t>(owner.pid))) continue;
    struct stat info {};
    if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) continue;
    if (!owner.surely_dead(static_cast<double>(info.st_mtim.tv_sec))) continue;
    removed += remove_folder(folder) ? 1 : 0;
  }
  return removed;
}

}  // namespace assay::train
