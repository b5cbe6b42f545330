// SPDX-License-Identifier: Apache-2.0
// Traffic that is not measured: it only has to be there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "suites/congestion/congestion_plan.hpp"
#include "workload/payload_buffer.hpp"

namespace assay::congestion {

/// Floods the network among the ranks of `comm`. All-to-all: each block to every rank; incast: every rank to
/// the first. Collective, as each of its functions.
class Flood {
 public:
  /// Fills what is sent, and exchanges it once: the first exchange sets up connections.
  Flood(Communicator& comm, Congestor congestor, const workload::PayloadBuffer& arena,
        std::size_t block_bytes, std::uint64_t key);

  /// Until now_s() reaches `end_s` on any of them. Returns how many 8-byte words of what came last were
  /// wrong.
  std::uint64_t run(double end_s);

 private:
  void exchange();

  Communicator& comm_;
  Congestor congestor_;
  workload::PayloadBuffer arena_;
  std::size_t block_;
  std::uint64_t key_;
};

}  // namespace assay::congestion
