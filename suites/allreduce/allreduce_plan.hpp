// SPDX-License-Identifier: Apache-2.0
// What the allreduce suite plans, and the numbers that plan and run must compute alike.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "suite/suite.hpp"
#include "topology/gpu_bounds.hpp"
#include "workload/collective.hpp"

namespace assay::allreduce {

using namespace workload;

enum class Scope { node, leader, groups, rails, world };
inline constexpr Scope all_scopes[] = {Scope::node, Scope::leader, Scope::groups, Scope::rails, Scope::world};
/// How buffers lie and operations start. `plain`: input and output apart, known to nobody beforehand, started
/// by the host one by one. The others change one thing each.
enum class Variant { plain, in_place, registered, symmetric, graph };
inline constexpr Variant all_variants[] = {Variant::plain, Variant::in_place, Variant::registered,
                                           Variant::symmetric, Variant::graph};
/// "plain", "in-place", "registered", "symmetric", "graph"
const char* to_string(Variant variant) noexcept;
Variant variant_from(const std::string& text);

/// "allreduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast"
const char* to_string(Op operation) noexcept;
Op operation_from(const std::string& text);
const char* to_string(Scope scope) noexcept;
Scope scope_from(const std::string& text);

struct Spec {
  Op operation = Op::all_reduce;
  Scope scope = Scope::world;
  std::size_t bytes = 8;
  std::string transport = "mpi";  ///< or "nccl"
  bool isolated = false;
  bool required = false;
  Variant variant = Variant::plain;
  std::string name() const;  ///< "allreduce-world-1048576-mpi", "...-graph", "...-isolated"
};

std::vector<Spec> specs(const Config& config, const Topology& topology);

/// Ranks of the largest communicator of a scope.
int scope_ranks(Scope scope, const Topology& topology);

/// Samples of a rank in each of `draws` divisions, at most: 100, or 500 of single operations; 1000 in all,
/// less for tens of thousands of ranks, but 20.
std::size_t series_samples(bool isolated, int draws, std::size_t ranks) noexcept;

/// What bounds the busbw of a case on GPUs; empty `by`: nothing known, as of small vectors and drawn groups.
GpuBound bound_of(const Spec& spec, const Topology& topology);
inline constexpr std::size_t judged_bytes = 256 * 1024 * 1024;  ///< smaller vectors do not fill the links

std::vector<Case> plan_cases(const PlanInput& input);
Spec spec_of(const Case& c);

}  // namespace assay::allreduce
