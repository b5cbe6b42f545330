// SPDX-License-Identifier: Apache-2.0
// Traffic that is not measured: it only has to be there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "suites/congestion/congestion_plan.hpp"
#include "workload/payload_buffer.hpp"

namespace assay::congestion {

/// Floods the network among the ranks of `comm` until now_s() reaches `end_s` on any of them; collective.
/// All-to-all: each block to every rank; incast: every rank to the first. Returns how many 8-byte words of
/// what came last were wrong.
std::uint64_t flood(Communicator& comm, Congestor congestor, const workload::PayloadBuffer& arena,
                    std::size_t block_bytes, std::uint64_t key, double end_s);

}  // namespace assay::congestion
