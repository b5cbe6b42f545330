// SPDX-License-Identifier: Apache-2.0
#include "results/disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace assay::results {
namespace {

class Descriptor {
 public:
  Descriptor(const Path& path, int flags) : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail_io((flags & O_CREAT) != 0 ? "create" : "open", path);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const noexcept { return fd_; }

  void write_all(const std::string& bytes) const {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_io("write", path_);
      done += static_cast<std::size_t>(n);
    }
  }
  void sync() const {
    if (::fsync(fd_) != 0) fail_io("write", path_);
  }
  /// On some network file systems this is where a full disk shows.
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) fail_io("write", path_);
  }

 private:
  Path path_;
  int fd_;
};

}  // namespace

void fail_io(const std::string& what, const Path& path) {
  const int number = errno;
  const std::string why = std::strerror(number);
  std::error_code code;
  const Path target = std::filesystem::read_symlink(path.parent_path(), code);  // another file system, maybe
  throw DiskError(
      ErrorKind::io,
      "cannot " + what + " " + path.string() + (code ? "" : " (in " + target.string() + ")") + ": " + why,
      number);
}

std::string read_file(const Path& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code))
    throw Error(ErrorKind::data, path.string() + " is not a file");
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw Error(ErrorKind::data, path.string() + " cannot be read");
  return text.str();
}

void make_durable(const Path& path, const std::function<void(const Path&)>& write) {
  const Path temporary = path.string() + ".tmp";
  try {
    write(temporary);
    sync_file(temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail_io("rename to", path);
  } catch (const Error&) {
    ::unlink(temporary.c_str());  // its blocks may be what the rest needs
    throw;
  }
  sync_directory(path.parent_path());
}

void write_durable(const Path& path, const std::string& bytes) {
  make_durable(path, [&](const Path& temporary) {
    Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    file.write_all(bytes);
    file.close();
  });
}

void make_directory(const Path& path) {
  if (::mkdir(path.c_str(), 0777) != 0) fail_io("create", path);
}

void append(const Path& path, const std::string& bytes) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_APPEND);
  const off_t before = ::lseek(file, 0, SEEK_END);
  try {
    file.write_all(bytes);
  } catch (const Error&) {
    // Part of a line would spoil the next one, too; where it stays, the error is the same.
    if (before >= 0 && ::ftruncate(file, before) != 0) errno = 0;
    throw;
  }
  file.close();
}

void cut_torn_line(const Path& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return;
  std::string text = read_file(path);
  if (text.empty() || text.back() == '\n') return;
  const std::size_t end = text.rfind('\n');
  text.resize(end == std::string::npos ? 0 : end + 1);
  write_durable(path, text);
}

void sync_file(const Path& path) { Descriptor(path, O_RDONLY).sync(); }

void sync_directory(const Path& directory) {
  const Path path = directory.empty() ? Path(".") : directory;
  const Descriptor file(path, O_RDONLY | O_DIRECTORY);
  // some file systems have no fsync for directories, and say so
  if (::fsync(file) != 0 && errno != EINVAL && errno != ENOTSUP) fail_io("write", path);
}

void reserve(const Path& path, std::uint64_t bytes) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  const int result = ::fallocate(file, 0, 0, static_cast<off_t>(bytes));
  const int why = errno;
  ::unlink(path.c_str());
  if (result == 0) return;
  errno = why;
  if (why != EOPNOTSUPP && why != ENOSYS && why != EINTR) fail_io("write", path);
  struct statvfs info {};
  if (::statvfs(path.parent_path().c_str(), &info) != 0) return;
  errno = ENOSPC;
  if (std::uint64_t{info.f_bavail} * info.f_frsize < bytes) fail_io("write", path);
}

std::vector<Path> entries_of(const Path& directory) {
  std::vector<Path> entries;
  std::error_code code;
  for (std::filesystem::directory_iterator at(directory, code), end; !code && at != end; at.increment(code))
    entries.push_back(at->path());
  errno = code.value();
  if (code && code != std::errc::no_such_file_or_directory) fail_io("read", directory);
  return entries;
}

bool is_there(const Path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

constexpr const char* exists_already = " exists: choose another name, or overwrite it with --force";

void check_replaceable(const Path& file, bool force) {
  std::error_code none;
  const auto target = std::filesystem::status(file, none);
  if (std::filesystem::is_directory(target)) throw_usage(file.string() + " is a directory");
  if (std::filesystem::is_other(target))
    throw_usage(file.string() + " is a special file, of which no results file can be made");
  if (!force && is_there(file)) throw_usage(file.string() + exists_already);
}

void publish(const Path& from, const Path& to, bool force) {
  const auto exists = [&]() { throw_usage(to.string() + exists_already); };
  if (force) {
    if (::rename(from.c_str(), to.c_str()) != 0) fail_io("create", to);
  } else if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
  } else if (errno == EEXIST) {
    // NFS sends a request again whose answer was lost: then the link is there, and is ours.
    std::error_code none;
    if (!std::filesystem::equivalent(from, to, none)) exists();
    ::unlink(from.c_str());
  } else if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK) {
    struct stat info {};  // no hard links here: a window remains between the look and the rename
    if (::lstat(to.c_str(), &info) == 0) exists();
    if (::rename(from.c_str(), to.c_str()) != 0) fail_io("create", to);
  } else {
    fail_io("create", to);
  }
  sync_directory(to.parent_path());
}

bool remove_with_last(const Path& directory, const std::string& last) noexcept try {
  std::error_code code;
  bool gone = true;
  std::filesystem::directory_iterator entries(directory, code);
  for (; !code && entries != std::filesystem::directory_iterator(); entries.increment(code)) {
    if (entries->path().filename() == last) continue;
    std::error_code why;
    std::filesystem::remove_all(entries->path(), why);
    gone = gone && !why;
  }
  if (!gone || code) return false;
  std::filesystem::remove_all(directory, code);
  return !std::filesystem::exists(directory, code);
} catch (...) {
  return false;
}

bool remove_partial(const Path& partial) noexcept try {
  std::error_code code;
  if (std::filesystem::is_symlink(partial, code) || !std::filesystem::is_directory(partial, code))
    return false;
  const auto exists = [&](const Path& path) { return std::filesystem::exists(path, code); };
  const bool ours = exists(partial / "owner") || std::filesystem::is_empty(partial, code) ||
                    (exists(partial / "plan.json") && exists(cases_directory(partial)));
  if (!ours) return false;
  if (!remove_spooled(partial)) return false;
  return remove_with_last(partial, "owner");
} catch (...) {
  return false;
}

}  // namespace assay::results
