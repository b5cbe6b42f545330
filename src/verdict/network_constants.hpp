// SPDX-License-Identifier: Apache-2.0
// Every number the verdict on links decides with; copied into /verdict/inputs like constants.hpp.
#pragma once

#include <cstddef>

#include "base/json.hpp"

namespace assay::verdict::constants {

// Error budget: chance of a healthy population (one case, level and direction) being measured again; of a
// warning without fresh data, over all cases, levels and directions together; of a wrong confirmation, over
// its candidates.
inline constexpr double network_alpha_screen = 0.10;
inline constexpr double network_alpha_warn = 0.01;
inline constexpr double network_alpha_retest = 0.01;
// Of a false failure, over all candidates of the run: with alpha_fail of the populations and in_step_alpha 1
// % of runs.
inline constexpr double network_alpha_fail = 0.001;
// Least deficits (of the logarithm) worth a second look. Leaf scores are medians over many nodes, so they are
// finer.
inline constexpr double network_leaf = 0.008;
inline constexpr double network_node = 0.012;
inline constexpr double network_pair = 0.05;
// What fresh data must show of them: under the 2 % of a warning healthy NICs differ. A single pair in so many
// rounds.
inline constexpr double network_leaf_confirmed = 0.010;
inline constexpr double network_node_confirmed = 0.020;
inline constexpr std::size_t network_pair_rounds = 3;
// Robust sigmas that a single pair must lie out by, too.
inline constexpr double network_pair_sigma = 4.0;
// A pair is worth a warning without fresh data when it is this many times further out than the third worst of
// at least this many pairs: congestion makes tails in which the worst three lie close together.
inline constexpr double network_pair_alone = 3.0;
inline constexpr std::size_t network_pair_population = 24;
// Deficits of a warning and of a failure (DESIGN.md 7: NIC pairs 5 %).
inline constexpr double network_warn = 0.02;
inline constexpr double network_fail = 0.05;
// More parts than this and this share of all are one finding with members.
inline constexpr std::size_t network_split_members = 8;
inline constexpr double network_split_share = 0.04;
// From so many parts the robust predictive deviation, from so many deletion t; below, the pattern only.
inline constexpr std::size_t network_robust_population = 24;
inline constexpr std::size_t network_deletion_population = 6;
// No two parts agree better than this; keeps identical values from making any difference significant.
inline constexpr double network_spread_floor = 1e-3;
// Retests: rounds with fresh partners after the one with the same partner; repeats of single pairs; controls.
inline constexpr int network_retest_partners = 8;
inline constexpr int network_pair_repeats = 5;
inline constexpr std::size_t network_pair_batches = 2;
inline constexpr std::size_t network_pair_series = 2;
inline constexpr std::size_t network_least_controls = 8;
inline constexpr std::size_t network_most_controls = 64;
inline constexpr std::size_t network_leaf_ends = 16;
inline constexpr int network_retest_samples = 30;

// Random groups: fewest nodes and draws that tell a culprit from those beside it.
inline constexpr std::size_t collective_nodes = 8;
inline constexpr std::size_t collective_draws = 3;
// All nodes together are looked into by halves when they reach less than this share of what groups of 4 nodes
// do: busbw hardly depends on how many take part.
inline constexpr double bisection_share = 0.5;

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
              {"pair_rounds", network_pair_rounds},
              {"pair_sigma", network_pair_sigma},
              {"pair_alone", network_pair_alone},
              {"pair_population", network_pair_population},
              {"warn", network_warn},
              {"fail", network_fail},
              {"robust_population", network_robust_population},
              {"deletion_population", network_deletion_population},
              {"split_members", network_split_members},
              {"split_share", network_split_share},
              {"spread_floor", network_spread_floor},
              {"fresh_partners", network_retest_partners},
              {"pair_repeats", network_pair_repeats},
              {"pair_batches", network_pair_batches},
              {"pair_series", network_pair_series},
              {"least_controls", network_least_controls},
              {"most_controls", network_most_controls},
              {"collective_nodes", collective_nodes},
              {"collective_draws", collective_draws},
              {"bisection_share", bisection_share},
              {"leaf_ends", network_leaf_ends},
              {"confirm_samples", network_retest_samples}};
}

}  // namespace assay::verdict::constants
