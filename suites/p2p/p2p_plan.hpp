// SPDX-License-Identifier: Apache-2.0
// What the p2p suite plans, and the numbers that plan and run must compute alike.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "suite/suite.hpp"
#include "suites/p2p/p2p_spec.hpp"
#include "suites/p2p/schedule.hpp"
#include "suites/p2p/sweep.hpp"
#include "topology/gpu_bounds.hpp"

namespace assay::p2p {

/// k and slots: 20 where they fit in `memory_bytes` and in 512 MiB, else 10, 5, 2 or 1; slots = 0 when not
/// even one fits. With `link_rate`, link_rate_of() the case, as many more as make a batch long, up to 4 GiB
/// one way.
Shape make_shape(const Spec& spec, std::uint64_t memory_bytes, double link_rate = 0);
/// B/s one way that the fastest pair of a case between the GPUs of a node may reach; 0 where nothing is
/// known.
double link_rate_of(const Spec& spec, const Topology& topology);

/// Rounds that fit the level, and their time.
struct Timing {
  std::size_t rounds = 0;
  Lanes lanes = Lanes::all;
  double seconds = 0, min_seconds = 0, overhead_seconds = 0;
  std::size_t samples = 0;         ///< per direction and pair, at most
  std::size_t retest_samples = 0;  ///< the same where only suspects and controls are measured
  std::size_t swept = 0;           ///< rounds of a sweep before these, see sweep.hpp
  double sweep_s = 0;              ///< their part of `seconds` and `min_seconds`

  /// Rounds of equal length that take `seconds`.
  std::size_t shares() const;
};
/// Links of the case in which all pairs of nodes meet. Each is a row of /entities, and takes rank 0's
/// supervisor 1.5 kB, and 25 us when the run ends.
inline constexpr std::int64_t default_meeting_links = 200'000;
/// `all_rounds`: round_count() of the scope, which plan_cases() counts once for all specs.
Timing make_timing(const Spec& spec, const Shape& shape, const Config& config, const Topology& topology,
                   std::size_t all_rounds);
Timing make_timing(const Spec& spec, const Shape& shape, const Config& config, const Topology& topology);

/// Equal for plan and run of one case. Where many nodes are matched by draws, cases of small messages share
/// one, and those of large messages another.
RandomStream schedule_stream(std::uint64_t seed, const std::string& case_name, const Spec& spec,
                             const Topology& topology);

/// Pairs of a planned case. `all`: rails() of the topology.
Schedule schedule_of(const Spec& spec, const Topology& topology, const std::vector<Rail>& all,
                     const RandomStream& random, const Timing& timing);
Schedule schedule_of(const Spec& spec, const Topology& topology, const RandomStream& random,
                     const Timing& timing);

/// The rounds of a retest case. A pair of which a rank is missing, or with equal ends, is left out.
Schedule retest_schedule(const Spec& spec, const RetestOrder& retest, const Topology& topology,
                         const EntityTable& entities);

/// What bounds a case between GPUs; empty `by`: nothing known, as of small messages and of what hosts carry.
GpuBound bound_of(const Spec& spec, const Topology& topology);
LinkUse use_of(const Spec& spec);
inline constexpr std::size_t judged_bytes = 64 * 1024 * 1024;  ///< smaller messages do not fill a link

/// Why a topology has no cases of a scope and transport; empty where it has.
std::string why_not(Scope scope, const std::string& transport, const Topology& topology);

std::vector<Case> plan_cases(const PlanInput& input);
Shape shape_of(const Case& c);

}  // namespace assay::p2p
