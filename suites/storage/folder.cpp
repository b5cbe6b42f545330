// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/system.hpp"
#include "suite/folder_owner.hpp"
#include "suites/storage/refused.hpp"

namespace assay::storage {
namespace {

constexpr const char* suite = "storage";
constexpr const char* file_prefix = "data-";
/// What an NFS client calls a file that is removed while it is open. A crash of the client leaves it.
constexpr const char* nfs_prefix = ".nfs";
constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw Refused(path + ": cannot " + what, errno);
}

/// Names in a directory, whose descriptor stays open.
std::vector<std::string> entries(int directory) {
  std::vector<std::string> names;
  const int copy = ::openat(directory, ".", directory_flags);
  DIR* list = copy < 0 ? nullptr : ::fdopendir(copy);
  if (list == nullptr) {
    if (copy >= 0) ::close(copy);
    return names;
  }
  while (const dirent* entry = ::readdir(list))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      names.emplace_back(entry->d_name);
  ::closedir(list);
  return names;
}

enum class Owner { alive, dead };

/// Removes the files of assay in a directory, and then it, if it is empty. The first errno; 0 where it is
/// gone. Open files of a living owner on NFS go when they are closed.
int remove_folder(int parent, const std::string& name, int own, Owner owner) {
  int reason = 0;
  for (const std::string& file : entries(own)) {
    if (!file.starts_with(file_prefix) && (owner == Owner::alive || !file.starts_with(nfs_prefix))) continue;
    // Ranks of one node may remove the same directory.
    if (::unlinkat(own, file.c_str(), 0) != 0 && errno != ENOENT && reason == 0) reason = errno;
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  return reason != 0 ? reason : errno;
}

/// Of destructors, which must not throw, and of the start.
std::vector<std::string>& stayed() {
  static std::vector<std::string> all;
  return all;
}

void tell_stayed(const std::string& path, int reason) {
  stayed().push_back(fmt::format("{}: cannot remove: {}", path, std::strerror(reason)));
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}
Descriptor::~Descriptor() { close(); }
int Descriptor::close() noexcept {
  const int fd = release();
  return fd >= 0 && ::close(fd) != 0 ? errno : 0;
}
int Descriptor::release() noexcept { return std::exchange(fd_, -1); }

std::uint64_t allowance(const Space& space, std::uint64_t asked) noexcept {
  if (space.total == 0 && asked != 0) return asked;  // it does not tell
  const std::uint64_t reserve = reserve_bytes(space.total);
  if (space.available <= reserve) return 0;
  return std::min(asked != 0 ? asked : space.available / 10, space.available - reserve);
}

std::uint64_t file_allowance(const Space& inodes) noexcept {
  if (inodes.total == 0) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t reserve = reserve_inodes(inodes.total);
  return inodes.available <= reserve ? 0 : inodes.available - reserve;
}

Folder::Folder(const std::string& parent, const std::string& run, const std::optional<FileSystem>& expected)
    : parent_path_(parent) {
  parent_ = Descriptor(::open(parent.c_str(), directory_flags));
  if (!parent_) fail(parent, "open");
  if (expected) expect_file_system(parent, *expected);
  // A directory of an earlier case stays where its removal failed: that must not stop this one.
  constexpr int most_names = 100;
  for (FolderOwner owner = FolderOwner::self(suite, run);; ++owner.number) {
    name_ = owner.name();
    path_ = parent + "/" + name_;
    if (::mkdirat(parent_.get(), name_.c_str(), 0700) == 0) break;
    if (errno != EEXIST || owner.number == most_names) fail(path_, "make");
  }
  own_ = Descriptor(::openat(parent_.get(), name_.c_str(), directory_flags | O_NOFOLLOW));
  if (!own_) fail(path_, "enter");
  struct stat outside {
  }, inside{};
  if (::fstat(parent_.get(), &outside) != 0 || ::fstat(own_.get(), &inside) != 0) fail(path_, "look at");
  if (outside.st_dev != inside.st_dev || inside.st_uid != ::geteuid())
    throw Error(ErrorKind::resource,
                fmt::format("{}: {}: is not the directory that was made", host_name(), path_));
  ::flock(own_.get(), LOCK_EX | LOCK_NB);  // one more sign of life; not every file system has it
}

Folder::~Folder() {
  try {
    const int reason = remove_folder(parent_.get(), name_, own_.get(), Owner::alive);
    if (reason != 0) tell_stayed(path_, reason);
  } catch (...) {  // no memory for names: the next start removes them
    vanish();
  }
}

std::vector<std::string> Folder::what_stayed() { return std::exchange(stayed(), {}); }

void Folder::vanish() noexcept { ::unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR); }

struct statvfs Folder::file_system_info() const {
  struct statvfs info {};
  if (::fstatvfs(own_.get(), &info) != 0) fail(path_, "ask for space");
  return info;
}

Space Folder::space() const { return space_of(file_system_info()); }

Space Folder::inodes() const {
  const struct statvfs info = file_system_info();
  return {info.f_files, info.f_favail};
}

Descriptor Folder::create(const std::string& name, bool direct, bool unlinked) {
  const std::string file = file_prefix + name;
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Descriptor fd(::openat(own_.get(), file.c_str(), flags | (direct ? O_DIRECT : 0), 0600));
  if (const int refused = errno; !fd && direct && (refused == EINVAL || refused == EOPNOTSUPP)) {
    ::unlinkat(own_.get(), file.c_str(), 0);  // the file may be there although O_DIRECT was refused
    errno = refused;
    return Descriptor();
  }
  if (!fd) fail(path_ + "/" + file, "create");
  if (unlinked) ::unlinkat(own_.get(), file.c_str(), 0);
  return fd;
}

void Folder::remove(const std::string& name) noexcept {
  ::unlinkat(own_.get(), (file_prefix + name).c_str(), 0);
}

void Folder::rename(const std::string& from, const std::string& to) {
  if (::renameat(own_.get(), (file_prefix + from).c_str(), own_.get(), (file_prefix + to).c_str()) != 0)
    fail(path_ + "/" + file_prefix + from, "rename");
  // Not every file system can sync a directory.
  if (::fsync(own_.get()) != 0 && errno != EINVAL && errno != EOPNOTSUPP) fail(path_, "sync");
}

Descriptor open_made(const std::string& path, bool direct, bool write) {
  Descriptor fd(
      ::open(path.c_str(), (write ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC | (direct ? O_DIRECT : 0)));
  if (!fd) throw Refused(path + ": cannot open what another rank has made", errno);
  return fd;
}

std::uint64_t Folder::file_system() const {
  struct statfs info {};
  struct stat inside {};
  if (::fstatfs(own_.get(), &info) != 0 || ::fstat(own_.get(), &inside) != 0) fail(path_, "look at");
  return mix64(static_cast<std::uint64_t>(info.f_type), inside.st_dev);
}

int remove_leftovers(const std::string& parent, std::optional<pid_t> pid) {
  const Descriptor folder(::open(parent.c_str(), directory_flags));
  if (!folder) return 0;
  int removed = 0;
  for (const std::string& name : entries(folder.get())) {
    const FolderOwner owner = FolderOwner::parse(suite, name);
    if (owner.pid <= 0 || owner.pid != pid.value_or(owner.pid)) continue;
    const Descriptor own(::openat(folder.get(), name.c_str(), directory_flags | O_NOFOLLOW));
    struct stat info {};
    if (!own || ::fstat(own.get(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    if (!owner.surely_dead(static_cast<double>(info.st_mtim.tv_sec))) continue;
    if (::flock(own.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    const int reason = remove_folder(folder.get(), name, own.get(), Owner::dead);
    if (reason == 0)
      ++removed;
    else
      tell_stayed(parent + "/" + name, reason);
  }
  return removed;
}

}  // namespace assay::storage
