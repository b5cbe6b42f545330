// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "transport/faulty_communicator.hpp"
#include "transport/remote_memory.hpp"

namespace assay {

/// Forwards to the memory of other ranks, and makes the faults of messages: what is written is changed before
/// it leaves, what is read after it has arrived, and only reads are held back (a link belongs to the rank
/// at which it ends). Links are changed where they lie.
class FaultyMemory final : public RemoteMemory {
 public:
  /// Both outlive this object.
  /// `own`: the memory of this rank that others reach.
  FaultyMemory(RemoteMemory& inner, MessageFaults& faults, std::byte* own)
      : inner_(inner), faults_(faults), own_(own) {}

  void put(const void* data, std::size_t bytes, int peer, std::size_t offset) override {
    faults_.arrived(const_cast<void*>(data), bytes);
    inner_.put(data, bytes, peer, offset);
  }
  void get(void* data, std::size_t bytes, int peer, std::size_t offset) override {
    if (read_.empty()) begin_s_ = now_s();
    inner_.get(data, bytes, peer, offset);
    read_.emplace_back(data, bytes);
  }
  void complete(int peer) override {
    inner_.complete(peer);
    if (read_.empty()) return;
    const double seconds = now_s() - begin_s_, end_s = now_s() + faults_.hold_back_s(peer, seconds);
    while (now_s() < end_s) {
    }
    for (const auto& [data, bytes] : std::exchange(read_, {})) faults_.arrived(data, bytes);
  }
  void make_chain(std::size_t offset, std::size_t bytes, std::uint64_t key) override {
    inner_.make_chain(offset, bytes, key);
    faults_.arrived(own_ + offset, bytes);
  }
  RemoteWalk walk_chain(int peer, std::size_t offset, std::size_t bytes, std::uint64_t key) override {
    RemoteWalk walk = inner_.walk_chain(peer, offset, bytes, key);
    walk.seconds += faults_.hold_back_s(peer, walk.seconds);
    return walk;
  }

 private:
  RemoteMemory& inner_;
  MessageFaults& faults_;
  std::byte* own_;
  std::vector<std::pair<void*, std::size_t>> read_;  ///< since the last complete()
  double begin_s_ = 0;                               ///< of the first of them
};

}  // namespace assay
