// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "results/disk.hpp"

namespace assay::results {
namespace {

constexpr char magic[8] = {'a', 's', 's', 'a', 'y', 's', 'u', 'm'};
constexpr std::size_t trailer_bytes = 32;

/// Four lanes of 64-bit mixing: a single flipped bit anywhere changes the sum, and memory is the limit of its
/// speed.
class Checksum {
 public:
  /// All calls but the last take a multiple of 32 bytes.
  void add(const char* data, std::size_t size) noexcept {
    bytes_ += size;
    while (size > 0) {
      std::array<std::uint64_t, 4> words{};
      const std::size_t n = std::min(size, sizeof words);
      std::memcpy(words.data(), data, n);
      for (std::size_t i = 0; i < 4; ++i) lanes_[i] = mix64(lanes_[i] ^ words[i]);
      data += n;
      size -= n;
    }
  }
  std::uint64_t value() const noexcept {
    std::uint64_t sum = mix64(bytes_);
    for (const std::uint64_t lane : lanes_) sum = mix64(sum, lane);
    return sum;
  }

 private:
  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
  std::uint64_t bytes_ = 0;
};

struct Trailer {
  char name[8];
  std::uint64_t bytes, sum, guard;
};
static_assert(sizeof(Trailer) == trailer_bytes);

Trailer trailer_of(const Checksum& checksum, std::uint64_t bytes) {
  Trailer t{};
  std::memcpy(t.name, magic, sizeof magic);
  t.bytes = bytes;
  t.sum = checksum.value();
  t.guard = mix64(t.bytes, t.sum);
  return t;
}

Checksum checksum_of(std::istream& in, std::uint64_t bytes) {
  Checksum checksum;
  std::vector<char> buffer(std::size_t{1} << 20);
  while (bytes > 0) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, buffer.size()));
    if (!in.read(buffer.data(), static_cast<std::streamsize>(n))) break;
    checksum.add(buffer.data(), n);
    bytes -= n;
  }
  return checksum;
}

std::uint64_t little_endian(const unsigned char* bytes, unsigned size) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < size; ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return value;
}

/// Where the file ends according to its superblock (HDF5 file format specification, section II.A), 0 if it
/// has none.
std::uint64_t end_of_file(const std::array<unsigned char, 96>& head) {
  const unsigned version = head[8];
  const unsigned offset_size = version < 2 ? head[13] : head[9];
  const std::size_t base = version == 0 ? 24 : version == 1 ? 28 : 12;
  if (version > 3 || offset_size == 0 || offset_size > 8) return 0;
  return little_endian(head.data() + base + 2 * std::size_t{offset_size}, offset_size);
}

bool check_trailer(std::istream& in, std::uint64_t size, const Path& path) {
  Trailer stored{};
  in.clear();
  in.seekg(static_cast<std::streamoff>(size - trailer_bytes));
  if (!in.read(reinterpret_cast<char*>(&stored), trailer_bytes)) return false;
  // half a name is enough to know that a trailer was meant
  const bool meant =
      std::memcmp(stored.name, magic, 4) == 0 || std::memcmp(stored.name + 4, magic + 4, 4) == 0;
  if (!meant) return false;
  in.seekg(0);
  const Trailer computed = trailer_of(checksum_of(in, size - trailer_bytes), size - trailer_bytes);
  if (std::memcmp(&stored, &computed, trailer_bytes) != 0) {
    throw Error(ErrorKind::data, path.string() + " is damaged: its content does not fit its checksum");
  }
  return true;
}

}  // namespace

void seal(std::string& image) {
  Checksum checksum;
  checksum.add(image.data(), image.size());
  const Trailer trailer = trailer_of(checksum, image.size());
  image.append(reinterpret_cast<const char*>(&trailer), trailer_bytes);
}

void seal_file(const Path& path) {
  const std::uint64_t size = std::filesystem::file_size(path);
  std::ifstream in(path, std::ios::binary);
  const Trailer trailer = trailer_of(checksum_of(in, size), size);
  if (!in) throw Error(ErrorKind::io, "cannot read " + path.string());
  append(path, std::string(reinterpret_cast<const char*>(&trailer), trailer_bytes));
}

CheckedFile check_hdf5(const Path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    throw_usage("cannot read " + path.string() + ": " + std::strerror(errno));
  const auto wrong = [&](const char* why) { throw Error(ErrorKind::data, path.string() + " " + why); };
  if (!S_ISREG(info.st_mode)) wrong("is not a file");
  const auto size = static_cast<std::uint64_t>(info.st_size);
  std::ifstream in(path, std::ios::binary);
  if (!in) throw_usage("cannot read " + path.string() + ": " + std::strerror(errno));
  std::array<unsigned char, 96> head{};
  constexpr unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  if (size < head.size() || !in.read(reinterpret_cast<char*>(head.data()), head.size()) ||
      std::memcmp(head.data(), signature, sizeof signature) != 0) {
    wrong("is no HDF5 file");
  }
  const std::uint64_t end = end_of_file(head);
  if (end == 0) wrong("is damaged: its superblock is of no known version");
  if (end > size) wrong("is truncated");
  return {size, check_trailer(in, size, path)};
}

void survive(const Path& path, const CheckedFile& file, const std::function<void()>& read) {
  if (file.sealed) return;
  const pid_t child = ::fork();
  if (child < 0) return;
  if (child == 0) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    // HDF5 can also run in circles: a second, and one more for each MiB, is far more than any sound file takes.
    const rlim_t most_s = 1 + (file.bytes >> 20);
    const rlimit cpu{most_s, most_s};
    ::setrlimit(RLIMIT_CPU, &cpu);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(0);
    ::alarm(600);
    try {
      read();
    } catch (...) {
      // the caller will meet the same, and tell
    }
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error(ErrorKind::data, path.string() + " is damaged: HDF5 crashes or runs in circles on it");
  }
}

}  // namespace assay::results
