// SPDX-License-Identifier: Apache-2.0
// One measurement of the p2p suite, and which of them are planned.
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
  std::string nic = {};   ///< over this NIC alone, one rank a node; empty: over what the transport chooses
  std::string far = {};   ///< across rails: every second node uses this NIC instead
  bool meetings = false;  ///< many nodes: as many pairs of nodes as possible meet, instead of a sample

  /// The NIC that a node uses.
  const std::string& nic_of(int node) const {
    return far.empty() || !is_far(static_cast<std::size_t>(node)) ? nic : far;
  }
  std::string name() const;  ///< "bandwidth-uni-4194304-node-mpi", "latency-8-node-mpi-isolated"
};

/// Sizes, modes, scopes and series of a level, or of the options that override them; NICs by themselves last.
std::vector<Spec> specs(const Config& config, const Topology& topology);
Spec spec_of(const Case& c);
/// Whether messages of a few bytes are measured, by their time or number.
bool moves_little(const Spec& spec);

/// The rail of a spec that has a NIC, or both of one that has two. Throws Error(internal) when there is none.
Rail rail_of(const Spec& spec, const Topology& topology);
/// `all`: rails() of the topology.
Rail rail_of(const Spec& spec, const std::vector<Rail>& all);

}  // namespace assay::p2p
