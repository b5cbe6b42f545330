// SPDX-License-Identifier: Apache-2.0
#include "simulate/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "simulate/catalogue.hpp"

namespace assay::simulate {
namespace {

constexpr std::int64_t most_parts = 20'000'000;

/// What a fault of duty below 1 or of growing size does is drawn per sample.
bool is_steady(const Fault& fault) { return fault.kind != Kind::drift && fault.duty >= 1; }

/// With a deviation of 1 about; ceilings are not exactly equal.
double spread_of(Population population, const Draw& draw, std::uint64_t index) {
  constexpr double ceiling = -0.5244, unequal = 0.15, shape = 0.5, wide = 0.6039;
  const auto own = [&] { return unequal * draw.normal(index, 3); };
  switch (population) {
    case Population::heavy: return draw.heavy(index, 4);
    case Population::capped: return std::min(ceiling, draw.normal(index)) + own();
    case Population::exponential: return own() - draw.exponential(index);
    case Population::lognormal: return -std::exp(shape * draw.normal(index)) / wide;
    default: return draw.normal(index);
  }
}

double population(const Spec& spec, const RandomStream& stream, std::uint64_t index, bool second) {
  const Draw draw(stream);
  const double factor = spec.uneven > 0 ? 1 + spec.uneven * (2 * stream.child("uneven").uniform(0) - 1) : 1;
  const double spread = spread_of(spec.population, draw, index);
  const bool two = spec.population == Population::bimodal || spec.population == Population::models;
  return factor * spec.between_cv * spread + (two && second ? std::log1p(spec.gap) : 0);
}

}  // namespace

Machine::Machine(const Spec& spec)
    : spec_(spec), truth_(spec.seed, "simulate/truth"), acted_(spec.faults.size(), false) {
  if (spec_.nics_per_node == 0) spec_.nics_per_node = spec_.devices_per_node;
  check_sizes();
  check_faults();
}

void Machine::check_sizes() const {
  const auto range = [](const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most)
      throw_usage(fmt::format("--{}: {} is not between {} and {}", name, value, least, most));
  };
  range("nodes", spec_.nodes, 1, 1'000'000);
  range("devices-per-node", spec_.devices_per_node, 1, 1024);
  range("nics-per-node", spec_.nics_per_node, 1, 1024);
  range("leaves", spec_.leaves, 0, nics());
  range("chassis", spec_.nodes_per_chassis, 0, spec_.nodes);
  range("samples", spec_.samples, 1, 1000);
  range("rounds", spec_.rounds, 0, 100'000);
  range("blocks", spec_.blocks, 1, spec_.samples);
  if (nodes() + devices() + nics() > most_parts)
    throw_usage(fmt::format("--nodes: {} parts are more than {}", nodes() + devices() + nics(), most_parts));
}

void Machine::check_faults() const {
  for (const Fault& fault : spec_.faults) {
    const auto wrong = [&](const std::string& what) {
      throw_usage("--fault: '" + fault.text + "': " + what);
    };
    if (!fault.leaves.everything() && spec_.leaves == 0) wrong("there are no leaves (--leaves)");
    if (fault.kind == Kind::throttle && spec_.clock_cv <= 0) wrong("needs a recorded clock (--clock-cv)");
    if (std::max(fault.pair_source, fault.pair_destination) >= devices())
      wrong(fmt::format("there are {} ranks", devices()));
    bool node = false, device = fault.devices.everything(), nic = fault.nics.everything(),
         leaf = fault.leaves.everything(), metric = false;
    for (std::int64_t n = 0; n < nodes() && !node; ++n) node = fault.nodes.contains(n, node_name(n));
    for (std::int64_t d = 0; d < spec_.devices_per_node && !device; ++d) device = fault.devices.contains(d);
    for (std::int64_t k = 0; k < spec_.nics_per_node && !nic; ++k) nic = fault.nics.contains(k);
    for (std::int64_t l = 0; l < spec_.leaves && !leaf; ++l) leaf = fault.leaves.contains(l);
    const bool of_links = fault.of_network() || fault.pair_source >= 0;
    for (const auto& m : spec_.metrics) {
      // Collectives cross the network, and a device may hold them up; a single link does not.
      const bool concerned = m.subject == Subject::collective ? fault.pair_source < 0
                                                              : (m.subject == Subject::device) != of_links;
      metric = metric || (concerned && fault.hits_metric(m.suite, m.name, m.metric));
    }
    const bool fact = fault.kind == Kind::bitflip || fault.kind == Kind::hang || fault.kind == Kind::lost ||
                      fault.kind == Kind::missing;
    if (!node) wrong("no such node");
    if (!device) wrong("no such device");
    if (!nic) wrong("no such NIC");
    if (!leaf) wrong("no such leaf");
    if (!metric && !fact) wrong("hits no metric of --metrics");
    const auto checked_by = [&](const MetricModel& m) {
      return std::ranges::any_of(checks(), [&](const Check& check) {
        return m.suite == check.suite && fault.target == check.target;
      });
    };
    if (fault.kind == Kind::bitflip && std::ranges::none_of(spec_.metrics, checked_by))
      wrong("no suite of --metrics checks target " + fault.target);
  }
}

std::int64_t Machine::nic_of_device(std::int64_t device) const noexcept {
  const std::int64_t node = node_of_device(device), local = device % spec_.devices_per_node;
  return node * spec_.nics_per_node + local * spec_.nics_per_node / spec_.devices_per_node;
}

std::int64_t Machine::leaf_of_nic(std::int64_t nic) const noexcept {
  if (spec_.leaves == 0) return -1;
  const std::int64_t node = nic / spec_.nics_per_node, local = nic % spec_.nics_per_node;
  // Rails: NIC k of the nodes of a pod shares a leaf with its namesakes, where the leaves divide that way.
  if (spec_.leaves % spec_.nics_per_node != 0) return node * spec_.leaves / spec_.nodes;
  const std::int64_t pods = spec_.leaves / spec_.nics_per_node;
  return node * pods / spec_.nodes * spec_.nics_per_node + local;
}

std::int32_t Machine::node_row(std::int64_t node) const noexcept {
  return static_cast<std::int32_t>(1 + spec_.leaves +
                                   node * (1 + spec_.nics_per_node + spec_.devices_per_node));
}
std::int32_t Machine::nic_row(std::int64_t nic) const noexcept {
  return static_cast<std::int32_t>(node_row(nic / spec_.nics_per_node) + 1 + nic % spec_.nics_per_node);
}
std::int32_t Machine::device_row(std::int64_t device) const noexcept {
  return static_cast<std::int32_t>(node_row(node_of_device(device)) + 1 + spec_.nics_per_node +
                                   device % spec_.devices_per_node);
}
std::int64_t Machine::device_at(std::int32_t row) const noexcept {
  const std::int64_t block = 1 + spec_.nics_per_node + spec_.devices_per_node;
  const std::int64_t at = row - 1 - spec_.leaves, local = at % block - 1 - spec_.nics_per_node;
  return at < 0 || at / block >= spec_.nodes || local < 0 ? -1 : at / block * spec_.devices_per_node + local;
}
std::int64_t Machine::nic_at(std::int32_t row) const noexcept {
  const std::int64_t block = 1 + spec_.nics_per_node + spec_.devices_per_node;
  const std::int64_t at = row - 1 - spec_.leaves, local = at % block - 1;
  const bool outside = at < 0 || at / block >= spec_.nodes;
  return outside || local < 0 || local >= spec_.nics_per_node ? -1 : at / block * spec_.nics_per_node + local;
}

std::string Machine::node_name(std::int64_t node) const {
  const auto width = std::max<std::size_t>(2, std::to_string(spec_.nodes - 1).size());
  return fmt::format("sim{:0{}}", node, width);
}

bool Machine::second_kind(std::int64_t node) const noexcept {
  return truth_.child("kind").uniform(static_cast<std::uint64_t>(node)) < spec_.share;
}

RandomStream Machine::run_stream(const std::string& name) const {
  return RandomStream(mix64(spec_.seed, spec_.run), "simulate/run").child(name);
}

double Machine::effect(const Fault& fault) const {
  acted_[static_cast<std::size_t>(&fault - spec_.faults.data())] = true;
  return std::log(fault.factor);
}

bool Machine::acted(const Fault& fault) const {
  const bool of_rates = fault.kind == Kind::slow || fault.kind == Kind::throttle ||
                        fault.kind == Kind::drift || fault.kind == Kind::slowlink || fault.kind == Kind::dead;
  return !of_rates || acted_[static_cast<std::size_t>(&fault - spec_.faults.data())];
}

double Machine::log_clock(std::int64_t device) const {
  if (spec_.clock_cv <= 0) return 0;
  double log_f = spec_.clock_cv * Draw(truth_.child("clock")).normal(static_cast<std::uint64_t>(device));
  const std::int64_t node = node_of_device(device);
  for (const Fault& fault : spec_.faults)
    if (fault.kind == Kind::throttle && is_steady(fault) &&
        fault.hits_device(node, node_name(node), device % spec_.devices_per_node))
      log_f += effect(fault);
  return log_f;
}

double Machine::log_clock_fault(std::int64_t device, std::int32_t sample,
                                const std::string& case_name) const {
  const std::int64_t node = node_of_device(device);
  const auto who = mix64(static_cast<std::uint64_t>(device), hash_text(case_name));
  double log_f = 0;
  for (const Fault& fault : spec_.faults)
    if (fault.kind == Kind::throttle && !is_steady(fault) &&
        fault.hits_device(node, node_name(node), device % spec_.devices_per_node) &&
        on_duty(fault, who, sample))
      log_f += effect(fault);
  return log_f;
}

double Machine::log_rate(const MetricModel& metric, std::int64_t device) const {
  const auto index = static_cast<std::uint64_t>(device);
  const std::int64_t node = node_of_device(device);
  double y = population(spec_, truth_.child(metric.path()), index, second_kind(node));
  // What the metrics of a device have in common (its bin), and what the devices of a node have (its air, its
  // power).
  if (spec_.device_cv > 0) y += spec_.device_cv * Draw(truth_.child("device")).normal(index);
  if (spec_.node_cv > 0)
    y += spec_.node_cv * Draw(truth_.child(metric.path() + "/node")).normal(static_cast<std::uint64_t>(node));
  if (spec_.run_cv > 0) y += spec_.run_cv * Draw(run_stream(metric.path() + "/run")).normal(index);
  y += metric.clock_slope * log_clock(device);
  for (const Fault& fault : spec_.faults) {
    if (fault.kind != Kind::slow || !is_steady(fault)) continue;
    if (fault.hits_metric(metric.suite, metric.name, metric.metric) &&
        fault.hits_device(node, node_name(node), device % spec_.devices_per_node))
      y += effect(fault);
  }
  return y;
}

bool Machine::varies(const MetricModel& metric, std::int64_t device) const {
  const std::int64_t node = node_of_device(device);
  return std::any_of(spec_.faults.begin(), spec_.faults.end(), [&](const Fault& fault) {
    const bool rate = fault.kind == Kind::slow || fault.kind == Kind::drift || fault.kind == Kind::throttle;
    return rate && !is_steady(fault) && fault.hits_metric(metric.suite, metric.name, metric.metric) &&
           fault.hits_device(node, node_name(node), device % spec_.devices_per_node);
  });
}

const Fault* Machine::dead(const MetricModel& metric, std::int64_t device, std::int32_t sample) const {
  const std::int64_t node = node_of_device(device);
  for (const Fault& fault : spec_.faults)
    if (fault.kind == Kind::dead && fault.hits_metric(metric.suite, metric.name, metric.metric) &&
        fault.hits_device(node, node_name(node), device % spec_.devices_per_node) &&
        on_duty(fault, static_cast<std::uint64_t>(device), sample)) {
      effect(fault);
      return &fault;
    }
  return nullptr;
}

const Fault* Machine::dead_link(const MetricModel& metric, std::int64_t source, std::int64_t destination,
                                std::int32_t sample) const {
  const auto has = [&](const Fault& fault, std::int64_t device) {
    const std::int64_t nic = nic_of_device(device), node = node_of_device(device);
    return fault.nics.contains(nic % spec_.nics_per_node) && fault.nodes.contains(node, node_name(node));
  };
  const auto who = mix64(static_cast<std::uint64_t>(source), static_cast<std::uint64_t>(destination));
  for (const Fault& fault : spec_.faults) {
    if (fault.kind != Kind::dead || !fault.hits_metric(metric.suite, metric.name, metric.metric)) continue;
    const bool hit = fault.pair_source >= 0
                         ? fault.pair_source == source && fault.pair_destination == destination
                         : !fault.nics.everything() && (has(fault, source) || has(fault, destination));
    if (hit && on_duty(fault, who, sample)) {
      effect(fault);
      return &fault;
    }
  }
  return nullptr;
}

bool Machine::on_duty(const Fault& fault, std::uint64_t who, std::int32_t sample) const {
  if (fault.duty >= 1) return true;
  return run_stream(fault.text).uniform(mix64(who, static_cast<std::uint64_t>(sample))) < fault.duty;
}

double Machine::log_fault(const MetricModel& metric, std::int64_t device, std::int32_t sample,
                          const std::string& case_name, double share) const {
  const std::int64_t node = node_of_device(device);
  double y = metric.clock_slope * log_clock_fault(device, sample, case_name);
  for (const Fault& fault : spec_.faults) {
    const bool rate = fault.kind == Kind::slow || fault.kind == Kind::drift;
    if (!rate || is_steady(fault) || !fault.hits_metric(metric.suite, metric.name, metric.metric) ||
        !fault.hits_device(node, node_name(node), device % spec_.devices_per_node))
      continue;
    const auto who = mix64(static_cast<std::uint64_t>(device), hash_text(case_name));
    if (fault.kind == Kind::drift) {
      effect(fault);
      y += std::log(1 - (1 - fault.factor) * std::clamp(share, 0.0, 1.0));
    } else if (on_duty(fault, who, sample))
      y += effect(fault);
  }
  return y;
}

double Machine::nic_capacity(const MetricModel& metric, std::int64_t nic, bool sends,
                             std::int32_t sample) const {
  double y = spec_.nic_cv * Draw(truth_.child("nic")).normal(static_cast<std::uint64_t>(nic));
  const std::int64_t node = nic / spec_.nics_per_node;
  for (const Fault& fault : spec_.faults) {
    if (fault.kind != Kind::slow || fault.nics.everything() || fault.direction == (sends ? "rx" : "tx"))
      continue;
    if (fault.nics.contains(nic % spec_.nics_per_node) && fault.nodes.contains(node, node_name(node)) &&
        fault.hits_metric(metric.suite, metric.name, metric.metric) &&
        on_duty(fault, static_cast<std::uint64_t>(nic), sample))
      y += effect(fault);
  }
  return y;
}

double Machine::leaf_capacity(const MetricModel& metric, std::int64_t leaf, bool sends,
                              std::int32_t sample) const {
  double y = 0;
  for (const Fault& fault : spec_.faults) {
    if (fault.leaves.everything() || fault.direction == (sends ? "rx" : "tx") || !fault.leaves.contains(leaf))
      continue;
    if (fault.hits_metric(metric.suite, metric.name, metric.metric) &&
        on_duty(fault, mix64(1, static_cast<std::uint64_t>(leaf)), sample))
      y += effect(fault);
  }
  return y;
}

double Machine::log_in_collective(const MetricModel& metric, std::int64_t device, std::int32_t sample) const {
  const std::int64_t node = node_of_device(device);
  double y = 0;
  for (const Fault& fault : spec_.faults) {
    if (fault.kind != Kind::slow || fault.suite == "*" ||
        !fault.hits_metric(metric.suite, metric.name, metric.metric))
      continue;
    if (fault.hits_device(node, node_name(node), device % spec_.devices_per_node) &&
        on_duty(fault, static_cast<std::uint64_t>(device), sample))
      y += effect(fault);
  }
  return y;
}

bool Machine::links_vary() const {
  return std::any_of(spec_.faults.begin(), spec_.faults.end(), [](const Fault& fault) {
    return (fault.of_network() || fault.pair_source >= 0) && fault.duty < 1;
  });
}

double Machine::log_link(const MetricModel& metric, std::int64_t source, std::int64_t destination,
                         std::int32_t sample) const {
  const std::int64_t from = nic_of_device(source), to = nic_of_device(destination);
  double y = std::min(nic_capacity(metric, from, true, sample), nic_capacity(metric, to, false, sample));
  if (spec_.leaves > 0 && leaf_of_nic(from) != leaf_of_nic(to))
    y += std::min(leaf_capacity(metric, leaf_of_nic(from), true, sample),
                  leaf_capacity(metric, leaf_of_nic(to), false, sample));
  for (const Fault& fault : spec_.faults) {
    if (fault.kind == Kind::dead || fault.pair_source != source || fault.pair_destination != destination)
      continue;
    const auto who = mix64(static_cast<std::uint64_t>(source), static_cast<std::uint64_t>(destination));
    if (fault.hits_metric(metric.suite, metric.name, metric.metric) && on_duty(fault, who, sample))
      y += effect(fault);
  }
  return y;
}

}  // namespace assay::simulate
