// SPDX-License-Identifier: Apache-2.0
#include "base/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace assay {

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    error_ = errno;
    return;
  }
  descriptor_ = std::shared_ptr<const int>(new int(fd), [](const int* open) {
    ::close(*open);
    delete open;
  });
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    error_ = errno;
    return;
  }
  regular_ = S_ISREG(info.st_mode);
  bytes_ = regular_ ? static_cast<std::uint64_t>(info.st_size) : 0;
}

bool InputFile::exists() const noexcept { return error_ != ENOENT && error_ != ENOTDIR; }

void InputFile::require() const {
  if (error_ != 0) throw_usage("cannot read " + path_.string() + ": " + std::strerror(error_));
  if (!regular_) throw Error(ErrorKind::data, path_.string() + " is not a file");
}

int InputFile::descriptor() const {
  require();
  return *descriptor_;
}

std::uint64_t InputFile::bytes() const {
  require();
  return bytes_;
}

std::size_t InputFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  require();
  char* at = static_cast<char*>(to);
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(*descriptor_, at + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error(ErrorKind::data, path_.string() + " cannot be read: " + std::strerror(errno));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

std::string InputFile::text() const {
  std::string out(bytes(), '\0');
  out.resize(read(0, out.data(), out.size()));
  return out;
}

}  // namespace assay
