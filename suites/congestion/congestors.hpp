// SPDX-License-Identifier: Apache-2.0
// Traffic that is not measured: it only has to be there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "kernels/payload.hpp"
#include "suites/congestion/congestion_plan.hpp"
#include "workload/payload_buffer.hpp"

namespace assay::congestion {

/// Bytes of a block, at most `planned`, with which an exchange takes about `exchange_s` or less.
/// `seconds_of`: times one exchange of blocks of so many bytes.
std::size_t fitted_block(std::size_t planned, double exchange_s,
                         const std::function<double(std::size_t)>& seconds_of);

/// Floods the network among the ranks of `comm`. All-to-all: each block to every rank; incast: every rank to
/// the first. Collective, as each of its functions.
class Flood {
 public:
  /// Sets up connections, and fits the blocks to the network: an exchange takes about `exchange_s` or less.
  Flood(Communicator& comm, Congestor congestor, const workload::PayloadBuffer& arena,
        std::size_t block_bytes, double exchange_s, std::uint64_t key);

  std::size_t block_bytes() const noexcept { return block_; }

  /// Until now_s() reaches `end_s` on any of them. Returns how many 8-byte words of what came last were
  /// wrong.
  std::uint64_t run(double end_s);

 private:
  void fill();
  void exchange();
  kernels::PayloadKey block_key(int source, int destination) const;

  Communicator& comm_;
  Congestor congestor_;
  workload::PayloadBuffer arena_;
  std::size_t block_;
  std::uint64_t key_, generation_ = 0;
};

}  // namespace assay::congestion
