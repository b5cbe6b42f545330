// SPDX-License-Identifier: Apache-2.0
// The directory that a process makes for its files: the only place where anything is written, and nothing of
// it stays.
#pragma once

#include <sys/statvfs.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "suite/space.hpp"
#include "suites/storage/file_system.hpp"

namespace assay::storage {

/// An open file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept;
  /// Closes now; 0 or the errno that says why not. Some file systems tell that they are full only then.
  int close() noexcept;

 private:
  int fd_;
};

/// How many bytes may be written: a tenth of what is available or `asked`, and never into the reserve. 0:
/// none. A file system that tells no size may be filled with what was `asked`.
std::uint64_t allowance(const Space& space, std::uint64_t asked) noexcept;

/// How many inodes stay free: a tenth of them.
constexpr std::uint64_t reserve_inodes(std::uint64_t total) noexcept { return total / 10; }
/// How many files may be made, never into that reserve. Without limit where a file system tells no number of
/// inodes (btrfs).
std::uint64_t file_allowance(const Space& inodes) noexcept;

/// A directory of this process below `parent`, gone with this object. It is made and entered without
/// following links; files are made in it and never opened where they exist.
class Folder {
 public:
  /// Throws Error(resource) naming path and reason, also where `parent` lies in another file system than
  /// `expected`: nothing is written beneath a mount that is gone.
  Folder(const std::string& parent, const std::string& run, const std::optional<FileSystem>& expected = {});
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const noexcept { return path_; }  ///< for people
  Space space() const;
  Space inodes() const;  ///< the same of files that can be made; all 0: not told
  /// A new file of this name, for reading and writing; with `unlinked` it vanishes with its last descriptor,
  /// however this process ends. With `direct` it is opened with O_DIRECT, and empty, with errno, where the
  /// file system has none.
  Descriptor create(const std::string& name, bool direct, bool unlinked);
  /// Removes a file that was made here.
  void remove(const std::string& name) noexcept;
  /// Gives a file that was made here another name, replacing what has it, and waits until that is safe.
  void rename(const std::string& from, const std::string& to);
  /// Removes the directory although it is in use, where its files are unlinked: nothing is left then, however
  /// this process ends. Where the file system cannot do that (NFS), the destructor does it.
  void vanish() noexcept;
  /// Bytes of the file system's identity, for telling whether two nodes see the same: device and type.
  std::uint64_t file_system() const;
  /// What destructors and `remove_leftovers` could not remove since the last call, each with the reason.
  static std::vector<std::string> what_stayed();

 private:
  struct statvfs file_system_info() const;

  std::string parent_path_, name_, path_;
  Descriptor parent_, own_;
};

/// A file that another rank has made in its Folder. Follows no link; throws Refused.
Descriptor open_made(const std::string& path, bool direct, bool write);

/// Removes the directories below `parent` whose owners are surely dead, with the files of assay in them;
/// touches nothing else. With `pid` only those of such a process. Returns how many; never throws for what it
/// may not remove.
int remove_leftovers(const std::string& parent, std::optional<pid_t> pid = {});

}  // namespace assay::storage
