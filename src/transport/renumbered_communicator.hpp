// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "transport/forwarding_communicator.hpp"

namespace assay {

/// A part of the world whose ranks are called by their numbers in the world, in messages; collectives are the
/// part's.
class RenumberedCommunicator final : public ForwardingCommunicator {
 public:
  /// Collective over `part`, which outlives this object.
  RenumberedCommunicator(Communicator& world, Communicator& part)
      : ForwardingCommunicator(part),
        rank_(world.rank()),
        size_(world.size()),
        numbers_(static_cast<std::size_t>(world.size()), -1) {
    std::vector<int> members(static_cast<std::size_t>(part.size()));
    part.all_gather(&rank_, members.data(), sizeof rank_);
    for (std::size_t i = 0; i < members.size(); ++i)
      numbers_[static_cast<std::size_t>(members[i])] = static_cast<int>(i);
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  int launch_rank(int peer) const noexcept override {
    return peer < 0 || peer >= size_ ? -1 : inner_.launch_rank(numbers_[static_cast<std::size_t>(peer)]);
  }
  void send(const void* data, std::size_t bytes, int peer, int tag) override {
    inner_.send(data, bytes, number(peer), tag);
  }
  void recv(void* data, std::size_t bytes, int peer, int tag) override {
    inner_.recv(data, bytes, number(peer), tag);
  }
  void isend(const void* data, std::size_t bytes, int peer, int tag, Request& request) override {
    inner_.isend(data, bytes, number(peer), tag, request);
  }
  void irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) override {
    inner_.irecv(data, bytes, number(peer), tag, request);
  }

 private:
  int number(int peer) const { return numbers_.at(static_cast<std::size_t>(peer)); }

  int rank_, size_;
  std::vector<int> numbers_;  ///< in the part, by rank of the world
};

}  // namespace assay
