// SPDX-License-Identifier: Apache-2.0
// What the p2p suite plans, and the numbers that plan and run must compute alike.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "suite/suite.hpp"
#include "suites/p2p/rails.hpp"
#include "suites/p2p/schedule.hpp"
#include "workload/exchange.hpp"

namespace assay::p2p {

using namespace workload;

const char* to_string(Mode mode) noexcept;
const char* to_string(Scope scope) noexcept;
Mode mode_from(const std::string& text);
Scope scope_from(const std::string& text);

/// One measurement: a mode, size, scope and series (isolated: k = 1).
struct Spec {
  Mode mode = Mode::latency;
  Scope scope = Scope::node;
  std::string transport = "mpi";  ///< ucx, nccl, cuda (peer copies by copy engines), cuda-sm (by a kernel)
  std::size_t bytes = 8;
  bool isolated = false;
  bool required = false;
  std::string nic = {};  ///< over this NIC alone, one rank a node; empty: over what the transport chooses
  std::string far = {};  ///< across rails: every second node uses this NIC instead

  /// The NIC that a node uses.
  const std::string& nic_of(int node) const {
    return far.empty() || !is_far(static_cast<std::size_t>(node)) ? nic : far;
  }
  std::string name() const;  ///< "bandwidth-uni-4194304-node-mpi", "latency-8-node-mpi-isolated"
};

/// Sizes, modes, scopes and series of a level, or of the options that override them; NICs by themselves last.
std::vector<Spec> specs(const Config& config, const Topology& topology);

/// k and slots: 20 where they fit in `memory_bytes` and in 512 MiB, else 10, 5, 2 or 1; slots = 0 when not
/// even one fits.
Shape make_shape(const Spec& spec, std::uint64_t memory_bytes);

/// Rounds that fit the level, and their time.
struct Timing {
  std::size_t rounds = 0;
  double seconds = 0, min_seconds = 0, overhead_seconds = 0;
  std::size_t samples = 0;  ///< per direction and pair, at most
};
/// `all_rounds`: round_count() of the scope, which plan_cases() counts once for all specs.
Timing make_timing(const Spec& spec, const Shape& shape, const Config& config, const Topology& topology,
                   std::size_t all_rounds);
Timing make_timing(const Spec& spec, const Shape& shape, const Config& config, const Topology& topology);

/// Equal for plan and run of one case.
RandomStream schedule_stream(std::uint64_t seed, const std::string& case_name);

/// Who talks to whom in a case that is planned. `all`: rails() of the topology.
Schedule schedule_of(const Spec& spec, const Topology& topology, const std::vector<Rail>& all,
                     const RandomStream& random, std::size_t max_rounds);
Schedule schedule_of(const Spec& spec, const Topology& topology, const RandomStream& random,
                     std::size_t max_rounds);

/// The rail of a spec that has a NIC, or both of one that has two. Throws Error(internal) when there is none.
Rail rail_of(const Spec& spec, const Topology& topology);

/// The rounds of a retest case. A pair of which a rank is missing, or that talks to itself, is left out.
Schedule retest_schedule(const Spec& spec, const RetestOrder& retest, const Topology& topology,
                         const EntityTable& entities);

std::vector<Case> plan_cases(const PlanInput& input);
Spec spec_of(const Case& c);
Shape shape_of(const Case& c);

}  // namespace assay::p2p
