// SPDX-License-Identifier: Apache-2.0
// Which file system a directory lies in, for noticing that a mount has come or gone.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace assay::storage {

struct FileSystem {
  dev_t device = 0;
  std::string type, source;  ///< of its mount

  /// "nfs4 of filer:/export (device 0:45)"
  std::string text() const;
};

/// Nothing, with errno, where the directory cannot be opened.
std::optional<FileSystem> file_system_of(const std::string& directory);

/// A network file system that was mounted again, as automounters do, has another device number.
bool is_same(const FileSystem& a, const FileSystem& b);

/// What to say where the directory lies in another file system than before; "" where it does not, or cannot
/// be opened.
std::string what_changed(const std::string& directory, const FileSystem& before);
/// Throws Error(resource) there.
void expect_file_system(const std::string& directory, const FileSystem& before);

}  // namespace assay::storage
