// SPDX-License-Identifier: Apache-2.0
// Every number the verdict decides with, in one place. They are copied into /verdict/inputs, so that a file
// tells what it was judged with.
#pragma once

#include <cstddef>

#include "base/json.hpp"

namespace assay::verdict::constants {

// The 95 % interval of a median: normal quantile times its standard error.
inline constexpr double interval_z = 1.96;
// Fewest values an interval is believed from; with fewer only a deficit over `coarse_deficit` counts.
inline constexpr std::size_t interval_min_samples = 3;
// A gate before a job must not drain a node for less than this; also the bar where no interval exists.
inline constexpr double coarse_deficit = 0.20;

// Precision: delta_eff = 4 standard errors of the median; above 10 % a metric was measured but not judged.
inline constexpr double noise_z = 4.0;
inline constexpr double noise_limit = 0.10;

// Peers. 4 robust sigma is the least; with many comparisons the normal quantile that keeps the expected
// number of false warnings of a run under `peers_false_alarms` takes over.
inline constexpr double peers_min_deficit = 0.05;
inline constexpr double peers_z = 4.0;
inline constexpr double peers_false_alarms = 0.01;
inline constexpr std::size_t peers_min_population = 6;
// Under 6 entities there is no usable spread. Concurrent medians of healthy ranks were seen to differ by 17 %
// on two cores; 30 % leaves that alone. Ranks that share cores are scheduled by chance: only a rate below
// half counts.
inline constexpr double peers_small_deficit = 0.30;
inline constexpr double peers_note_deficit = 0.20;
inline constexpr int peers_small_samples = 5;
inline constexpr double peers_shared_deficit = 0.50;

// Physical floors: fractions of the hardware rate that healthy machines reach with every core of the domain
// at work. Memory 0.5: two-socket servers reach 0.75-0.9 of channels x rate in triad, single cores of wide
// parts far less; below half a channel is missing or not interleaved. NIC 0.8: large messages reach 0.9-0.97
// of the signalling rate.
inline constexpr double memory_floor_fraction = 0.5;
inline constexpr double nic_floor_fraction = 0.8;
// Messages smaller than this are ruled by latency and not held against a rate.
inline constexpr double nic_floor_min_bytes = 1 << 20;
// Entities from which a median under its floor is one finding of the population.
inline constexpr std::size_t population_min = 3;

// A bound broken by more entities than this, and by most, is one finding with members: nobody reads the same
// line 500 times.
inline constexpr std::size_t list_members = 8;

// Inventory: numbers within 1 % are equal (firmware keeps varying amounts of memory back); three nodes make a
// majority.
inline constexpr double inventory_tolerance = 0.01;
inline constexpr std::size_t majority_min = 3;
// A minority this large that agrees among itself is a second population rather than faults.
inline constexpr double split_fraction = 0.10;
inline constexpr std::size_t split_min = 3;

/// All of the above by name.
inline Json as_json() {
  return Json{{"interval_z", interval_z},
              {"interval_min_samples", interval_min_samples},
              {"coarse_deficit", coarse_deficit},
              {"noise_z", noise_z},
              {"noise_limit", noise_limit},
              {"peers_min_deficit", peers_min_deficit},
              {"peers_z", peers_z},
              {"peers_false_alarms", peers_false_alarms},
              {"peers_min_population", peers_min_population},
              {"peers_small_deficit", peers_small_deficit},
              {"peers_note_deficit", peers_note_deficit},
              {"peers_small_samples", peers_small_samples},
              {"peers_shared_deficit", peers_shared_deficit},
              {"memory_floor_fraction", memory_floor_fraction},
              {"nic_floor_fraction", nic_floor_fraction},
              {"nic_floor_min_bytes", nic_floor_min_bytes},
              {"population_min", population_min},
              {"list_members", list_members},
              {"inventory_tolerance", inventory_tolerance},
              {"majority_min", majority_min},
              {"split_fraction", split_fraction},
              {"split_min", split_min}};
}

/// The smallest deficit worth a FAIL by class of metric. The first verdict does not test against them yet;
/// they are stored so that files of this version can be compared with later ones.
inline Json deltas() {
  return Json{{"warn", 0.02},     {"memory", 0.03},   {"pcie", 0.03},          {"nvlink", 0.03},
              {"nic_pair", 0.05}, {"gemm_raw", 0.07}, {"gemm_at_clock", 0.03}, {"train", 0.07}};
}

}  // namespace assay::verdict::constants
