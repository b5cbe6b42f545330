// SPDX-License-Identifier: Apache-2.0
// Where the ranks of an emulated NCCL communicator meet: a shared memory object with the name of its unique
// id.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace emulation {

inline constexpr int most_ranks = 16;
inline constexpr std::size_t chunk = std::size_t{64} << 10;  ///< bytes that are handed over at a time

/// All zero at first. Every counter is written by one rank only, but `joined`.
struct Rendezvous {
  template <typename T>
  using PerRank = std::array<T, most_ranks>;

  std::atomic<int> joined;
  PerRank<std::array<char, 64>> gpu;
  /// Collectives hand over chunk after chunk, in rounds: a rank has put its own into its slot, and has taken
  /// what it needs of all.
  PerRank<std::atomic<std::uint64_t>> put, taken, wanted_bytes;
  /// Parts of the communicator, in the same way.
  PerRank<std::atomic<std::uint64_t>> split;
  PerRank<int> color, key;
  /// Chunks from a rank to another one.
  PerRank<PerRank<std::atomic<std::uint64_t>>> sent, received;

  PerRank<std::array<std::byte, chunk>> slots;
  PerRank<PerRank<std::array<std::byte, chunk>>> pipes;
};

/// A rendezvous that this process has opened.
class Segment {
 public:
  explicit Segment(const std::string& name);  ///< throws std::runtime_error
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  Rendezvous& operator*() const noexcept { return *meeting_; }
  Rendezvous* operator->() const noexcept { return meeting_; }
  /// Nobody else has to find it any more.
  void unlink() noexcept;

 private:
  std::string name_;
  Rendezvous* meeting_ = nullptr;
};

/// What the environment variable ASSAY_EMULATED_NCCL breaks on purpose:
/// "corrupt:rank=1:nth=3:bytes=4096:element=7" flips a bit of one element (of 4 bytes) of what the third
/// operation of at least 4096 bytes brings to rank 1 of its communicator; "hang:rank=1:..." never ends that
/// operation; "slow:rank=1:ms=20:..." makes all from it on late. Read anew at every operation; a changed text
/// counts from the beginning.
struct NcclFault {
  enum Kind { none, corrupt, hang, slow } kind = none;
  double ms = 0;
  std::size_t element = 0;
};
NcclFault nccl_fault(int rank, std::size_t bytes);

}  // namespace emulation
