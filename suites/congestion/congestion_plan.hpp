// SPDX-License-Identifier: Apache-2.0
// Which ranks are measured and which flood the network, for how long: equal on all ranks.
#pragma once

#include <cstddef>
#include <vector>

#include "suite/suite.hpp"
#include "workload/pairs.hpp"

namespace assay::congestion {

enum class Canary { latency, bandwidth, all_reduce };
enum class Congestor { all_to_all, incast };
const char* to_string(Canary canary) noexcept;
const char* operation_of(Canary canary) noexcept;
const char* to_string(Congestor congestor) noexcept;

inline constexpr std::size_t least_nodes = 4;
inline constexpr std::size_t latency_bytes = 8, bandwidth_bytes = 128 * 1024;
inline constexpr std::size_t most_samples = 1000;  ///< part_samples at most

/// The nodes of one draw: a fifth of them, an even number and two at least, are canaries, the rest
/// congestors.
struct Roles {
  std::vector<bool> canary;  ///< by node
  workload::Round pairs;     ///< ranks of canary nodes: local rank k of one with local rank k of the other
};
Roles draw_roles(const Topology& topology, const RandomStream& random, int draw);

/// The stream that roles are drawn from.
RandomStream role_stream(std::uint64_t seed, const std::string& case_name);

struct Timing {
  int draws = 2;         ///< divisions into canaries and congestors
  double part_s = 0.25;  ///< canaries alone, and again for as long with the others
};
Timing timing_of(Level level) noexcept;
/// Parts that a draw takes on an ordinary network: canaries alone, connections, traffic, and a last exchange.
inline constexpr double draw_parts = 2.5;
/// The longest that an exchange of the traffic is to take. Only a slow network makes blocks smaller: on a
/// busy machine an exchange takes long whatever its size.
constexpr double exchange_s(double part_s) noexcept { return part_s > 1 ? part_s / 2 : 0.5; }

/// Operations that a canary times at most in each part of a draw: in all draws 2000 for a rank, less for tens
/// of thousands of ranks, but 100, which a 99th percentile needs.
std::size_t part_samples(Level level, std::size_t ranks) noexcept;

/// Bytes of the arena that a congestor needs, and what it sends to each other one.
struct Load {
  std::size_t block_bytes = 0;  ///< all-to-all: to each rank; incast: of one message
  std::size_t arena_bytes = 0;
};
Load load_of(Congestor congestor, std::size_t ranks, std::uint64_t memory_bytes) noexcept;

Canary canary_of(const Case& c);
Congestor congestor_of(const Case& c);
std::vector<Case> plan_cases(const PlanInput& input);

}  // namespace assay::congestion
