// SPDX-License-Identifier: Apache-2.0
#include "suites/train/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "kernels/digest.hpp"
#include "measure/cold.hpp"
#include "suite/work_on_files.hpp"

namespace assay::train {
namespace {

constexpr std::size_t piece = std::size_t{8} << 20;  ///< of one system call

[[noreturn]] void fail(const std::filesystem::path& file, const char* what) {
  throw Error(ErrorKind::resource,
              fmt::format("checkpoint: {}: cannot {}: {}", file.string(), what, std::strerror(errno)));
}

[[noreturn]] void damaged(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorKind::data, fmt::format("checkpoint: {}: {}", file.string(), what));
}

class File {
 public:
  File(const std::filesystem::path& path, int flags)
      : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail(path, (flags & O_CREAT) != 0 ? "create" : "open");
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(std::span<const std::byte> data) {
    while (!data.empty()) {
      const ssize_t n = ::write(fd_, data.data(), std::min(piece, data.size()));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(path_, "write");
      files_answered();
      data = data.subspan(static_cast<std::size_t>(n));
    }
  }
  /// What there is, up to the size of `data`.
  std::size_t read(std::span<std::byte> data) {
    std::size_t total = 0;
    while (total < data.size()) {
      const ssize_t n = ::read(fd_, data.data() + total, std::min(piece, data.size() - total));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(path_, "read");
      files_answered();
      if (n == 0) break;
      total += static_cast<std::size_t>(n);
    }
    return total;
  }
  void sync() {
    if (::fsync(fd_) != 0 && errno != EINVAL) fail(path_, "sync");
    files_answered();
  }
  /// Lets go of cached pages, so that reading meets the storage. A hint.
  void forget() noexcept { ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED); }
  double resident(std::uint64_t bytes) const { return resident_share(fd_, 0, bytes).value_or(1.0); }
  /// Some file systems tell that they are full only now.
  void close() {
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) fail(path_, "close");
  }

 private:
  std::filesystem::path path_;
  int fd_;
};

}  // namespace

std::filesystem::path shard_path(const std::filesystem::path& folder, int rank) {
  return folder / fmt::format("shard-{:06}", rank);
}

ShardHeader header_of(std::uint64_t step, int rank, int ranks, std::span<const std::byte> payload) {
  ShardHeader header;
  header.step = step;
  header.rank = static_cast<std::uint64_t>(rank);
  header.ranks = static_cast<std::uint64_t>(ranks);
  header.first = header.rank * payload.size();
  header.bytes = payload.size();
  header.digest = kernels::host::digest(payload.data(), payload.size(), 0);
  return header;
}

WriteTimes write_shard(const std::filesystem::path& path, const ShardHeader& header,
                       std::span<const std::byte> payload) {
  const double begin = now_s();
  File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  file.write(std::as_bytes(std::span(&header, 1)));
  file.write(payload);
  const double written = now_s();
  file.sync();
  const double synced = now_s();
  file.forget();  // for the rank that reads it back
  file.close();
  return {written - begin, synced - written};
}

ShardRead read_shard(const std::filesystem::path& path, std::uint64_t step, int rank,
                     std::span<std::byte> payload) {
  File file(path, O_RDONLY);
  file.forget();
  ShardRead read;
  read.resident = file.resident(sizeof(ShardHeader) + payload.size());
  const double begin = now_s();
  ShardHeader header;
  if (file.read(std::as_writable_bytes(std::span(&header, 1))) != sizeof header)
    damaged(path, "shorter than its header");
  if (std::memcmp(header.magic, ShardHeader{}.magic, sizeof header.magic) != 0 || header.version != 1)
    damaged(path, "is no shard of a checkpoint");
  if (header.step != step || header.rank != static_cast<std::uint64_t>(rank))
    damaged(path, fmt::format("holds step {} of rank {}, not step {} of rank {}", header.step, header.rank,
                              step, rank));
  if (header.bytes != payload.size())
    damaged(path, fmt::format("declares {} bytes, not {}", header.bytes, payload.size()));
  if (const std::size_t n = file.read(payload); n != payload.size())
    damaged(path, fmt::format("ends after {} of {} bytes", n, payload.size()));
  read.read_s = now_s() - begin;
  const std::uint64_t digest = kernels::host::digest(payload.data(), payload.size(), 0);
  if (digest != header.digest)
    damaged(path,
            fmt::format("digest {:#018x} instead of {:#018x}: the data read differ from the data written",
                        digest, header.digest));
  return read;
}

void mark_done(const std::filesystem::path& folder) {
  File marker(folder / "DONE", O_WRONLY | O_CREAT | O_TRUNC);
  marker.sync();
  marker.close();
  File directory(folder, O_RDONLY | O_DIRECTORY);
  directory.sync();
}

bool is_done(const std::filesystem::path& folder) noexcept {
  std::error_code ignored;
  return std::filesystem::exists(folder / "DONE", ignored);
}

}  // namespace assay::train
