// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/site.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <limits>
#include <memory>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/system.hpp"
#include "suites/storage/folder.hpp"

namespace assay::storage {
namespace {

std::string new_run(std::uint64_t seed) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format("{:016x}", mix64(mix64(seed, static_cast<std::uint64_t>(now.tv_sec)),
                                      mix64(static_cast<std::uint64_t>(now.tv_nsec),
                                            static_cast<std::uint64_t>(::getpid()))));
}

/// True where a rank sees a directory that one of another node has made.
bool seen_by_others(const std::string& path, const std::string& run, Communicator& world) {
  std::unique_ptr<Folder> mine;
  try {
    mine = std::make_unique<Folder>(path, run);
  } catch (const Error&) {  // the case says why
  }
  const std::string here = host_name();
  double seen = 0;
  for (const std::string& text : world.all_gather_text(here + "\n" + (mine ? mine->path() : ""))) {
    const auto end = text.find('\n');
    struct stat info {};
    if (text.substr(0, end) == here || end + 1 == text.size()) continue;
    seen = ::lstat(text.substr(end + 1).c_str(), &info) == 0 ? 1 : 0;
    break;  // one directory of another node tells
  }
  return world.max(seen) > 0;
}

}  // namespace

Site look_at(const std::vector<std::string>& paths, std::uint64_t seed, Communicator& world) {
  Site site;
  site.run = world.broadcast_text(new_run(seed), 0);
  site.key = mix64(seed, hash_text(site.run));
  site.ranks = world.size();
  for (const std::string& path : paths) {
    site.paths.push_back(path);
    site.file_systems.push_back(file_system_of(path));
    site.media_errors.push_back(std::numeric_limits<double>::quiet_NaN());
    site.removed.push_back(remove_leftovers(path));
    world.barrier();
    site.shared.push_back(seen_by_others(path, site.run, world));
  }
  return site;
}

}  // namespace assay::storage
