// SPDX-License-Identifier: Apache-2.0
#include "measure/cold.hpp"

#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "base/system.hpp"

namespace assay {
namespace {

/// By cachestat(2), since Linux 6.5.
std::optional<double> by_cachestat(int fd, std::uint64_t offset, std::uint64_t bytes, double pages) {
#ifdef SYS_cachestat
  constexpr long call = SYS_cachestat;
#else
  constexpr long call = 451;  // on every architecture
#endif
  const std::uint64_t range[2] = {offset, bytes};
  std::uint64_t told[5] = {};  // cache, dirty, writeback, evicted, recently evicted
  if (::syscall(call, fd, range, told, 0) != 0) return std::nullopt;
  return static_cast<double>(told[0]) / pages;
}

std::optional<double> by_mincore(int fd, std::uint64_t offset, std::uint64_t bytes, double pages) {
  // A mapping begins with a page: that of the offset.
  const std::uint64_t before = offset % static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  offset -= before, bytes += before;
  void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return std::nullopt;
  std::vector<unsigned char> in(static_cast<std::size_t>(pages) + 1);
  const bool told = ::mincore(at, bytes, in.data()) == 0;
  ::munmap(at, bytes);
  if (!told) return std::nullopt;
  return static_cast<double>(
             std::count_if(in.begin(), in.end(), [](unsigned char page) { return (page & 1) != 0; })) /
         pages;
}

}  // namespace

std::optional<Moved> moved_now() {
  const auto text = read_text("/proc/self/io");
  if (!text) return std::nullopt;
  Moved moved;
  int found = 0;
  std::istringstream lines(*text);
  std::string key;
  for (std::uint64_t value = 0; lines >> key >> value;) {
    if (key == "read_bytes:") moved.read = value, ++found;
    if (key == "write_bytes:") moved.written = value, ++found;
  }
  if (found != 2) return std::nullopt;
  return moved;
}

bool counts_storage_alone(long type) noexcept {
  constexpr long zfs = 0x2fc12fc1, fuse = 0x65735546;
  return type != zfs && type != fuse;
}

bool counts_storage_alone(const std::string& path) noexcept {
  struct statfs info {};
  return ::statfs(path.c_str(), &info) == 0 && counts_storage_alone(static_cast<long>(info.f_type));
}

StorageMeter::StorageMeter(bool write, const std::vector<std::string>& paths) : write_(write) {
  const auto told = [](const std::string& path) { return counts_storage_alone(path); };
  if (std::all_of(paths.begin(), paths.end(), told)) before_ = moved_now();
}

double StorageMeter::moved() const {
  const auto now = moved_now();
  if (!before_ || !now) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(write_ ? now->written - before_->written : now->read - before_->read);
}

std::optional<double> resident_share(int fd, std::uint64_t offset, std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto pages = static_cast<double>((bytes + page - 1) / page);
  if (pages == 0) return std::nullopt;
  const auto told = by_cachestat(fd, offset, bytes, pages);
  if (told.value_or(0) > 0) return told;
  // cachestat counts the pages of the inode of `fd`. The inode of an overlay file has none: its data is
  // cached for the file of the layer beneath. A mapping of an overlay file is one of that file.
  const auto mapped = by_mincore(fd, offset, bytes, pages);
  return mapped ? mapped : told;
}

}  // namespace assay
