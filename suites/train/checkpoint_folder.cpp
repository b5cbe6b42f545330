// SPDX-License-Identifier: Apache-2.0
#include "suites/train/checkpoint_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "suite/folder_owner.hpp"

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
