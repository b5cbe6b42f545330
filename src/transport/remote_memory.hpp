// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace assay {

/// A walk through the memory of another rank, along links that it made (kernels/chase.hpp).
struct RemoteWalk {
  double seconds = 0;    ///< by the clock of the device that walked
  std::size_t node = 0;  ///< where the walk ended: the node after the last, or the first that is wrong
  bool intact = true;
  std::uint64_t words[2] = {};  ///< what that wrong one holds when it is read again
};

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

  /// Links the nodes of `bytes` at `offset` of this rank's own memory into one cycle, for others to follow.
  /// Complete on return.
  virtual void make_chain(std::size_t /*offset*/, std::size_t /*bytes*/, std::uint64_t /*key*/) {
    throw Error(ErrorKind::internal, "no links can be made in this memory");
  }
  /// One thread follows the links once around, from the first node.
  virtual RemoteWalk walk_chain(int /*peer*/, std::size_t /*offset*/, std::size_t /*bytes*/,
                                std::uint64_t /*key*/) {
    throw Error(ErrorKind::internal, "no links can be followed in this memory");
  }
};

}  // namespace assay
