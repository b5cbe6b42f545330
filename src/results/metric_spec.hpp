// SPDX-License-Identifier: Apache-2.0
// What a suite says about its metrics and cases, once. It travels in the results file, so that code
// which judges, simulates or reports a metric depends on no suite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay::results {

enum class Better { higher, lower, none };
enum class Role { metric, covariate };
/// What a metric tells of: which rules apply to it.
enum class MetricClass { other, compute, memory, link, collective, step, storage };
/// The physical bound that a rate is held against.
enum class Floor { none, memory_channels, nic_rate, own_rate, gpu_bound };
/// Whose ranks share the clock of a value: such a value is one for all of them, whichever rank stored it.
enum class SharedBy { none, node, group, world };

const char* to_string(Better b) noexcept;
const char* to_string(Role r) noexcept;
const char* to_string(MetricClass c) noexcept;
const char* to_string(Floor f) noexcept;
const char* to_string(SharedBy s) noexcept;
Better better_from(const std::string& text);             ///< throws Error(data)
Role role_from(const std::string& text);                 ///< throws Error(data)
MetricClass metric_class_from(const std::string& text);  ///< throws Error(data)
Floor floor_from(const std::string& text);               ///< throws Error(data)
SharedBy shared_by_from(const std::string& text);        ///< throws Error(data)

/// What the verdict needs to know of a metric.
struct Judging {
  MetricClass of = MetricClass::other;
  double fault_threshold = 0.03;  ///< fraction of the rate whose lack is a fault
  double weight = 1;              ///< share of the error budget, relative to other metrics
  Floor floor = Floor::none;
  SharedBy shared_by = SharedBy::none;
  bool in_step =
      false;  ///< a time that each rank takes for itself, beginning with the others sample by sample

  bool operator==(const Judging&) const = default;
  /// A threshold is a fraction, a weight a share: a file may say anything.
  bool is_sane() const noexcept {
    return fault_threshold > 0 && fault_threshold < 1 && weight > 0 && weight <= 1000;
  }
  /// A rate that follows the clock of the device.
  bool follows_clock() const noexcept { return of == MetricClass::compute || of == MetricClass::step; }
};

/// The covariate that the engine adds to the cases of hosts: share of the time in which threads of an entity
/// were ready to run that they ran.
inline constexpr const char* core_share = "core_share";
/// Kind of the event that names the busiest other process on the cores of a rank.
inline constexpr const char* core_share_event = "core-share";

/// In an array of digests: none was computed ("nodigest"). A broken device yields zeros or ones by chance.
inline constexpr std::uint64_t no_digest = 0x6e6f646967657374;

/// A metric as its suite declares it, the only time.
struct MetricSpec {
  std::string name, unit;
  Better better = Better::none;
  bool required = true;
  Role role = Role::metric;
  bool per_sample = true;
  std::string title = {};  ///< what it says, for people
  std::optional<Judging> judging = {};
  std::string operation = {};  ///< of the suite whose cases have it
  std::string cases = {};      ///< how these are called, for people: "<dtype>-n<N>"
  double typical = 0;          ///< value of a healthy part, for `assay simulate`; 0: it cannot be simulated
};

/// How a case measures.
struct CaseTraits {
  std::string operation;     ///< of its suite; empty in files of before
  bool takes_turns = false;  ///< the devices of a node are measured one after the other
  bool addresses = false;    ///< the index of a wrong value is a byte offset in memory
};

}  // namespace assay::results
