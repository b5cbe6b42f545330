// SPDX-License-Identifier: Apache-2.0
#include "suites/congestion/congestors.hpp"

#include <algorithm>
#include <limits>

#include "base/clock.hpp"
#include "kernels/payload.hpp"

namespace assay::congestion {
namespace {

constexpr int incast_tag = 231;
constexpr std::size_t first_block = 64, least_block = sizeof(std::uint64_t);

}  // namespace

std::size_t fitted_block(std::size_t planned, double exchange_s,
                         const std::function<double(std::size_t)>& seconds_of) {
  std::size_t block = std::min(planned, first_block);
  double seconds = seconds_of(block);
  while (block < planned && 2 * seconds <= exchange_s) {
    block = std::min(planned, 2 * block);
    seconds = seconds_of(block);
  }
  if (seconds <= exchange_s) return block;
  const auto fits = static_cast<std::size_t>(static_cast<double>(block) * exchange_s / seconds);
  return std::max(least_block, fits / least_block * least_block);
}

Flood::Flood(Communicator& comm, Congestor congestor, const workload::PayloadBuffer& arena,
             std::size_t block_bytes, double exchange_s, std::uint64_t key)
    : comm_(comm),
      congestor_(congestor),
      arena_(arena),
      block_(std::min(block_bytes, first_block)),
      key_(key) {
  if (comm.size() < 2) return;
  fill();
  exchange();
  block_ = fitted_block(block_bytes, exchange_s, [&](std::size_t bytes) {
    block_ = bytes;
    // The better of two: a rank whose core was away once makes no smaller load.
    double least_s = std::numeric_limits<double>::infinity();
    for (int tries = 0; tries < 2 && least_s > exchange_s / 2; ++tries) {
      const double begin = now_s();
      exchange();
      least_s = std::min(least_s, comm_.max(now_s() - begin));
    }
    return least_s;
  });
  fill();
}

/// What this rank sends to each other one, other values each time that it is called.
void Flood::fill() {
  ++generation_;
  const int me = comm_.rank();
  if (congestor_ == Congestor::incast) {
    if (me != 0) arena_.fill(block_key(me, 0), arena_.data(), block_);
  } else {
    for (int r = 0; r < comm_.size(); ++r)
      arena_.fill(block_key(me, r), arena_.data() + static_cast<std::size_t>(r) * block_, block_);
  }
  arena_.settle();
}

kernels::PayloadKey Flood::block_key(int source, int destination) const {
  return kernels::payload_key(key_, source, destination, generation_);
}

void Flood::exchange() {
  const auto ranks = static_cast<std::size_t>(comm_.size());
  if (congestor_ != Congestor::incast)
    return comm_.all_to_all(arena_.data(), arena_.data() + ranks * block_, block_);
  std::vector<Request> requests(comm_.rank() == 0 ? ranks - 1 : 1);
  if (comm_.rank() == 0)
    for (std::size_t r = 1; r < ranks; ++r)
      comm_.irecv(arena_.data() + r * block_, block_, static_cast<int>(r), incast_tag, requests[r - 1]);
  else
    comm_.isend(arena_.data(), block_, 0, incast_tag, requests[0]);
  comm_.wait_all(requests);
}

std::uint64_t Flood::run(double end_s) {
  if (comm_.size() < 2) return 0;
  do exchange();
  while (comm_.max(now_s() < end_s ? 0.0 : 1.0) == 0);
  // Values of their own, so that a message which did not arrive is not taken for the one before it.
  fill();
  exchange();
  const bool incast = congestor_ == Congestor::incast;
  if (incast && comm_.rank() != 0) return 0;
  const std::byte* in = arena_.data() + (incast ? 0 : static_cast<std::size_t>(comm_.size()) * block_);
  std::uint64_t wrong = 0;
  for (int r = incast ? 1 : 0; r < comm_.size(); ++r)
    wrong +=
        arena_.check(block_key(r, comm_.rank()), in + static_cast<std::size_t>(r) * block_, block_).count;
  return wrong;
}

}  // namespace assay::congestion
