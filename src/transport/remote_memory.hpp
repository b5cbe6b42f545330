// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace assay {

/// One-sided access to what other ranks have exposed. Offsets count from the beginning of that; ranks are
/// those of the world.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  /// Starts to write there, or to read from there. The local buffer stays as it is until `complete`.
  virtual void put(const void* data, std::size_t bytes, int peer, std::size_t offset) = 0;
  virtual void get(void* data, std::size_t bytes, int peer, std::size_t offset) = 0;
  /// Returns when all that was started has happened, at its target too: a put alone is complete as soon as
  /// its buffer is free.
  virtual void complete(int peer) = 0;
};

}  // namespace assay
