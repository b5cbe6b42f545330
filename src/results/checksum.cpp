// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
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

Checksum checksum_of(const InputFile& file, std::uint64_t bytes) {
  Checksum checksum;
  std::vector<char> buffer(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < bytes;) {
    const std::size_t n = file.read(
        at, buffer.data(), static_cast<std::size_t>(std::min<std::uint64_t>(bytes - at, buffer.size())));
    if (n == 0) break;
    checksum.add(buffer.data(), n);
    at += n;
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

bool check_trailer(const InputFile& file) {
  const std::uint64_t content = file.bytes() - trailer_bytes;
  Trailer stored{};
  if (file.read(content, &stored, trailer_bytes) != trailer_bytes) return false;
  // half a name is enough to know that a trailer was meant
  const bool meant =
      std::memcmp(stored.name, magic, 4) == 0 || std::memcmp(stored.name + 4, magic + 4, 4) == 0;
  if (!meant) return false;
  const Trailer computed = trailer_of(checksum_of(file, content), content);
  if (std::memcmp(&stored, &computed, trailer_bytes) != 0) {
    throw Error(ErrorKind::data, file.path().string() + " is damaged: its content does not fit its checksum");
  }
  return true;
}

/// Whether a trailer begins behind the end of the HDF5 content, and stops before its own.
bool has_part_of_trailer(const InputFile& file, std::uint64_t end) {
  if (end >= file.bytes() || file.bytes() - end >= trailer_bytes) return false;
  char found[sizeof magic];
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(sizeof found, file.bytes() - end));
  return file.read(end, found, n) == n && std::memcmp(found, magic, n) == 0;
}

}  // namespace

void seal(std::string& image) {
  Checksum checksum;
  checksum.add(image.data(), image.size());
  const Trailer trailer = trailer_of(checksum, image.size());
  image.append(reinterpret_cast<const char*>(&trailer), trailer_bytes);
}

void seal_file(const Path& path) {
  try {
    const InputFile file(path);
    const Trailer trailer = trailer_of(checksum_of(file, file.bytes()), file.bytes());
    append(path, std::string(reinterpret_cast<const char*>(&trailer), trailer_bytes));
  } catch (const Error& error) {
    throw Error(ErrorKind::io, error.what());
  }
}

CheckedFile check_hdf5(const InputFile& file) {
  const std::uint64_t size = file.bytes();
  const auto wrong = [&](const char* why) { throw Error(ErrorKind::data, file.path().string() + " " + why); };
  std::array<unsigned char, 96> head{};
  constexpr unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  if (file.read(0, head.data(), head.size()) < head.size() ||
      std::memcmp(head.data(), signature, sizeof signature) != 0)
    wrong("is no HDF5 file");
  const std::uint64_t end = end_of_file(head);
  if (end == 0) wrong("is damaged: its superblock is of no known version");
  if (end > size || has_part_of_trailer(file, end)) wrong("is truncated");
  return {size, check_trailer(file)};
}

}  // namespace assay::results
