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

std::uint64_t all_to_all(Communicator& comm, const workload::PayloadBuffer& arena, std::size_t block,
                         std::uint64_t key, double end_s) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::byte *out = arena.data(), *in = arena.data() + ranks * block;
  for (std::size_t r = 0; r < ranks; ++r)
    arena.fill(block_key(key, comm.rank(), static_cast<int>(r)), out + r * block, block);
  arena.settle();
  do comm.all_to_all(out, in, block);
  while (comm.max(now_s() < end_s ? 0.0 : 1.0) == 0);
  std::uint64_t wrong = 0;
  for (std::size_t r = 0; r < ranks; ++r)
    wrong += arena.check(block_key(key, static_cast<int>(r), comm.rank()), in + r * block, block).count;
  return wrong;
}

std::uint64_t incast(Communicator& comm, const workload::PayloadBuffer& arena, std::size_t block,
                     std::uint64_t key, double end_s) {
  const int ranks = comm.size();
  const bool target = comm.rank() == 0;
  if (!target) arena.fill(block_key(key, comm.rank(), 0), arena.data(), block);
  arena.settle();
  std::vector<Request> requests(target ? static_cast<std::size_t>(ranks - 1) : 1);
  do {
    if (target)
      for (int r = 1; r < ranks; ++r)
        comm.irecv(arena.data() + static_cast<std::size_t>(r) * block, block, r, incast_tag,
                   requests[static_cast<std::size_t>(r - 1)]);
    else
      comm.isend(arena.data(), block, 0, incast_tag, requests[0]);
    comm.wait_all(requests);
  } while (comm.max(now_s() < end_s ? 0.0 : 1.0) == 0);
  std::uint64_t wrong = 0;
  for (int r = 1; target && r < ranks; ++r)
    wrong +=
        arena.check(block_key(key, r, 0), arena.data() + static_cast<std::size_t>(r) * block, block).count;
  return wrong;
}

}  // namespace

std::uint64_t flood(Communicator& comm, Congestor congestor, const workload::PayloadBuffer& arena,
                    std::size_t block_bytes, std::uint64_t key, double end_s) {
  if (comm.size() < 2) return 0;
  return congestor == Congestor::incast ? incast(comm, arena, block_bytes, key, end_s)
                                        : all_to_all(comm, arena, block_bytes, key, end_s);
}

}  // namespace assay::congestion
