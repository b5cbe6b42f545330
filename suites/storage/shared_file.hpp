// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace assay::storage {

/// A file that the ranks of a group have open together. Every rank sees the blocks of one rank of a Layout.
/// What fails throws Refused, after all ranks took part.
class SharedFile {
 public:
  virtual ~SharedFile() = default;
  /// Collective. Sees the blocks of that rank of the layout from now on.
  virtual void look_at(std::uint64_t rank) = 0;
  /// Collective. The first chunk of what it looks at; what is written is synced.
  virtual void transfer(bool write, std::span<std::byte> data) = 0;
  /// Not collective. Nothing is closed any more: where a rank has no such file, closing would wait for it.
  virtual void forget() noexcept = 0;
  /// Collective. Some file systems tell only then what they could not write.
  virtual void close() = 0;
  /// Where the layout's first byte is in the file.
  virtual std::uint64_t begins_at() const { return 0; }
};

}  // namespace assay::storage
