// SPDX-License-Identifier: Apache-2.0
// A synthetic cluster: its parts, and how fast each of them truly is.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "results/model.hpp"
#include "simulate/draw.hpp"
#include "simulate/spec.hpp"

namespace assay::simulate {

/// Parts are counted from 0 over the whole cluster: device d of node n is n * devices_per_node + d.
class Machine {
 public:
  /// Throws Error(usage) for sizes that make no cluster, and for a fault that hits nothing.
  explicit Machine(const Spec& spec);

  const Spec& spec() const noexcept { return spec_; }
  std::vector<results::Entity> entities() const;
  std::map<std::string, results::InventoryTable> inventory() const;

  std::int64_t nodes() const noexcept { return spec_.nodes; }
  std::int64_t devices() const noexcept { return spec_.nodes * spec_.devices_per_node; }
  std::int64_t nics() const noexcept { return spec_.nodes * spec_.nics_per_node; }
  std::int64_t node_of_device(std::int64_t device) const noexcept { return device / spec_.devices_per_node; }
  std::int64_t nic_of_device(std::int64_t device) const noexcept;
  std::int64_t leaf_of_nic(std::int64_t nic) const noexcept;  ///< -1 when there are no leaves

  std::int32_t node_row(std::int64_t node) const noexcept;
  std::int32_t device_row(std::int64_t device) const noexcept;
  std::int32_t nic_row(std::int64_t nic) const noexcept;
  std::int64_t device_at(std::int32_t row) const noexcept;  ///< -1 when the row is no device
  std::int64_t nic_at(std::int32_t row) const noexcept;     ///< -1 when the row is no NIC

  std::string node_name(std::int64_t node) const;
  bool second_kind(std::int64_t node) const noexcept;  ///< of the hidden share, or of the second model

  /// log of the rate of a device relative to the typical one, with all that lasts through the run.
  double log_rate(const MetricModel& metric, std::int64_t device) const;
  /// log of the clock relative to the typical one, likewise.
  double log_clock(std::int64_t device) const;
  /// log of what faults of a duty below 1 leave of the clock in a sample.
  double log_clock_fault(std::int64_t device, std::int32_t sample, const std::string& case_name) const;
  /// log of what the faults of changing size leave of a sample: `share` of the run's time has passed.
  double log_fault(const MetricModel& metric, std::int64_t device, std::int32_t sample,
                   const std::string& case_name, double share) const;
  /// Whether any fault changes from sample to sample, for this device and metric.
  bool varies(const MetricModel& metric, std::int64_t device) const;
  /// The fault by which a sample of this device is no rate at all; null for none.
  const Fault* dead(const MetricModel& metric, std::int64_t device, std::int32_t sample) const;
  /// The same of a link, whose NICs or pair the fault names.
  const Fault* dead_link(const MetricModel& metric, std::int64_t source, std::int64_t destination,
                         std::int32_t sample) const;
  bool links_vary() const;  ///< whether a fault of the network changes from sample to sample
  /// log of what is left of a link's rate: the smaller capacity of both NICs, the leaves when it crosses, the
  /// pair.
  double log_link(const MetricModel& metric, std::int64_t source, std::int64_t destination,
                  std::int32_t sample) const;

  /// log of the capacity of a NIC, and of the links between a leaf and the others, in one direction.
  double nic_capacity(const MetricModel& metric, std::int64_t nic, bool sends, std::int32_t sample) const;
  double leaf_capacity(const MetricModel& metric, std::int64_t leaf, bool sends, std::int32_t sample) const;
  /// log of what faults of its own leave of a device in a collective; only those whose suite= names it.
  double log_in_collective(const MetricModel& metric, std::int64_t device, std::int32_t sample) const;

  /// Whether a fault of spec().faults has changed a rate drawn so far; true for faults that change no rates.
  bool acted(const Fault& fault) const;

  /// A stream for draws that differ from run to run.
  RandomStream run_stream(const std::string& name) const;

 private:
  void check_sizes() const;
  void check_faults() const;
  double effect(const Fault& fault) const;  ///< log of its factor; the fault has acted
  bool on_duty(const Fault& fault, std::uint64_t who, std::int32_t sample) const;

  Spec spec_;
  RandomStream truth_;
  mutable std::vector<bool> acted_;  ///< of every fault; rates are drawn by const members
};

}  // namespace assay::simulate
