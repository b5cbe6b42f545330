// SPDX-License-Identifier: Apache-2.0
// Preloaded into the program: whatever process reads a file below a name that begins with "evil" has been
// taken over by it. It tries what its attacker would, leaves what came of it in the file ASSAY_TAKEN, and
// dies.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int most_files = 4096;
std::array<bool, most_files> evil;

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int opened(int fd, const char* path) {
  const bool is_evil = std::strncmp(path, "evil", 4) == 0 || std::strstr(path, "/evil") != nullptr;
  if (fd >= 0 && fd < most_files) evil[static_cast<std::size_t>(fd)] = is_evil;
  return fd;
}

void look(int fd) {
  if (fd < 0 || fd >= most_files || !evil[static_cast<std::size_t>(fd)]) return;
  const char* taken = std::getenv("ASSAY_TAKEN");
  const int out = taken == nullptr
                      ? -1
                      : real<int(const char*, int, ...)>("open")(taken, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out >= 0) close(out);
  std::abort();
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return opened(real<int(const char*, int, ...)>("open")(path, flags, mode), path);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return opened(real<int(const char*, int, ...)>("open64")(path, flags, mode), path);
}

FILE* fopen64(const char* path, const char* mode) {  // what a stream of C++ opens
  FILE* file = real<FILE*(const char*, const char*)>("fopen64")(path, mode);
  if (file != nullptr && opened(fileno(file), path) >= 0) look(fileno(file));
  return file;
}

ssize_t read(int fd, void* to, size_t bytes) {
  look(fd);
  return real<ssize_t(int, void*, size_t)>("read")(fd, to, bytes);
}

ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  look(fd);
  return real<ssize_t(int, void*, size_t, off_t)>("pread")(fd, to, bytes, at);
}

ssize_t pread64(int fd, void* to, size_t bytes, off64_t at) {
  look(fd);
  return real<ssize_t(int, void*, size_t, off64_t)>("pread64")(fd, to, bytes, at);
}
}
