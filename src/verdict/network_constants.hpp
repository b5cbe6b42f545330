// SPDX-License-Identifier: Apache-2.0
// Constants of the verdict on links and collectives, as in constants.hpp.
#pragma once

#include <cstddef>

#include "base/json.hpp"

namespace assay::verdict::constants {

// Error budget: probability that a healthy population (one case, level and direction) is measured again.
inline constexpr double network_alpha_screen = 0.10;
// Probability of a warning without a retest, over all cases, levels and directions.
inline constexpr double network_alpha_warn = 0.01;
// Probability of a wrong confirmation, over the candidates of a case.
inline constexpr double network_alpha_retest = 0.01;
// Probability of a false fault, over all candidates of the run; with alpha_fail and in_step_alpha 1 % of
// runs.
inline constexpr double network_alpha_fail = 0.001;
// Least deficits of a suspect (of the logarithm of the rate): switch, node or NIC, pair. Scores of switches
// are medians over many nodes and therefore finer.
inline constexpr double network_leaf = 0.008;
inline constexpr double network_node = 0.012;
inline constexpr double network_pair = 0.05;
// Least deficits in a retest: switch; node or NIC, because healthy NICs differ by up to 2 %.
inline constexpr double network_leaf_confirmed = 0.010;
inline constexpr double network_node_confirmed = 0.020;
// A part below a suspect switch: beyond this share of what the switch takes, which is known no better.
inline constexpr double network_leaf_rest = 0.10;
// Of servers of storage, their clients and single pairs, which differ by several percent: a suspect's and a
// retest's least deficits.
inline constexpr double storage_part = 0.03;
inline constexpr double storage_pair = 0.15;
inline constexpr double storage_confirmed = 0.10;
// A single pair: rounds in which it must be slow, and robust deviations.
inline constexpr std::size_t network_pair_rounds = 3;
inline constexpr double network_pair_sigma = 4.0;
// A pair is a warning without a retest when it is this many times further out than the third worst of at
// least this many pairs. Congestion makes tails in which the worst three are close together.
inline constexpr double network_pair_alone = 3.0;
inline constexpr std::size_t network_pair_population = 24;
// Deficits of a warning and of a fault.
inline constexpr double network_warn = 0.02;
inline constexpr double network_fail = 0.05;
// A node, NIC or switch this much slower with its partners in so many cases is a fault without a retest: what
// passes by itself does not slow most samples of several cases ten times.
inline constexpr double network_gross_deficit = 0.90;
inline constexpr std::size_t network_gross_cases = 3;
// More parts than this, and this share of all, are one finding with members.
inline constexpr std::size_t network_split_members = 8;
inline constexpr double network_split_share = 0.04;
// Parts from which the robust predictive deviation and the deletion t are used; below, the pattern only.
inline constexpr std::size_t network_robust_population = 24;
inline constexpr std::size_t network_deletion_population = 6;
// Median deficit of the pairs of a part that is named by their pattern, each of which has
// `peers_note_deficit`.
inline constexpr double hub_deficit = 0.25;
// A part all of whose pairs are slow is named beside at most this share of slow pairs among the others: a bad
// pair is a fault of its own.
inline constexpr double network_single_pairs = 0.34;
// A rail that is slow as a whole by `peers_small_deficit` is a fault of NICs; of ranks, whose ways to their
// NICs differ by design, from this deficit beside the fastest rail on, else a warning. Nodes and links that a
// rail must have.
inline constexpr double rail_deficit = 0.50;
inline constexpr std::size_t rail_nodes = 3;
inline constexpr std::size_t rail_links = 6;
// A link without a rate or time that can be is judged as one that has this share of the usual rate.
inline constexpr double dead_link_share = 1e-6;
// Least spread of parts: keeps equal values from making any difference significant.
inline constexpr double network_spread_floor = 1e-3;
// Retests: rounds with new partners after the one with the same partner; repeats, batches and series of
// single pairs.
inline constexpr int network_retest_partners = 8;
inline constexpr int network_pair_repeats = 5;
inline constexpr std::size_t network_pair_batches = 2;
inline constexpr std::size_t network_pair_series = 2;
// Retests: controls, nodes measured of a switch, samples.
inline constexpr std::size_t network_least_controls = 8;
inline constexpr std::size_t network_most_controls = 64;
inline constexpr std::size_t network_leaf_ends = 16;
inline constexpr int network_retest_samples = 30;
// In a small network with fewer pairs without a suspect than this, suspects up to this deficit become
// controls: a pair of two healthy nodes is rarely further off.
inline constexpr std::size_t network_least_free_pairs = 6;
inline constexpr double network_weak_suspect = 0.30;

// Random groups: fewest nodes and draws that separate a slow node from the nodes in its groups.
inline constexpr std::size_t collective_nodes = 8;
inline constexpr std::size_t collective_draws = 3;
// Few groups that are faster than all others say that these are slow from this deficit on: below one switch
// of an oversubscribed network nodes reach less than twice the rate that they reach across.
inline constexpr double collective_rare_deficit = 0.5;
// Bisection starts when all nodes together reach less than this share of what groups of 4 nodes reach: busbw
// hardly depends on the number of nodes.
inline constexpr double bisection_share = 0.5;

// A collective is implausible from this factor on beyond what the links of the same run allow, or another
// size of the same operation shows. With a core of its own a rank came within a factor of 3 of its links and
// of 5 of other sizes. A core that adds 5 GB/s beside a NIC of 50 GB/s makes a factor of 10, and a network
// that is narrower above its switches another of 2.
inline constexpr double collective_implausible = 20;

inline Json network_json() {
  return Json{{"alpha_screen", network_alpha_screen},
              {"alpha_warn", network_alpha_warn},
              {"alpha_confirm", network_alpha_retest},
              {"alpha_fail", network_alpha_fail},
              {"leaf", network_leaf},
              {"node", network_node},
              {"pair", network_pair},
              {"leaf_confirmed", network_leaf_confirmed},
              {"node_confirmed", network_node_confirmed},
              {"leaf_rest", network_leaf_rest},
              {"storage_part", storage_part},
              {"storage_pair", storage_pair},
              {"storage_confirmed", storage_confirmed},
              {"pair_rounds", network_pair_rounds},
              {"pair_sigma", network_pair_sigma},
              {"pair_alone", network_pair_alone},
              {"pair_population", network_pair_population},
              {"warn", network_warn},
              {"fail", network_fail},
              {"gross_deficit", network_gross_deficit},
              {"gross_cases", network_gross_cases},
              {"robust_population", network_robust_population},
              {"deletion_population", network_deletion_population},
              {"hub_deficit", hub_deficit},
              {"single_pairs", network_single_pairs},
              {"split_members", network_split_members},
              {"split_share", network_split_share},
              {"rail_deficit", rail_deficit},
              {"rail_nodes", rail_nodes},
              {"rail_links", rail_links},
              {"dead_link_share", dead_link_share},
              {"spread_floor", network_spread_floor},
              {"fresh_partners", network_retest_partners},
              {"pair_repeats", network_pair_repeats},
              {"pair_batches", network_pair_batches},
              {"pair_series", network_pair_series},
              {"least_controls", network_least_controls},
              {"most_controls", network_most_controls},
              {"least_free_pairs", network_least_free_pairs},
              {"weak_suspect", network_weak_suspect},
              {"collective_nodes", collective_nodes},
              {"collective_draws", collective_draws},
              {"collective_rare_deficit", collective_rare_deficit},
              {"bisection_share", bisection_share},
              {"collective_implausible", collective_implausible},
              {"leaf_ends", network_leaf_ends},
              {"confirm_samples", network_retest_samples}};
}

}  // namespace assay::verdict::constants
