// SPDX-License-Identifier: Apache-2.0
// Pairs on a synthetic network: rounds of disjoint pairs of devices of different nodes.
#pragma once

#include "simulate/cases.hpp"

namespace assay::simulate {

/// `rounds`, or else `Spec::rounds`, rounds of one tournament. Without either all pairs of nodes once up to
/// `full_nodes`; beyond, `sampled_rounds` rounds of one tournament of randomly renamed nodes, and
/// `near_rounds` rounds of pairs that share a leaf where there are leaves (between neighbours otherwise).
/// Device k of a node meets device k of the other, or NIC k the other's where nodes have several NICs; both
/// directions of a pair are in the same round.
inline constexpr std::int64_t full_nodes = 64;
inline constexpr std::size_t sampled_rounds = 8, near_rounds = 4;

/// `case_name` selects the random order. Rows are of /entities; empty for one node. Throws nothing.
/// `more`: rounds of pairs of nodes after these.
Rounds cross_rounds(const Machine& machine, const std::string& case_name, std::int64_t rounds = 0,
                    const std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>>& more = {});

}  // namespace assay::simulate
