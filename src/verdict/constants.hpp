// SPDX-License-Identifier: Apache-2.0
// Constants of the verdict with their reasons. as_json() copies them into /verdict/inputs. ci/verdict_page.py
// makes constants.md of this file: the comment above a group of constants is their reason there.
#pragma once

#include <cstddef>

#include "base/json.hpp"

namespace assay::verdict::constants {

// Larger and smaller values are impossible: their sums and squares overflow or become 0.
inline constexpr double possible_most = 1e100;
inline constexpr double possible_least = 1e-100;
// Normal quantile of a two-sided 95 % interval.
inline constexpr double interval_z = 1.96;
// Fewest samples that give an interval; with fewer, only a deficit over `coarse_deficit` counts.
inline constexpr std::size_t interval_min_samples = 3;
// Deficit that fails at level `smoke`, and where no interval exists: a gate before a job must not drain a
// node for less.
inline constexpr double coarse_deficit = 0.20;
// A deficit over `coarse_deficit` is named from a single sample when it is this many robust deviations off.
inline constexpr double gross_deviations = 5;
// From a few samples on, a deficit over `coarse_deficit` that healthy parts of this spread may have by chance
// is a note up to this size.
inline constexpr double gross_deficit = 0.40;

// Precision: delta_eff = `noise_z` standard errors of the median. Above `noise_limit` a metric counts as not
// judged. The standard error of one part is uncertain: beside precise peers it counts from `noise_of_peers`
// times their median on.
inline constexpr double noise_z = 4.0;
inline constexpr double noise_limit = 0.10;
inline constexpr double noise_of_peers = 10.0;
// Of at least `spread_bounds_from` parts, the error of a part is at most `spread_bound` robust deviations of
// the parts. With independent errors that changes it in a few of 100 populations of the least size.
inline constexpr std::size_t spread_bounds_from = 8;
inline constexpr double spread_bound = 4.0;

// Least deficit of a warning.
inline constexpr double delta_warn = 0.02;
// Peers are screened from this deficit on: a part that lost 2 % is 2 % below its former rate, not below its
// peers.
inline constexpr double delta_notice = 0.012;
// Least deficit of a fault (δ) by class: memory, HBM, PCIe and NVLink; pairs of NICs; GEMM and training as
// measured (healthy power-limited parts spread by 2 %); GEMM and training at equal clock.
inline constexpr double delta_memory = 0.03;
inline constexpr double delta_nic = 0.05;
inline constexpr double delta_compute_raw = 0.07;
inline constexpr double delta_at_clock = 0.03;
// A metric may fail a part when its medians repeat to this fraction of its δ.
inline constexpr double eligible_fraction = 0.25;

// Error budgets of a healthy run over all metrics and strata: false warnings in normal populations, false
// warnings in populations of Student's t with 4 degrees of freedom, false faults in those.
inline constexpr double alpha_warn = 0.01;
inline constexpr double alpha_warn_heavy = 0.034;
inline constexpr double alpha_fail = 0.006;
// Error budget of the retest stage, over its candidates only.
inline constexpr double alpha_retest = 0.01;
// Degrees of freedom of a retest: its error is pooled over few entities; each entity adds 0.37, because a
// median absolute deviation is worth 37 % of its values.
inline constexpr double retest_degrees = 6;
inline constexpr double retest_degrees_per_entity = 0.37;
// A fault of one metric may spend its budget in full where parts differ by `narrow_spread` or less, and
// (narrow_spread / spread)^2 of it where they differ more, but `wide_share` at least: faults are found where
// healthy parts are alike. A deficit over `gross_deficit` may spend all.
inline constexpr double narrow_spread = 0.006;
inline constexpr double wide_share = 0.05;
// A warning lies at least this many of its own standard errors off, in a metric that is not precise enough to
// fail a part `warn_errors_noisy`.
inline constexpr double warn_errors = 3.0;
inline constexpr double warn_errors_noisy = 6.0;
// Least deficit where the metric is not precise enough to fail a part.
inline constexpr double peers_min_deficit = 0.05;
// Least spread of a population: keeps equal values from making any difference significant.
inline constexpr double peers_spread_floor = 5e-4;
// Sizes of populations: deletion t up to `deletion_most` (it needs fewer values for the spread than the
// robust predictive deviation); robust centre, groups and splits from `robust_min`; peers are compared from
// `peers_min_population`; deletion t with an assumed spread from `deletion_min` (28 sigma at 4).
inline constexpr std::size_t deletion_most = 48;
inline constexpr std::size_t robust_min = 24;
inline constexpr std::size_t peers_min_population = 6;
inline constexpr std::size_t deletion_min = 4;
// Spread of healthy devices assumed for populations of four or five: the widest published for power-limited
// GPUs.
inline constexpr double assumed_spread = 0.02;
// Robust deviations of a link.
inline constexpr double peers_z = 4.0;

// Least share of a population's variance that is attributed to the parts; the noise is not known better.
inline constexpr double real_least = 0.1;
// Share of a population's deviation from which it tells how parts are spread.
inline constexpr double real_enough = 0.7;
// Shares of the budget of faults for the metrics of a suite together: for their sum, and for several outliers
// at once.
inline constexpr double combined_share = 0.1;
inline constexpr double joint_share = 0.3;
// Of both, for rates as measured where the clock explains some of them: a throttled part is as it should be
// at equal clock.
inline constexpr double throttled_share = 0.3;
// Of `joint_share`, for the medians of nodes of several devices.
inline constexpr double node_share = 0.3;
// Nodes count as the independent parts, not their devices, from this intraclass correlation on.
inline constexpr double nested_share = 0.2;
// Of the fourth root of the excess kurtosis of heavy-tailed values, what their differences from others have.
inline constexpr double difference_peak = 0.85;
// Metrics whose ranks correlate by this many standard errors count once.
inline constexpr double alike_errors = 2.5;
// Deviations of the parts that a fault must have for the light tails of a run to count in full, and at all.
inline constexpr double light_delta = 7.5;
inline constexpr double heavy_delta = 4.5;
// From so many correlated metrics on, three quarters of a suite's, what they have in common is judged as a
// value of its own, with `joint_share`. Healthy parts differ in it by less than Student's t with 4 degrees:
// that is one metric's tail, which is no part of what many show alike.
inline constexpr std::size_t story_metrics = 3;
inline constexpr double story_degrees = 8;
// Fewest uncorrelated metrics of a suite from which each borrows spread from all.
inline constexpr std::size_t spread_metrics = 6;

// Skewed populations: standard error of the logarithm of the slow half's mean distance from the median over
// the fast half's, times the square root of the parts (simulated, normal and t4); evidence in these errors
// from which the slow half gives the spread of slow parts in part, and in full; the gap in deviations that no
// tail has, the parts with which it doubles, and what is left of it where many parts are below.
inline constexpr double skew_error = 1.9;
inline constexpr double skew_doubt = 1.5;
inline constexpr double skew_certain = 3.5;
inline constexpr double skew_gap = 3.5;
inline constexpr double skew_gap_few = 5.0;
inline constexpr double skew_gap_least = 1.5;

// Clock: the slope is fitted from this many devices on, of an import from `peers_min_population`, where its
// error is at most `clock_max_error`; else it is 1 for GEMM and training, 0 for other metrics, and of an
// import unknown.
inline constexpr std::size_t clock_min_population = 32;
inline constexpr double clock_max_error = 0.15;
// A part whose clock is higher than the median by more: then most are throttled, or it is another kind, and
// rates are compared as measured.
inline constexpr double clock_reach = 0.10;
// Beyond it below the median: how far the slope may be off, and the remainder with it.
inline constexpr double clock_slope_doubt = 0.15;
// Groups (slot, firmware, limits): members, and standard errors apart, from which a group is centred.
inline constexpr std::size_t group_min = 8;
inline constexpr double group_sigmas = 4.0;
// Split: distance of the best cut in pooled deviations.
inline constexpr double split_distance = 6.0;
// Of parts of two kinds fewer than this share lie in the middle third between the centres.
inline constexpr double split_valley = 0.1;
// Fewer than `robust_min` parts: added, divided by the square of the parts less two. Then less than one
// healthy population of 3000 is split (normal and t4, 6 to 23 parts).
inline constexpr double split_distance_few = 220.0;
// An attribute explains a split below this probability times the attributes tried.
inline constexpr double explain_p = 1e-3;
// The same for a place (rack, switch), which is a hint where to look only.
inline constexpr double explain_place_p = 1e-2;
// A slow side of this share or more may be another kind of part: peers cannot tell which side is right.
inline constexpr double split_minority = 0.20;
// Unlabelled kinds of one model (bins of a chip, boards) are published with rates up to 8 % apart. A slow
// group that differs by more is another kind only from `kind_always` on; of fewer than `robust_min` parts
// from `kind_share_small`. Parts that differ by more than `kind_gross_deficit` are no kinds of one model: the
// minority is slow, and of two halves, or where a faster side has `split_minority`, the verdict is open.
// Imports do not record the model.
inline constexpr double kind_most_deficit = 0.10;
inline constexpr double kind_most_usual = 0.08;
inline constexpr double kind_gross_deficit = 0.20;
// Levels of rates among many parts, of which one has few: so far apart they are no tail.
inline constexpr double level_gross_deficit = 0.50;
// Of fewer than `robust_min` parts three levels or more, of two parts or more each, from this step on: two
// kinds are one step.
inline constexpr double level_few_deficit = 0.03;
// The same of a part by itself beside two levels of two parts or more.
inline constexpr double level_few_single = 0.05;
// Parts whose rates are spread wider (robust deviation, of the rate) hide faults: a warning.
inline constexpr double spread_warn = 0.15;
inline constexpr double kind_always = 1.0 / 3;
inline constexpr double kind_share_small = 1.0 / 6;

// Retest: controls at least `retest_controls` and this fraction of the population, at most
// `retest_most_controls`.
inline constexpr std::size_t retest_controls = 8;
inline constexpr double retest_control_fraction = 0.05;
inline constexpr std::size_t retest_most_controls = 64;
// Retest: samples, and their most where the noise asks for them; most cases and candidates of a run.
inline constexpr int retest_samples = 30;
inline constexpr int retest_most_samples = 120;
inline constexpr int retest_most_cases = 3;
inline constexpr std::size_t retest_most_candidates = 256;
// Dips: a sample below `dip` of the upper quartile of the entity's own rates. `intermittent` needs `dips_min`
// events of at least `dips_min_samples` samples, and `dips_factor` times as many as any entity that is not
// named.
inline constexpr double dip = 0.8;
inline constexpr std::int32_t dips_min = 3;
inline constexpr std::int32_t dips_min_samples = 60;
inline constexpr double dips_factor = 3.0;
// A run of dips goes on until a sample has this share of the upper quartile: of what is near `dip`, noise
// takes some samples above it.
inline constexpr double dip_ends = 0.9;
// Dips in a row are one event if chance leaves as few runs of as many dips this seldom.
inline constexpr double dips_clustered = 0.10;
// Without many events: consecutive dips of a part whose peers have no run a `dips_factor`th as long.
inline constexpr std::int32_t dips_long = 20;
// Of fewer samples, `dips_few_samples` at least, `dips_min` events and this share of dips: two rates of one
// part, and no single interruptions. A long run is as large a share.
inline constexpr std::int32_t dips_few_samples = 10;
inline constexpr double dips_few_share = 0.2;
// Of fewer than ten parts, of which a fifth is one, two can be named where they are no majority.
inline constexpr std::size_t dips_two_of = 4;
// Least dips of a node's links, each of which dips for both of its ends.
inline constexpr std::int32_t dips_min_links = 10;
// Drift: steady loss against the peers over the whole case or soak; least samples and seconds of a case;
// stretches that a case is divided into; least number of files.
inline constexpr double delta_drift = 0.02;
inline constexpr std::int32_t drift_least_samples = 64;
inline constexpr double drift_least_s = 60;
inline constexpr std::size_t drift_stretches = 32;
inline constexpr std::size_t drift_least_times = 4;
// The same of all parts together, within a case (where clocks of a cold machine may settle) and from file to
// file; in deviations of the steps from time to time.
inline constexpr double drift_common_case = 0.20;
inline constexpr double drift_common_files = 0.05;
inline constexpr double drift_common_deviations = 5.0;
// Blocks and seconds over which a deficit confirms itself without a retest; the probability that chance
// leaves as many slow blocks in one of all parts and metrics; the least share of slow blocks where no peers
// tell that.
inline constexpr std::size_t lasting_blocks = 3;
inline constexpr double lasting_s = 60;
inline constexpr double lasting_error = 0.01;
inline constexpr double lasting_share = 0.75;

// Two to five entities have no usable spread. Concurrent medians of healthy ranks differed by 17 % on two
// cores; the warning at 30 % leaves that alone. The note and the fewest samples of a warning.
inline constexpr double peers_small_deficit = 0.30;
// Of two to five parts one that lacks so much leaves the verdict open: more parts would show a fault.
inline constexpr double peers_open_deficit = 0.45;
inline constexpr double peers_note_deficit = 0.20;
inline constexpr int peers_small_samples = 5;
// One of three nodes is a warning from here on, if the other two differ by at most this part of what it
// lacks: 6 and 0.75 deviations of the assumed spread. The fewest samples, and what the best of them must
// lack.
inline constexpr double peers_third_deficit = 0.12;
inline constexpr double peers_third_alike = 0.125;
inline constexpr int peers_third_samples = 10;
inline constexpr double peers_third_best = 0.08;
// Cases of fewer samples that name a part together: how many, and of the message sizes from one on up or down
// the share in which it is slow.
inline constexpr std::size_t agreeing_cases = 3;
inline constexpr double agreeing_share = 0.9;
// Ranks that share cores are scheduled by chance: only a rate below half counts, as a note. No scheduler
// leaves one a tenth of what the others have: that is a warning.
inline constexpr double peers_shared_deficit = 0.50;
inline constexpr double peers_shared_most = 0.90;

// A core counts as shared when its rank ran for less than this part of what its peers did of the time in
// which they were ready to run, and this explains a deficit when it is at least this part of it (of the
// logarithm): what the rest is shows when the core is free.
inline constexpr double core_share_least = 0.90;
inline constexpr double core_share_part = 0.50;

// Synchronised ranks: fewest ranks of a communicator; samples for a retest and for a judgement; share of
// samples in which the rank alone is slow; probability of that if each rank were as likely to be the slow
// one.
inline constexpr std::size_t in_step_ranks = 4;
inline constexpr std::size_t in_step_screened = 3;
inline constexpr std::size_t in_step_samples = 5;
inline constexpr double in_step_share = 0.8;
inline constexpr double in_step_alpha = 0.001;
// Late arrivals: factor over the median skew, and how often.
inline constexpr double late_arrival = 20.0;
inline constexpr std::size_t late_least = 5;

// Physical floor of memory, as a fraction of the hardware rate. Two-socket servers reach 0.75 to 0.9 of
// channels x rate in triad; below half, a channel is missing or not interleaved.
inline constexpr double memory_floor_fraction = 0.5;
// Physical floor of a NIC: large messages reach 0.9 to 0.97 of the signalling rate.
inline constexpr double nic_floor_fraction = 0.8;
// Physical floor of reads from storage, as a fraction of `link_rate`: solid-state disks reach 0.4 to 0.9 of
// their link.
inline constexpr double storage_floor_fraction = 0.2;
// Most that a floor claims of one TCP stream in B/s: 10 Gbit/s at an MTU of 1500. Faster NICs are bound by a
// core.
inline constexpr double tcp_stream_rate = 1.25e9;
// Smaller messages are bound by latency and not held against a rate.
inline constexpr double nic_floor_min_bytes = 1 << 20;
// Entities from which a median under its floor is one finding of the population.
inline constexpr std::size_t population_min = 3;

// Wrong values in this many pieces of this many bytes, all seen by one multiprocessor of a GPU, make it the
// suspect instead of the memory: a block of threads reads one piece at a time.
inline constexpr std::size_t one_sm_places = 4;
inline constexpr double one_sm_place_bytes = 16384;

// A RAM pattern on a GPU below this share of the GPU's own copy bandwidth gets a note. In smaller chunks the
// start of a sweep is a part of the time.
inline constexpr double pattern_efficiency = 0.85;
inline constexpr double pattern_chunk_bytes = 1 << 30;

// A bound that more entities than this break, and more than half of them, is one finding with members.
inline constexpr std::size_t list_members = 8;
// A NIC below this share of a rate runs at another one: rates are steps.
inline constexpr double nic_rate_share = 0.95;
// Links beyond a bound are attributed to the part at their end from this many partners and this share of its
// links on; most such parts of a series.
inline constexpr std::size_t shared_end_partners = 2;
inline constexpr double shared_end_share = 0.75;
inline constexpr std::size_t shared_end_most = 512;

// Inventory: relative difference up to which amounts with a unit are equal (firmware reserves some memory).
inline constexpr double inventory_tolerance = 0.01;
// Corrected errors of a GPU grow with its size: below these rates per hour, or up to `gpu_few_events`, they
// are noted only. PCIe replays: DCGM's health check fails at 8 a minute.
inline constexpr double gpu_corrected_per_hour = 100;
inline constexpr double gpu_replays_per_hour = 480;
inline constexpr double gpu_link_errors_per_hour = 100;
inline constexpr double gpu_few_events = 10;
// Fewest nodes of a majority.
inline constexpr std::size_t majority_min = 3;
// Share and size from which a minority that agrees among itself is a second population.
inline constexpr double split_fraction = 0.10;
inline constexpr std::size_t split_min = 3;

// Fewest nodes of a fleet whose drift can be separated from that of its nodes.
inline constexpr std::size_t fleet_min_nodes = 3;

/// All of the above by name.
Json as_json();

}  // namespace assay::verdict::constants
