// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "telemetry/gpu_counters.hpp"
#include "topology/topology.hpp"

namespace assay {

/// Error and traffic counters of one node (EDAC, PCIe AER, machine checks, NIC and InfiniBand ports, CPU
/// throttling, GPUs). Probed once; reading never throws.
class CounterSet {
 public:
  struct Source {
    std::string entity_kind, entity_name;  ///< of /entities: node, nic, dimm
    std::string counter;     ///< e.g. edac_ce, aer_fatal, rx_errors; "aer_fatal:0000:3b:00.0" names a part
    bool error = true;       ///< any increase is a fault or a warning; false for byte counters
    std::string path;        ///< file it is read from, the first one where several are summed
    bool saturated = false;  ///< was at its maximum from the start, where it stays until it is cleared
  };
  /// Finds what this node offers below `root` ("" = the real system). `node_name` prefixes entity names.
  static CounterSet probe(const std::string& node_name, const std::string& root = "");
  /// Adds those of the node's GPUs, which are called node/gpu0 ... by Gpu::number; null where there are none.
  /// Of the GPUs of `node` NVML shows the first; counters of the others, which only ranks of their own may
  /// see, are unsupported.
  void add_gpus(const std::string& node_name, std::shared_ptr<NvmlThread> nvml, const Node& node = {});

  const std::vector<Source>& sources() const noexcept { return sources_; }
  /// Families looked for and not offered here ("edac", "aer", "mce", "infiniband"): recorded as unsupported.
  const std::vector<std::string>& unsupported_families() const noexcept { return unsupported_; }
  /// What single parts do not offer: recorded as unsupported too.
  const std::vector<Source>& unsupported_sources() const noexcept { return unsupported_sources_; }
  /// Values in the order of sources(); NaN when a source that was there cannot be read now. May add sources
  /// at the end (an Xid that was never seen before): they were 0 until then.
  std::vector<double> read();

 private:
  /// How the value stands in its file or files.
  enum class Format { integer, total_line, interrupt_row, driver };
  struct FileReading {
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
  static double value_of(const FileReading& reading, Pass& pass);
  Source gpu_source(const GpuCounters::Counter& counter) const;
  void add(Source source, FileReading reading);
  void add_edac(const std::string& node_name, const std::string& root);
  void add_aer(const std::string& node_name, const std::string& root);
  void add_machine_checks(const std::string& node_name, const std::string& root);
  void add_throttling(const std::string& node_name, const std::string& root);
  void add_interfaces(const std::string& node_name, const std::string& root);
  void add_driver_stats(const std::string& node_name, const std::string& root);
  void add_fabric_ports(const std::string& node_name, const std::string& root);

  std::vector<Source> sources_;
  std::vector<FileReading> readings_;  ///< of the sources, in their order
  std::vector<std::string> unsupported_;
  std::vector<Source> unsupported_sources_;
  std::string node_name_;
  std::unique_ptr<GpuCounters> gpus_;  ///< its counters follow the readings among the sources
};

/// Whether a counter, the first word of one or a family can have this name, whatever this machine offers.
/// Globs are allowed.
bool names_counter(const std::string& glob);

}  // namespace assay
