// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "suite/suite.hpp"

namespace assay::memory {

/// The row of this rank's device: what each sample of `series` moved per second.
CaseRecord::Row& add_device_row(const SampleSeries& series, double bytes, Context& context);

/// What this rank's GPU did in the bandwidth cases of this run so far, for the patterns.
struct OwnBandwidth {
  double copy = 0;        ///< B/s, median; 0: not measured
  std::string case_name;  ///< where
};

/// read, write, copy or triad, alone (a row per device) or together (a row per NUMA domain). Leaves in `own`
/// what GPUs copied together.
void run_bandwidth(const Case& c, Context& context, OwnBandwidth& own);
/// Dependent loads by one thread, devices of a node in turns.
void run_latency(const Case& c, Context& context);
/// The region that the test of the patterns' checker changes a word of.
inline constexpr std::uint64_t selftest_bytes = std::uint64_t{512} << 10;
/// That test alone.
void run_selftest(const Case& c, Context& context);
/// A RAM pattern over the whole of the case's bytes, all ranks at once.
void run_pattern(const Case& c, Context& context, const OwnBandwidth& own);
/// GPUs: memory inside the processor, on every multiprocessor (parameter `onchip`: l1, shared or l2).
void run_on_chip(const Case& c, Context& context);
/// GPUs: copies to and from pinned memory of one NUMA domain of the host (parameter `copy`: h2d, d2h or
/// hd-both).
void run_copy(const Case& c, Context& context);

/// Dependent loads of one sample: about 10 to 20 ms.
inline constexpr std::size_t chase_steps = 100'000;

}  // namespace assay::memory
