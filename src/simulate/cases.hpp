// SPDX-License-Identifier: Apache-2.0
// Synthetic measurements: the samples that a run would have stored.
#pragma once

#include <string>
#include <vector>

#include "results/model.hpp"
#include "simulate/machine.hpp"
#include "verdict/retest/retest.hpp"

namespace assay::simulate {

/// When and how a case is measured.
struct CaseSchedule {
  std::string name;      ///< of the case: with .cK when it confirms
  double start_s = 0;    ///< since run start
  double planned_s = 0;  ///< the whole run; a drift grows until then
  std::int64_t samples = 10, blocks = 3;
  bool retest = false;       ///< entities take turns in every block, so that it lasts longer
  std::string variant = {};  ///< of a retest case: "halves" divides a collective of all nodes
};

/// Seconds between the samples of one entity: of a screening case, and of a retest with its turns.
inline constexpr double sample_s = 0.1, retest_sample_s = 0.5;

/// Directed pairs of devices, in rounds of disjoint ones.
using Rounds = std::vector<std::vector<verdict::LinkEnds>>;

/// The samples of `metric` on the devices in `rows` (rows of /entities).
results::CaseData measure_devices(const Machine& machine, const MetricModel& metric,
                                  const std::vector<std::int32_t>& rows, const CaseSchedule& schedule);

/// The samples of the links of `rounds`, both ends being devices or NICs. A link that comes in several rounds
/// has one row. Links that /entities does not hold yet are appended to `entities`.
results::CaseData measure_links(const Machine& machine, const MetricModel& metric, const Rounds& rounds,
                                const CaseSchedule& schedule, std::vector<results::Entity>& entities);

/// A collective of all devices (stage `world`), or of random groups of four nodes in Spec::group_draws draws
/// (stage `groups`, with the covariate `group`; with the parameter `rails` = R of every R-th device of a node
/// by itself): as fast as its slowest NIC, leaf or node.
inline constexpr std::size_t group_nodes = 4;
results::CaseData measure_collective(const Machine& machine, const MetricModel& metric,
                                     const CaseSchedule& schedule);

/// The case as planned, without samples: names, key, stage, parameters.
results::CaseData case_of(const MetricModel& metric, const CaseSchedule& schedule);

}  // namespace assay::simulate
