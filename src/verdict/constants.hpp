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
// Such a deficit, so many robust deviations off, is named from a single sample.
inline constexpr double gross_deviations = 5;

// Precision: delta_eff = 4 standard errors of the median; above 10 % a metric was measured but not judged.
inline constexpr double noise_z = 4.0;
inline constexpr double noise_limit = 0.10;

// The least deficit worth a line, and by class worth a fault (DESIGN.md 7): memory, HBM, PCIe and NVLink; NIC
// pairs; GEMM and train as measured, because healthy power-limited parts spread by 2 %, and at equal clock.
inline constexpr double delta_warn = 0.02;
// A part that lost 2 % is not 2 % below its peers, but that give or take how they differ: peers are looked at
// from here on.
inline constexpr double delta_notice = 0.012;
inline constexpr double delta_memory = 0.03;
inline constexpr double delta_nic = 0.05;
inline constexpr double delta_compute_raw = 0.07;
inline constexpr double delta_at_clock = 0.03;
// A metric may fail somebody only when its medians repeat to a quarter of its delta.
inline constexpr double eligible_fraction = 0.25;

// Peers. Error budgets of a run, over all metrics and strata: false warnings among normal populations, and
// false faults, also among heavy-tailed ones; the retest stage has its own, over its candidates only.
inline constexpr double alpha_warn = 0.01;
inline constexpr double alpha_warn_heavy =
    0.04;  // false warnings where parts are spread like Student's t with 4 degrees
inline constexpr double alpha_fail = 0.006;
inline constexpr double alpha_retest = 0.01;
// Degrees of freedom of a retest: its error is pooled over few entities, and more are gained with more of
// them (a median absolute deviation is worth 37 % of its values).
inline constexpr double retest_degrees = 6;
inline constexpr double retest_degrees_per_entity = 0.37;
// A warning also lies this many own standard errors off; where the metric is not precise enough to fail
// anybody, only deficits over `peers_min_deficit` count.
inline constexpr double warn_errors = 3.0;
inline constexpr double peers_min_deficit = 0.05;
// No population agrees better than this: keeps equal values from making any difference significant.
inline constexpr double peers_spread_floor = 5e-4;
// From so many a robust centre, groups and splits; up to `deletion_most` the deletion t, which needs fewer
// values to be sure of a spread than the robust predictive deviation beyond; from so many the deletion t with
// a spread worth the name, from so many at all (28 sigma at 4).
inline constexpr std::size_t deletion_most = 48;
inline constexpr std::size_t robust_min = 24;
inline constexpr std::size_t peers_min_population = 6;
inline constexpr std::size_t deletion_min = 4;
// With four or five, healthy devices are taken to spread by 2 %, as power-limited GPUs do, the widest of
// published figures.
inline constexpr double assumed_spread = 0.02;
// Links: robust sigmas.
inline constexpr double peers_z = 4.0;

// At least this part of a population's variance is taken for the parts' own: the error of the noise is not
// known better.
inline constexpr double real_least = 0.1;
inline constexpr double real_enough =
    0.7;  // part of its deviation from which a population tells how parts are spread
// Parts of the budget of faults that go to the metrics of a suite together: to their sum, and to several
// being far out at once. Metrics whose ranks agree by so many standard errors tell one story and count once.
inline constexpr double combined_share = 0.1;
inline constexpr double joint_share = 0.3;
inline constexpr double alike_errors = 2.5;
// So many metrics of a suite that do not tell one story tell how spreads differ from metric to metric, and
// each borrows from all.
inline constexpr std::size_t spread_metrics = 6;

// Clock: fitted from 32 devices on, when the slope comes out to +-0.15; else 1 for GEMM and train, 0 for
// others.
inline constexpr std::size_t clock_min_population = 32;
inline constexpr double clock_max_error = 0.15;
// Groups (slot, firmware, limits): of 8 members, centred when apart by 4 standard errors and less than
// `delta_warn`.
inline constexpr std::size_t group_min = 8;
inline constexpr double group_sigmas = 4.0;
// Two populations: distance of the best cut in pooled deviations, shape-robust. An attribute explains it when
// chance, times the attributes tried, is below `explain_p`. A slow side of a fifth or more is not called
// faulty: peers cannot tell which side is right.
inline constexpr double split_distance = 6.0;
inline constexpr double explain_p = 1e-3;
inline constexpr double explain_place_p = 1e-2;  // only a hint where to look
inline constexpr double split_minority = 0.20;
// Unlabelled kinds of one model (bins of a chip, boards) are published with rates up to 8 % apart: a slow
// group that differs by more is no kind, unless it is a third or more. Of fewer than `robust_min` a sixth may
// be one.
inline constexpr double kind_most_deficit = 0.10;
inline constexpr double kind_always = 1.0 / 3;
inline constexpr double kind_share_small = 1.0 / 6;

// Retests: controls at least 8 and 5 %, at most 64; samples 30, up to 120 where noise asks for them.
inline constexpr std::size_t retest_controls = 8;
inline constexpr double retest_control_fraction = 0.05;
inline constexpr std::size_t retest_most_controls = 64;
inline constexpr int retest_samples = 30;
inline constexpr int retest_most_samples = 120;
inline constexpr int retest_most_cases = 3;
inline constexpr std::size_t retest_most_candidates = 256;
// A sample at less than this part of its entity's own median rate is a dip. So many of at least so many
// samples, more often than anybody else by this factor: intermittent.
inline constexpr double dip = 0.8;
inline constexpr std::int32_t dips_min = 3;
inline constexpr std::int32_t dips_min_samples = 60;
inline constexpr double dips_factor = 3.0;
// Drift: what a part loses against its peers from the first to the last quarter of a case of so many samples
// and so long, in so many stretches, or of so many segments.
inline constexpr double delta_drift = 0.03;
inline constexpr std::int32_t drift_least_samples = 64;
inline constexpr double drift_least_s = 60;
inline constexpr std::size_t drift_stretches = 32;
inline constexpr std::size_t drift_least_times = 4;
// Or, without it: slow in so many blocks over so long.
inline constexpr std::size_t lasting_blocks = 3;
inline constexpr double lasting_s = 60;

// Under 6 entities there is no usable spread. Concurrent medians of healthy ranks were seen to differ by 17 %
// on two cores; 30 % leaves that alone. Ranks that share cores are scheduled by chance: only a rate below
// half counts.
inline constexpr double peers_small_deficit = 0.30;
inline constexpr double peers_note_deficit = 0.20;
inline constexpr int peers_small_samples = 5;
inline constexpr double peers_shared_deficit = 0.50;

// Ranks in step (collectives, training): from so many in one communicator and so many samples (to be asked
// about, to be judged), slow in nearly every one of them while nobody else is; chance of that, were each as
// likely to be the slow one. Late arrivals: so many times the usual, so often.
inline constexpr std::size_t in_step_ranks = 4;
inline constexpr std::size_t in_step_screened = 3;
inline constexpr std::size_t in_step_samples = 5;
inline constexpr double in_step_share = 0.8;
inline constexpr double in_step_alpha = 0.001;
inline constexpr double late_arrival = 20.0;
inline constexpr std::size_t late_least = 5;

// Physical floors: fractions of the hardware rate that healthy machines reach with every core of the domain
// at work. Memory 0.5: two-socket servers reach 0.75-0.9 of channels x rate in triad, single cores of wide
// parts far less; below half a channel is missing or not interleaved. NIC 0.8: large messages reach 0.9-0.97
// of the signalling rate.
inline constexpr double memory_floor_fraction = 0.5;
inline constexpr double nic_floor_fraction = 0.8;
// One stream of the kernel's TCP is bound by a core, not by a fast NIC: beyond 10 Gbit/s, which any server's
// core of the last ten years moves at an MTU of 1500, nothing is claimed of it.
inline constexpr double tcp_stream_rate = 1.25e9;
// Messages smaller than this are ruled by latency and not held against a rate.
inline constexpr double nic_floor_min_bytes = 1 << 20;
// Entities from which a median under its floor is one finding of the population.
inline constexpr std::size_t population_min = 3;

// Wrong values that one multiprocessor of a GPU saw speak of it rather than of the memory when they lie in so
// many pieces of a region: a block of threads looks at one piece at a time, so one defect of the memory is
// seen by one multiprocessor, too.
inline constexpr std::size_t one_sm_places = 4;
inline constexpr double one_sm_place_bytes = 16384;

// A pattern on a GPU below this share of the GPU's own copy bandwidth loads the memory less than it could:
// worth a note. Regions (chunks) smaller than this are over so soon that starting a sweep and fetching its
// count is a part of the time.
inline constexpr double pattern_efficiency = 0.85;
inline constexpr double pattern_chunk_bytes = 1 << 30;

// A bound broken by more entities than this, and by most, is one finding with members: nobody reads the same
// line 500 times.
inline constexpr std::size_t list_members = 8;
// A NIC at less than this share of a rate runs at another one: rates are steps.
inline constexpr double nic_rate_share = 0.95;
// Links beyond their bound are the part they hang on when it has so many partners and so large a share of its
// links are.
inline constexpr std::size_t shared_end_partners = 2;
inline constexpr double shared_end_share = 0.75;
inline constexpr std::size_t shared_end_most = 64;  // parts of a series

// Inventory: numbers within 1 % are equal (firmware keeps varying amounts of memory back); three nodes make a
// majority.
inline constexpr double inventory_tolerance = 0.01;

// Corrected errors of a GPU come with its size: below these rates, or as few as that, they are noted only.
// Replays of PCIe: DCGM's health check calls 8 a minute too many.
inline constexpr double gpu_corrected_per_hour = 100;
inline constexpr double gpu_replays_per_hour = 480;
inline constexpr double gpu_link_errors_per_hour = 100;
inline constexpr double gpu_few_events = 10;
inline constexpr std::size_t majority_min = 3;
// A minority this large that agrees among itself is a second population rather than faults.
inline constexpr double split_fraction = 0.10;
inline constexpr std::size_t split_min = 3;

/// Fewer nodes are no fleet whose drift could be told from their own.
inline constexpr std::size_t fleet_min_nodes = 3;

/// All of the above by name.
Json as_json();

}  // namespace assay::verdict::constants
