// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// Random records feed training steps: a thread reads batches ahead, and the time a step waits for its batch
/// is a stall.
void run_feed(const Case& c, Context& context, const Site& site);

/// Bytes of record `i`: 4 KiB to 1 MiB, as many of each power of two as of any other, in multiples of 4 KiB.
std::uint32_t record_bytes_of(std::uint64_t i, std::uint64_t key) noexcept;

}  // namespace assay::storage
