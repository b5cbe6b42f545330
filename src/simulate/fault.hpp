// SPDX-License-Identifier: Apache-2.0
// Faults of a synthetic cluster: the grammar of `run --inject`, kind[:key=value{,key=value}], with the kinds
// and keys that make sense where no process runs, and selectors for parts that have no rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/fault_spec.hpp"

namespace assay::simulate {

enum class Kind { slow, throttle, drift, slowlink, bitflip, hang, lost, missing, dead };

struct Fault {
  Kind kind = Kind::slow;
  std::string text;  ///< as typed

  std::vector<std::string> nodes;   ///< indices, ranges or globs on names; empty = all
  NumberSet devices, nics, leaves;  ///< indices; device and nic within their node
  bool has_device = false, has_nic = false, has_leaf = false;
  std::string suite = "*", case_glob = "*", metric = "*";
  std::int64_t pair_source = -1, pair_destination = -1;  ///< ranks
  std::string direction = "both";                        ///< of a NIC or leaf: tx, rx or both
  std::string target;                                    ///< bitflip: of simulate::targets
  std::string what = "device";                           ///< missing: of simulate::parts_of_a_node

  double factor = 0.5;  ///< rate multiplier in (0, 1)
  double duty = 1.0;    ///< fraction of the samples that are hit
  double value = 0;     ///< dead: what is measured instead of a rate or time

  bool hits_node(std::int64_t index, const std::string& name) const;
  /// Device metrics of this device; false for a fault of the network.
  bool hits_device(std::int64_t node, const std::string& node_name, std::int64_t device) const;
  bool hits_metric(const std::string& suite_name, const std::string& case_name,
                   const std::string& metric_name) const;
  bool of_network() const noexcept { return has_nic || has_leaf || kind == Kind::slowlink; }
};

/// Throws Error(usage) in one line naming the part that is wrong.
Fault parse_fault(const std::string& text);

}  // namespace assay::simulate
