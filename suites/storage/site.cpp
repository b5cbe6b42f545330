// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/site.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/json.hpp"
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
bool seen_by_others(const std::string& path, bool silent_here, const std::string& run, Communicator& world) {
  std::unique_ptr<Folder> mine;
  try {
    if (!silent_here) mine = std::make_unique<Folder>(path, run);
  } catch (const Error&) {  // the case says why
  }
  const std::string here = host_name();
  double seen = 0;
  for (const std::string& text : world.all_gather_text(here + "\n" + (mine ? mine->path() : ""))) {
    const auto end = text.find('\n');
    struct stat info {};
    if (silent_here || text.substr(0, end) == here || end + 1 == text.size()) continue;
    seen = ::lstat(text.substr(end + 1).c_str(), &info) == 0 ? 1 : 0;
    break;  // one directory of another node tells
  }
  return world.max(seen) > 0;
}

}  // namespace

std::string Site::silence(std::size_t path) const {
  constexpr std::size_t most_named = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(silent[path].size(), most_named); ++i)
    names += (i == 0 ? "" : ", ") + silent[path][i];
  return fmt::format("{} does not answer on {}{} ({} of {} nodes)", paths[path], names,
                     silent[path].size() > most_named ? ", ..." : "", silent[path].size(), nodes);
}

Site look_at(const std::vector<std::string>& paths, const std::vector<std::string>& silent_here,
             std::uint64_t seed, Communicator& world) {
  Site site;
  site.run = world.broadcast_text(new_run(seed), 0);
  site.key = mix64(seed, hash_text(site.run));
  site.ranks = world.size();
  std::set<std::string> nodes;
  std::vector<std::set<std::string>> silent(paths.size());
  for (const std::string& text :
       world.all_gather_text(Json{{"host", host_name()}, {"silent", silent_here}}.dump())) {
    const Json rank = Json::parse(text);
    nodes.insert(rank.at("host").get<std::string>());
    for (const Json& path : rank.at("silent"))
      for (std::size_t i = 0; i < paths.size(); ++i)
        if (path == paths[i]) silent[i].insert(rank.at("host").get<std::string>());
  }
  site.nodes = nodes.size();
  for (const std::string& path : paths) {
    const auto& nowhere = silent[site.paths.size()];
    const bool silent_on_node = nowhere.contains(host_name());
    site.silent.emplace_back(nowhere.begin(), nowhere.end());
    site.paths.push_back(path);
    site.file_systems.push_back(silent_on_node ? std::nullopt : file_system_of(path));
    site.media_errors.push_back(std::numeric_limits<double>::quiet_NaN());
    site.removed.push_back(silent_on_node ? 0 : remove_leftovers(path));
    world.barrier();
    site.shared.push_back(seen_by_others(path, silent_on_node, site.run, world));
  }
  return site;
}

}  // namespace assay::storage
