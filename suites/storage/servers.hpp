// SPDX-License-Identifier: Apache-2.0
// On which server of a shared file system a file lies: by the text of the file system's own tools, or by its
// mount.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "suites/storage/folder.hpp"
#include "suites/storage/place.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// An object storage target of Lustre.
struct LustreTarget {
  int index = 0;
  std::string name;  ///< "scratch-OST0003"
};
/// The active targets that `lfs osts DIR` lists, each once. Lines that are none are left out.
std::vector<LustreTarget> parse_lfs_osts(const std::string& text);
/// The indices of the targets on which `lfs getstripe FILE` sees a file, each once.
std::vector<int> parse_lfs_getstripe(const std::string& text);
/// The storage targets that `beegfs-ctl --getentryinfo FILE` lists, each once: "storage01/101".
std::vector<std::string> parse_beegfs_entry(const std::string& text);
/// The address of the server in the source of a network mount ("filer:/export", "[fe80::1]:/x",
/// "//host/share"); empty for others.
std::string server_of_mount(const Mount& mount);
/// Whether all data of a mount are on that server: not with types that spread them (GlusterFS, CephFS,
/// Lustre).
bool tells_server(const Mount& mount);

/// Files of this process on the servers of one file system, made in a directory that it has made.
class ServerFiles {
 public:
  struct File {
    std::string server, path;
    Descriptor fd;
    std::string refused;  ///< why it is not opened with O_DIRECT; empty where it is, or was not to be
  };
  /// `tool`: lfs, beegfs-ctl, or empty where a directory is one server's. At most `most` servers, spread
  /// over all. Throws Refused, and Error(resource) where a tool fails.
  void place(const std::string& tool, const Site& site, std::size_t path, const std::string& name,
             bool direct, std::size_t most, const std::string& server);

  std::vector<File>& all() noexcept { return files_; }
  /// Of the least of the directories, for each file in it.
  std::uint64_t space_per_file(std::uint64_t asked, std::uint64_t clients) const;
  /// Files vanish with their descriptors.
  void drop_names();

 private:
  void by_lfs(Folder& folder, const std::string& name, bool direct, std::size_t most);
  void by_beegfs(Folder& folder, const std::string& name, bool direct, std::size_t most);

  struct In {
    std::unique_ptr<Folder> folder;
    std::vector<std::string> names;
  };
  std::vector<In> folders_;
  std::vector<File> files_;
};

}  // namespace assay::storage
