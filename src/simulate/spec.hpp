// SPDX-License-Identifier: Apache-2.0
// What a synthetic cluster is made of. All spreads are fractions of a rate: 0.005 is half a percent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/catalogue.hpp"
#include "simulate/fault.hpp"

namespace assay::simulate {

/// How the true rates of healthy entities are spread.
enum class Population {
  normal,
  heavy,    ///< Student t, 4 degrees of freedom
  bimodal,  ///< a hidden share of the nodes is faster; nothing recorded tells which
  models,   ///< two device models, recorded in the inventory, one slower
  // Below a common ceiling:
  capped,       ///< 70 % are at it, the others are the slow end of a normal distribution
  exponential,  ///< what each lacks is distributed exponentially
  lognormal,    ///< what each lacks is distributed log-normally (0.5)
};
/// How the samples of one entity are spread around its true rate.
enum class Noise {
  normal,
  heavy,  ///< Student t, 3 degrees of freedom, and one-sided spikes
};

struct Spec {
  std::int64_t nodes = 8, devices_per_node = 1;
  std::int64_t nics_per_node = 0;      ///< 0: one per device. Device d uses NIC d * nics / devices
  std::int64_t leaves = 0;             ///< switches that the NICs hang on; 0: unknown
  std::int64_t nodes_per_chassis = 0;  ///< recorded in the inventory; 0: unknown
  std::vector<MetricModel> metrics;

  Population population = Population::normal;
  Noise noise = Noise::normal;
  double between_cv = 0.005;  ///< of healthy entities, per metric
  double uneven =
      0;  ///< 0 to 1: a metric spreads by between_cv times a factor of its own, from 1 - uneven to 1 + uneven
  double within_cv = 0.002;  ///< of the samples of one entity
  double common = 0;         ///< log of what a sample of all devices at once loses, from 0 to this
  double run_cv = 0;         ///< of one entity from run to run
  double device_cv = 0;      ///< of what all metrics of a device have in common
  double node_cv = 0;        ///< of what all devices of a node have in common, per metric
  double clock_cv = 0;       ///< of the devices' clocks; above 0 a covariate `clock` is recorded
  double gap = 0.03;         ///< bimodal, models: how much faster the second kind is
  double share = 0.16;       ///< bimodal, models: how many nodes are of it
  double nic_cv = 0.003;     ///< of the capacity of healthy NICs
  double link_cv = 0.01;     ///< of one link from round to round
  /// Share of the samples of heavy noise, and of the rounds of links and groups, that lose an exponentially
  /// distributed part of their rate (mean spike_mean), as in a congested network or on an interrupted core.
  double spike_share = 0.05;

  std::int64_t samples = 10, blocks = 3;  ///< per entity and case
  std::int64_t rounds = 0;                ///< of pairs of nodes; 0: all up to 64 nodes, 12 beyond
  std::size_t group_draws = 4;            ///< random divisions into groups of a collective
  std::uint64_t seed = 1;                 ///< of the machine: its true rates and who is in which share
  std::uint64_t run = 0;                  ///< which run of that machine: noise and run-to-run spread
  std::string started;                    ///< ISO 8601; empty: now
  std::string level = "standard";
  std::vector<Fault> faults;
};

inline constexpr double spike_mean = 0.10;
/// Rate follows the clock with this power (log-log slope seen on power-limited GPUs).
inline constexpr double clock_slope = 0.94;

}  // namespace assay::simulate
