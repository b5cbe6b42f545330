// SPDX-License-Identifier: Apache-2.0
#include "device_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>

namespace emulation {
namespace {

constexpr std::size_t alignment = std::size_t{2} << 20;  ///< as cudaMalloc does for large blocks

struct Mapping {
  std::size_t bytes = 0, reserved = 0;
  void* base = nullptr;
  std::string name;
  int device = 0;
  pid_t owner = 0;
};

constexpr const char* prefix = "assay-emulated-";
constexpr const char* prefixes[] = {
    prefix, "assay-nccl-"};  ///< of all shared memory objects of the emulation; the process id follows

/// Names of objects are freed at the end of the process; those of one that was killed by the next one that
/// starts.
struct Memory {
  std::map<void*, Mapping> mine, others;
  int next = 0;
  Memory() { remove_stale("/dev/shm"); }
  ~Memory() {
    for (const auto& [p, m] : mine)
      if (m.owner == getpid()) shm_unlink(m.name.c_str());
  }
};
Memory& memory() {
  static Memory m;
  return m;
}

std::size_t in_pages(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + 4095) / 4096 * 4096; }

/// Addresses for `bytes`, aligned, with a forbidden page behind them.
Mapping map(std::size_t bytes) {
  Mapping m;
  m.bytes = in_pages(bytes);
  m.reserved = m.bytes + alignment + 4096;
  m.base = mmap(nullptr, m.reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m.base == MAP_FAILED) return {};
  return m;
}

void* place(const Mapping& m, int fd) {
  const auto start = (reinterpret_cast<std::size_t>(m.base) + alignment - 1) / alignment * alignment;
  return mmap(reinterpret_cast<void*>(start), m.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
}

}  // namespace

int remove_stale(const char* directory) {
  int removed = 0;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(directory, code)) {
    const std::string name = entry.path().filename();
    const auto* ours = std::find_if(std::begin(prefixes), std::end(prefixes),
                                    [&](const char* p) { return name.starts_with(p); });
    if (ours == std::end(prefixes)) continue;
    char* end = nullptr;
    const long pid = std::strtol(name.c_str() + std::strlen(*ours), &end, 10);
    // Somebody else's process (EPERM) lives, too.
    if (pid <= 0 || *end != '-' || kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) continue;
    removed += std::filesystem::remove(entry.path(), code) ? 1 : 0;
  }
  return removed;
}

void* allocate(std::size_t bytes, int device) {
  Memory& all = memory();
  char name[64];
  std::snprintf(name, sizeof(name), "/%s%d-%d", prefix, static_cast<int>(getpid()), all.next++);
  const int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  void* p = MAP_FAILED;
  Mapping m = map(bytes);
  if (m.base != nullptr && ftruncate(fd, static_cast<off_t>(m.bytes)) == 0) p = place(m, fd);
  close(fd);
  if (p == MAP_FAILED) {
    shm_unlink(name);
    return nullptr;
  }
  std::memset(p, 0xa5, std::min<std::size_t>(m.bytes, std::size_t{1} << 20));
  m.name = name;
  m.device = device;
  m.owner = getpid();
  all.mine[p] = m;
  return p;
}

bool release(void* p) {
  const auto it = memory().mine.find(p);
  if (it == memory().mine.end()) return false;
  shm_unlink(it->second.name.c_str());
  munmap(it->second.base, it->second.reserved);
  memory().mine.erase(it);
  return true;
}

std::size_t allocated_bytes(int device) {
  std::size_t sum = 0;
  for (const auto& [p, m] : memory().mine)
    if (m.device == device) sum += m.bytes;
  return sum;
}

int device_of(const void* p) noexcept {
  const auto& mine = memory().mine;
  auto after = mine.upper_bound(const_cast<void*>(p));
  if (after == mine.begin()) return -1;
  const auto& [start, m] = *--after;
  return static_cast<const char*>(p) < static_cast<const char*>(start) + m.bytes ? m.device : -1;
}

bool name_of(const void* p, char* name, std::size_t length) {
  const auto it = memory().mine.find(const_cast<void*>(p));
  if (it == memory().mine.end()) return false;
  std::snprintf(name, length, "%s", it->second.name.c_str());
  return true;
}

void* open_other(const char* name) {
  const int fd = shm_open(name, O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  struct stat info {};
  void* p = MAP_FAILED;
  Mapping m;
  if (fstat(fd, &info) == 0) {
    m = map(static_cast<std::size_t>(info.st_size));
    if (m.base != nullptr) p = place(m, fd);
  }
  close(fd);
  if (p == MAP_FAILED) return nullptr;
  memory().others[p] = m;
  return p;
}

bool close_other(void* p) {
  const auto it = memory().others.find(p);
  if (it == memory().others.end()) return false;
  munmap(it->second.base, it->second.reserved);
  memory().others.erase(it);
  return true;
}

}  // namespace emulation
