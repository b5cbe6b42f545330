// SPDX-License-Identifier: Apache-2.0
#include "suites/congestion/congestors.hpp"

#include "base/clock.hpp"
#include "kernels/payload.hpp"

namespace assay::congestion {
namespace {

constexpr int incast_tag = 231;

/// What `source` sends to `destination`, the same all the time: it is not measured, so nothing is lost by a
/// warm buffer.
kernels::PayloadKey block_key(std::uint64_t key, int source, int destination) {
  return kernels::payload_key(key, source, destination, 0);
}

}  // namespace

Flood::Flood(Communicator& comm, Congestor congestor, const workload::PayloadBuffer& arena,
             std::size_t block_bytes, std::uint64_t key)
    : comm_(comm), congestor_(congestor), arena_(arena), block_(block_bytes), key_(key) {
  const int me = comm.rank();
  if (congestor == Congestor::incast) {
    if (me != 0) arena_.fill(block_key(key, me, 0), arena_.data(), block_);
  } else {
    for (int r = 0; r < comm.size(); ++r)
      arena_.fill(block_key(key, me, r), arena_.data() + static_cast<std::size_t>(r) * block_, block_);
  }
  arena_.settle();
  if (comm.size() > 1) exchange();
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
  const bool incast = congestor_ == Congestor::incast;
  if (incast && comm_.rank() != 0) return 0;
  const std::byte* in = arena_.data() + (incast ? 0 : static_cast<std::size_t>(comm_.size()) * block_);
  std::uint64_t wrong = 0;
  for (int r = incast ? 1 : 0; r < comm_.size(); ++r)
    wrong += arena_.check(block_key(key_, r, comm_.rank()), in + static_cast<std::size_t>(r) * block_, block_)
                 .count;
  return wrong;
}

}  // namespace assay::congestion
