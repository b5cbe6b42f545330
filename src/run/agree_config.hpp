// SPDX-License-Identifier: Apache-2.0
// What the ranks of a run agree on before it is planned for good.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "config/config.hpp"
#include "run/planner.hpp"
#include "topology/launch_check.hpp"
#include "transport/communicator.hpp"

namespace assay {

/// Collective: the seed of rank 0. A run that is resumed goes on with its seed and the memory it agreed on,
/// or its plan would be another. Returns how many seconds of it have passed.
double agree_seed(Communicator& world, Config& config);

/// The least that a run is planned with, however slowly the kernel gives out memory.
constexpr std::uint64_t least_memory_bytes = std::uint64_t{64} << 20;

/// How long the memory of a plan may take to be there at smoke and quick: 40 and 20 % of the level's time, of
/// which cases need the rest. No limit at other levels.
double memory_seconds(const Config& config) noexcept;

/// What a run has whose ranks got `touched` bytes in that time: the least of them, but for ranks with less
/// than a quarter of the median, in steps of 16 MiB and at least `least_memory_bytes`.
std::uint64_t memory_in_time(std::vector<std::uint64_t> touched);

/// Collective: the memory that ranks plan with which each got `mine` in time; empty where `plan` needs no
/// more.
std::optional<std::uint64_t> agree_memory(Communicator& world, std::uint64_t mine, const Plan& plan);

struct LimitedPlan {
  Plan plan;
  LaunchFinding finding;  ///< a note, but where required cases are gone: these are not covered
};

/// `whole` planned again with `bytes` per rank. Empty where an option asks for more than that, or a fault for
/// a case that would be gone.
std::optional<LimitedPlan> limited_plan(const Config& config, const Topology& topology,
                                        const std::vector<std::unique_ptr<Suite>>& suites, const Plan& whole,
                                        std::uint64_t bytes);

}  // namespace assay
