// SPDX-License-Identifier: Apache-2.0
#include "telemetry/counters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/clock.hpp"
#include "base/glob.hpp"
#include "base/system.hpp"
#include "telemetry/driver_stats.hpp"
#include "topology/entities.hpp"
#include "topology/probe_parts.hpp"
#include "topology/smbios.hpp"
#include "topology/sysfs.hpp"
#include "topology/topology.hpp"

namespace assay {
namespace {

// "TOTAL_ERR_COR 12"
double total_line(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + " ")) return sysfs::leading_number(line.substr(key.size()));
  }
  return unsupported;
}

// "MCE:          0          3   Machine check exceptions": the sum over CPUs.
double interrupt_row(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word != key + ":") continue;
    double sum = 0;
    while (words >> word && word.find_first_not_of("0123456789") == std::string::npos)
      sum += sysfs::leading_number(word);
    return sum;
  }
  return unsupported;
}

// The memory module an EDAC label means: drivers that take labels from the firmware use the slot's very name.
std::string slot_of_label(const std::vector<Dimm>& dimms, const std::string& label) {
  for (const auto& dimm : dimms) {
    if (!dimm.slot.empty() && label == dimm.slot) return dimm.slot;
  }
  return {};
}

/// A memory module of /sys/devices/system/edac, or a rank of one where the driver counts by chip select
/// (AMD).
struct EdacPart {
  std::string name;  ///< mc0/dimm2, mc0/rank2
  std::string directory;
  std::string label;  ///< empty where the driver gives none, or several parts the same
  std::string slot;   ///< of the module that the label means; empty: unknown
};

std::vector<EdacPart> edac_parts(const std::string& base, const std::vector<std::string>& controllers,
                                 const std::vector<Dimm>& dimms) {
  std::vector<EdacPart> parts;
  std::map<std::string, int> labels;
  for (const std::string& controller : controllers)
    for (const char* kind : {"dimm", "rank"})
      for (const std::string& entry : sysfs::numbered(base + "/" + controller, kind)) {
        EdacPart part;
        part.name.append(controller).append("/").append(entry);
        part.directory = base + "/" + part.name;
        part.label = sysfs::line(part.directory + "/dimm_label");
        part.slot = slot_of_label(dimms, part.label);
        ++labels[part.label];
        parts.push_back(std::move(part));
      }
  for (EdacPart& part : parts)
    if (labels[part.label] > 1) part.label.clear();
  return parts;
}

/// The kernel hands on PortCounters of the InfiniBand specification, whose fields have 4 to 32 bits and stay
/// at their maximum until they are cleared. Adapters with wider ones pass these values by.
struct PortCounter {
  const char *file, *counter;
  bool error;
  double factor, most;
};
constexpr std::array port_counters = {
    PortCounter{"port_rcv_data", "rx_bytes", false, 4, 0xffffffff},
    PortCounter{"port_xmit_data", "tx_bytes", false, 4, 0xffffffff},
    PortCounter{"port_rcv_errors", "port_rcv_errors", true, 1, 0xffff},
    PortCounter{"symbol_error", "symbol_error", true, 1, 0xffff},
    PortCounter{"link_downed", "link_downed", true, 1, 0xff},
    PortCounter{"link_error_recovery", "link_error_recovery", true, 1, 0xff},
    PortCounter{"local_link_integrity_errors", "local_link_integrity_errors", true, 1, 0xf},
};

bool worth_a_source(std::int64_t pci_class) {
  const std::int64_t base = (pci_class >> 16) & 0xff;
  return base == 0x02 || base == 0x03 || base == 0x12 || ((pci_class >> 8) & 0xffff) == 0x0108;
}

}  // namespace

void CounterSet::add(Source source, FileReading reading) {
  std::erase_if(reading.paths, [&](const std::string& path) {
    Pass pass;
    return std::isnan(value_of({reading.format, reading.key, 1, {path}}, pass));
  });
  if (reading.paths.empty()) return;
  source.path = reading.paths.front();
  sources_.push_back(std::move(source));
  readings_.push_back(std::move(reading));
}

double CounterSet::value_of(const FileReading& reading, Pass& pass) {
  double sum = 0;
  for (const std::string& path : reading.paths) {
    double value = unsupported;
    switch (reading.format) {
      case Format::integer: value = sysfs::number(path); break;
      case Format::total_line: value = total_line(read_text(path).value_or(""), reading.key); break;
      case Format::interrupt_row:
        if (pass.interrupts.empty()) pass.interrupts = read_text(path).value_or("");
        value = interrupt_row(pass.interrupts, reading.key);
        break;
      case Format::driver: {
        const auto [at, fresh] = pass.drivers.try_emplace(path);
        if (fresh) at->second = driver_stats(path);
        const auto stat = at->second.find(reading.key);
        value = stat == at->second.end() ? unsupported : stat->second;
        break;
      }
    }
    sum += value;  // one unreadable part makes the sum NaN: it would be smaller than before
  }
  return sum * reading.factor;
}

std::vector<double> CounterSet::read() {
  Pass pass;
  std::vector<double> values;
  for (const FileReading& reading : readings_) values.push_back(value_of(reading, pass));
  if (gpus_ == nullptr) return values;
  const auto of_gpus = gpus_->read();
  values.insert(values.end(), of_gpus.begin(), of_gpus.end());
  for (std::size_t i = sources_.size(); i < values.size(); ++i)
    sources_.push_back(gpu_source(gpus_->counters()[i - readings_.size()]));
  return values;
}

CounterSet::Source CounterSet::gpu_source(const GpuCounters::Counter& counter) const {
  return {"device", node_name_ + "/gpu" + std::to_string(gpus_->number(counter.gpu)), counter.name,
          counter.error, "NVML"};
}

void CounterSet::add_gpus(const std::string& node_name, std::shared_ptr<NvmlThread> nvml, const Node& node) {
  if (nvml == nullptr) {
    unsupported_.emplace_back("nvml");
    return;
  }
  node_name_ = node_name;
  gpus_ = std::make_unique<GpuCounters>(std::move(nvml));
  for (const auto& counter : gpus_->counters()) sources_.push_back(gpu_source(counter));
  for (const auto& counter : gpus_->absent()) unsupported_sources_.push_back(gpu_source(counter));
  if (gpus_->count() == 0) return;  // a driver that hangs: nothing is known
  auto names = gpu_counter_names();
  names.emplace_back("nvml_xid");
  for (int gpu = gpus_->count(); gpu < std::ssize(node.gpus.get()); ++gpu) {
    const auto at = static_cast<std::size_t>(gpu);
    if (!node.unseen_by_nvml(at)) continue;
    for (const std::string& name : names)
      unsupported_sources_.push_back({"device", node_name_ + "/" + node.gpu_name(at), name, true, "NVML"});
  }
}

void CounterSet::add_edac(const std::string& node_name, const std::string& root) {
  const std::string base = root + "/sys/devices/system/edac/mc";
  const auto controllers = sysfs::numbered(base, "mc");
  if (controllers.empty()) return;
  const std::vector<Dimm> dimms =
      parse_smbios(read_text(root + "/sys/firmware/dmi/tables/DMI").value_or("")).dimms;
  const auto parts = edac_parts(base, controllers, dimms);
  for (const auto& [file, counter] : {std::pair{"ce_count", "edac_ce"}, std::pair{"ue_count", "edac_ue"}}) {
    FileReading sum;
    for (const std::string& controller : controllers)
      sum.paths.push_back(base + "/" + controller + "/" + file);
    std::map<std::string, FileReading> slots;  // the ranks of a module have one label
    for (const EdacPart& part : parts) {
      const std::string path = part.directory + "/dimm_" + file;
      if (!part.slot.empty()) {
        slots[part.slot].paths.push_back(path);
      } else {
        const std::string name = part.label.empty() ? part.name : without_blanks(part.label);
        add({"node", node_name, std::string(counter) + ":" + name, true, path},
            {Format::integer, "", 1, {path}});
      }
    }
    for (auto& [slot, reading] : slots)
      add({"dimm", node_name + "/" + without_blanks(slot), counter, true, ""}, std::move(reading));
    add({"node", node_name, counter, true, ""}, std::move(sum));
  }
}

void CounterSet::add_aer(const std::string& node_name, const std::string& root) {
  Node ports;  // only for the PCI functions of its NICs
  probe_nics(ports, root);
  struct Level {
    const char *file, *key, *counter;
  };
  static constexpr std::array levels = {Level{"aer_dev_correctable", "TOTAL_ERR_COR", "aer_correctable"},
                                        Level{"aer_dev_nonfatal", "TOTAL_ERR_NONFATAL", "aer_nonfatal"},
                                        Level{"aer_dev_fatal", "TOTAL_ERR_FATAL", "aer_fatal"}};
  for (const Level& level : levels) {
    FileReading rest{Format::total_line, level.key, 1, {}};
    for (const std::string& address : sysfs::entries(root + "/sys/bus/pci/devices")) {
      const std::string device = root + "/sys/bus/pci/devices/" + address;
      const std::string path = device + "/" + level.file;
      const auto nic =
          std::find_if(ports.nics.begin(), ports.nics.end(), [&](const Nic& n) { return n.pci == address; });
      if (nic != ports.nics.end()) {
        add({"nic", node_name + "/" + nic->name, level.counter, true, path},
            {Format::total_line, level.key, 1, {path}});
      } else if (worth_a_source(read_integer(device + "/class").value_or(0))) {
        add({"node", node_name, std::string(level.counter) + ":" + address, true, path},
            {Format::total_line, level.key, 1, {path}});
      } else {
        rest.paths.push_back(path);  // hundreds of bridges and uncore functions on a server: one sum
      }
    }
    add({"node", node_name, level.counter, true, ""}, std::move(rest));
  }
}

// The exception is raised for what was not corrected; corrected errors come as threshold interrupts, and AMD
// announces data poisoned but not yet used as deferred ones.
void CounterSet::add_machine_checks(const std::string& node_name, const std::string& root) {
  const std::string path = root + "/proc/interrupts";
  for (const auto& [row, counter] : {std::pair{"MCE", "mce_uncorrected"}, std::pair{"THR", "mce_threshold"},
                                     std::pair{"DFR", "mce_deferred"}}) {
    add({"node", node_name, counter, true, path}, {Format::interrupt_row, row, 1, {path}});
  }
}

void CounterSet::add_throttling(const std::string& node_name, const std::string& root) {
  const std::string base = root + "/sys/devices/system/cpu";
  for (const auto& [file, counter] : {std::pair{"core_throttle_count", "throttle_core"},
                                      std::pair{"package_throttle_count", "throttle_package"}}) {
    // The threads of a core and the cores of a package show the same count: one file each.
    std::set<std::string> seen;
    FileReading sum;
    for (const std::string& cpu : sysfs::numbered(base, "cpu")) {
      const std::string directory = base + "/" + cpu;
      std::string unit = sysfs::line(directory + "/topology/physical_package_id");
      if (std::string(counter) == "throttle_core")
        unit.append(1, '/').append(sysfs::line(directory + "/topology/core_id"));
      if (seen.insert(unit).second) sum.paths.push_back(directory + "/thermal_throttle/" + file);
    }
    add({"node", node_name, counter, true, ""}, std::move(sum));
  }
}

void CounterSet::add_interfaces(const std::string& node_name, const std::string& root) {
  const std::string base = root + "/sys/class/net/";
  for (const std::string& name : sysfs::entries(base)) {
    const std::string directory = base + name;
    const std::string entity = node_name + "/" + name;
    for (const char* counter : {"rx_bytes", "tx_bytes"}) {
      const std::string path = directory + "/statistics/" + counter;
      add({"nic", entity, counter, false, path}, {Format::integer, "", 1, {path}});
    }
    if (!sysfs::exists(directory + "/device")) continue;  // loopback and virtual interfaces have no wire
    for (const char* counter : {"rx_errors", "tx_errors", "rx_crc_errors"}) {
      const std::string path = directory + "/statistics/" + counter;
      add({"nic", entity, counter, true, path}, {Format::integer, "", 1, {path}});
    }
    add({"nic", entity, "carrier_changes", true, ""},
        {Format::integer, "", 1, {directory + "/carrier_changes"}});
  }
}

// Some drivers ask their firmware for every value. What would hold up each case is unsupported.
void CounterSet::add_driver_stats(const std::string& node_name, const std::string& root) {
  constexpr double longest_s = 0.01;
  for (const std::string& name : sysfs::entries(root + "/sys/class/net/")) {
    if (!sysfs::exists(root + "/sys/class/net/" + name + "/device")) continue;
    const std::string place = root.empty() ? name : root + "/ethtool-S/" + name;
    driver_stats(place);  // the first call may wake an adapter up
    const double begin = now_s();
    const auto stats = driver_stats(place);
    const bool slow = now_s() - begin > longest_s;
    for (const auto& [stat, value] : stats) {
      const DriverStat kind = kind_of_driver_stat(stat);
      if (kind == DriverStat::other) continue;
      const bool error = kind == DriverStat::error;
      (slow ? unsupported_sources_ : sources_)
          .push_back({"nic", node_name + "/" + name, (error ? "driver_errors:" : "driver_flow:") + stat,
                      error, place});
      if (!slow) readings_.push_back({Format::driver, stat, 1, {place}});
    }
  }
}

void CounterSet::add_fabric_ports(const std::string& node_name, const std::string& root) {
  const std::string base = root + "/sys/class/infiniband/";
  for (const std::string& device : sysfs::entries(base)) {
    for (const std::string& port : sysfs::numbered(base + device + "/ports", "")) {
      const std::string directory = base + device + "/ports/" + port + "/counters/";
      const std::string entity = node_name + "/" + device + ":" + port;
      for (const PortCounter& c : port_counters) {
        Source source{"nic", entity, c.counter, c.error, directory + c.file};
        if (sysfs::number(source.path) == c.most) {
          source.saturated = true;
          unsupported_sources_.push_back(std::move(source));
        } else {
          add(std::move(source), {Format::integer, "", c.factor, {directory + c.file}});
        }
      }
    }
  }
}

CounterSet CounterSet::probe(const std::string& node_name, const std::string& root) {
  CounterSet set;
  const auto family = [&](const char* name, void (CounterSet::*add)(const std::string&, const std::string&)) {
    const std::size_t before = set.sources_.size();
    (set.*add)(node_name, root);
    if (set.sources_.size() == before) set.unsupported_.emplace_back(name);
  };
  family("edac", &CounterSet::add_edac);
  family("aer", &CounterSet::add_aer);
  family("mce", &CounterSet::add_machine_checks);
  family("thermal_throttle", &CounterSet::add_throttling);
  family("nic", &CounterSet::add_interfaces);
  family("driver", &CounterSet::add_driver_stats);
  family("infiniband", &CounterSet::add_fabric_ports);
  return set;
}

bool names_counter(const std::string& glob) {
  static const std::vector<std::string> known = [] {
    std::istringstream words(
        "edac edac_ce edac_ue aer aer_correctable aer_nonfatal aer_fatal mce mce_threshold mce_deferred "
        "mce_uncorrected thermal_throttle throttle_core throttle_package nic rx_bytes tx_bytes rx_errors "
        "tx_errors rx_crc_errors carrier_changes driver driver_errors driver_flow infiniband symbol_error "
        "port_rcv_errors link_downed link_error_recovery local_link_integrity_errors nvml xid");
    std::vector<std::string> names(std::istream_iterator<std::string>(words), {});
    std::ranges::move(gpu_counter_names(), std::back_inserter(names));
    return names;
  }();
  const std::string stem = glob.substr(0, glob.find(':'));  // what follows names a part of this machine
  return stem.starts_with("xid_") || std::ranges::any_of(known, [&](const std::string& name) {
           return glob_match(stem, name) || name.starts_with(stem + "_");
         });
}

}  // namespace assay
