// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace assay {

/// Error and traffic counters of one node (EDAC, PCIe AER, machine checks, NIC and InfiniBand ports, CPU throttling).
/// Probed once; reading never throws.
class CounterSet {
 public:
  struct Source {
    std::string entity_kind, entity_name;  ///< of /entities: node, nic, dimm
    std::string counter;                   ///< e.g. edac_ce, aer_fatal, rx_errors
    bool error = true;                     ///< any increase is a fault or a warning; false for byte counters
    std::string path;                      ///< file it is read from
  };
  /// Finds what this node offers below `root` ("" = the real system). `node_name` prefixes entity names.
  static CounterSet probe(const std::string& node_name, const std::string& root = "");

  const std::vector<Source>& sources() const noexcept { return sources_; }
  /// Families looked for and not offered here ("edac", "aer", "mce", "infiniband"): recorded as unsupported.
  const std::vector<std::string>& unsupported_families() const noexcept { return unsupported_; }
  /// Values in the order of sources(); NaN when a source that was there cannot be read now.
  std::vector<double> read() const;

 private:
  std::vector<Source> sources_;
  std::vector<std::string> unsupported_;
};

}  // namespace assay
