// SPDX-License-Identifier: Apache-2.0
// Faults of a synthetic cluster (config/fault_grammar.hpp), with the kinds and keys that make sense where no
// process runs, and selectors for parts that have no rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/fault_grammar.hpp"

namespace assay::simulate {

enum class Kind { slow, throttle, drift, slowlink, bitflip, hang, lost, missing, dead };

/// `duty` is of the samples; `target` is one of simulate::targets.
struct Fault : CommonFault {
  Kind kind = Kind::slow;
  NumberSet nics, leaves;          ///< indices; nic within its node
  std::string direction = "both";  ///< of a NIC or leaf: tx, rx or both
  std::string what = "device";     ///< missing: of simulate::parts_of_a_node
  double value = 0;                ///< dead: what is measured instead of a rate or time

  /// Device metrics of this device; false for a fault of the network.
  bool hits_device(std::int64_t node, const std::string& node_name, std::int64_t device) const;
  bool hits_metric(const std::string& suite_name, const std::string& case_name,
                   const std::string& metric_name) const;
  bool of_network() const noexcept {
    return !nics.everything() || !leaves.everything() || kind == Kind::slowlink;
  }
};

/// The kinds with their keys, and the keys with their values and defaults: what a user reads.
struct HelpRow {
  std::string name, text;
};
std::vector<HelpRow> kinds_help();
std::vector<HelpRow> keys_help();

/// Throws Error(usage) in one line naming the part that is wrong.
Fault parse_fault(const std::string& text);

}  // namespace assay::simulate
