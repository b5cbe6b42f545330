// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace assay {

/// Who made a directory, as its name says: assay-<what>-<host>-<boot>-<pid namespace>-<pid>-<start>-<run>,
/// and -<number> where earlier names of the process are taken.
struct FolderOwner {
  std::string what;  ///< the suite
  std::string host, boot, pid_namespace;
  std::int64_t pid = 0;
  std::uint64_t start = 0;  ///< of the process, in clock ticks since boot
  std::string run;          ///< 16 hexadecimal digits
  int number = 0;

  std::string name() const;
  /// This process.
  static FolderOwner self(const std::string& what, const std::string& run);
  /// Of such a name; `pid` is 0 where it is none.
  static FolderOwner parse(const std::string& what, const std::string& name);
  /// True where it is certain that the process is no more: one of this host and this pid namespace that is
  /// not running, or of an earlier boot, before which its directory was last `modified` (seconds since 1970).
  bool surely_dead(double modified) const;
};

}  // namespace assay
