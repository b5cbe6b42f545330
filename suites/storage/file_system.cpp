// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/file_system.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/error.hpp"
#include "base/system.hpp"
#include "suites/storage/folder.hpp"
#include "suites/storage/place.hpp"

namespace assay::storage {

std::string FileSystem::text() const {
  return fmt::format("{} of {} (device {}:{})", type.empty() ? "an unknown type" : type,
                     source.empty() ? "an unknown source" : source, ::major(device), ::minor(device));
}

std::optional<FileSystem> file_system_of(const std::string& directory) {
  // Opening it, unlike stat(2), lets an automounter mount it.
  const Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return std::nullopt;
  const auto mount = mount_now(directory).value_or(Mount{});
  return FileSystem{info.st_dev, mount.type, mount.source};
}

bool is_same(const FileSystem& a, const FileSystem& b) {
  if (a.type != b.type || a.source != b.source) return false;
  return a.device == b.device || (is_network(a.type) && ::major(a.device) == 0 && ::major(b.device) == 0);
}

std::string what_changed(const std::string& directory, const FileSystem& before) {
  const auto now = file_system_of(directory);
  if (!now || is_same(*now, before)) return "";
  return fmt::format("{}: {}: lies in {} now, and lay in {} when the run began", host_name(), directory,
                     now->text(), before.text());
}

void expect_file_system(const std::string& directory, const FileSystem& before) {
  if (const std::string change = what_changed(directory, before); !change.empty())
    throw Error(ErrorKind::resource, change);
}

}  // namespace assay::storage
