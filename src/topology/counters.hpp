// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace assay {

/// Error and traffic counters of one node (EDAC, PCIe AER, machine checks, NIC and InfiniBand ports, CPU
/// throttling). Probed once; reading never throws.
class CounterSet {
 public:
  struct Source {
    std::string entity_kind, entity_name;  ///< of /entities: node, nic, dimm
    std::string counter;  ///< e.g. edac_ce, aer_fatal, rx_errors; "aer_fatal:0000:3b:00.0" names a part
    bool error = true;    ///< any increase is a fault or a warning; false for byte counters
    std::string path;     ///< file it is read from, the first one where several are summed
  };
  /// Finds what this node offers below `root` ("" = the real system). `node_name` prefixes entity names.
  static CounterSet probe(const std::string& node_name, const std::string& root = "");

  const std::vector<Source>& sources() const noexcept { return sources_; }
  /// Families looked for and not offered here ("edac", "aer", "mce", "infiniband"): recorded as unsupported.
  const std::vector<std::string>& unsupported_families() const noexcept { return unsupported_; }
  /// Values in the order of sources(); NaN when a source that was there cannot be read now.
  std::vector<double> read() const;

 private:
  /// How the value stands in its file or files.
  enum class Format { integer, total_line, interrupt_row, driver };
  struct Reading {
    Format format = Format::integer;
    std::string key;                 ///< of the line: TOTAL_ERR_FATAL, MCE; of the driver's counter
    double factor = 1;               ///< InfiniBand counts data in words of four bytes
    std::vector<std::string> paths;  ///< summed; of a driver the interface, or the file that stands for it
  };
  /// What is composed anew each time it is read, and holds many counters: once per pass is enough.
  struct Pass {
    std::string interrupts;
    std::map<std::string, std::map<std::string, double>> drivers;  ///< by place
  };
  static double value_of(const Reading& reading, Pass& pass);
  void add(Source source, Reading reading);
  void add_edac(const std::string& node_name, const std::string& root);
  void add_aer(const std::string& node_name, const std::string& root);
  void add_machine_checks(const std::string& node_name, const std::string& root);
  void add_throttling(const std::string& node_name, const std::string& root);
  void add_interfaces(const std::string& node_name, const std::string& root);
  void add_driver_stats(const std::string& node_name, const std::string& root);
  void add_fabric_ports(const std::string& node_name, const std::string& root);

  std::vector<Source> sources_;
  std::vector<Reading> readings_;  ///< of the sources, in their order
  std::vector<std::string> unsupported_;
};

}  // namespace assay
