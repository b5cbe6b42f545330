// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "config/fault_spec.hpp"
#include "suite/suite.hpp"
#include "transport/faulty_communicator.hpp"

namespace assay {

/// Injects the faults of --inject on one rank. The runner brackets every case; suites and the transport call
/// it at injection points. A pure function of faults, seed and the injection points passed.
class Injector final : public MessageFaults {
 public:
  struct Location {
    int rank = 0;
    std::string node_name;
    int node = 0;            ///< index
    int device = 0;          ///< index within its node
    int entity = -1;         ///< row of its device
    double run_start_s = 0;  ///< on this rank's clock
  };
  /// Of `faults` only those that hit this location are kept. `device` outlives this object.
  Injector(const std::vector<FaultSpec>& faults, std::uint64_t seed, Location location, Device& device);

  /// Collective. Makes the faults that strike at the start of a case; throws on every rank when one of them
  /// throws on any, because a rank that leaves a case alone would hang the others.
  void begin_case(const Case& c, const std::vector<results::MetricSpec>& metrics, Communicator& world);
  /// Writes what was done during the case into the record: one event of kind `inject` per fault.
  void end_case(CaseRecord& record);

  /// At the end of a timed region of `repetitions` that began at `begin_s`, inside it. Spins or sleeps for
  /// slow and stall, and returns the factor by which the region became longer.
  double timed(double begin_s, std::uint64_t repetitions, bool warmup, std::string_view server = {});
  /// A result of `count` elements that is about to be checked; may be changed. True if it was.
  bool corrupt(std::string_view target, void* data, std::size_t count, std::size_t element_bytes);
  /// Error of this rank's clock at now_s() == `t`.
  double clock_error_s(double t) const noexcept;
  /// The part of it that grows: a constant offset is found and taken out at the start of the run.
  double clock_drift_s(double t) const noexcept;
  bool wrong_clock() const noexcept;

  bool lost(int source) override;
  double hold_back_s(int source, double seconds) override;
  void arrived(void* data, std::size_t bytes) override;

  /// Faults of this rank without effect so far, as typed; diskfull is not a rank's.
  std::vector<std::string> never_fired() const;

 private:
  struct Fault {
    FaultSpec spec;
    RandomStream random;     ///< of the fault on this rank
    RandomStream of_case;    ///< of the fault in the running case
    bool active = false;     ///< the running case is hit
    std::uint64_t seen = 0;  ///< repetitions, results or messages of the case so far
    std::uint64_t in_case = 0, total = 0;
    double spent_s = 0;
    std::string what;  ///< for the event
  };

  void fire(Fault& fault, const std::string& what);
  void strike(Fault& fault);
  bool due(const Fault& fault, std::uint64_t index) const;
  bool early(const Fault& fault) const;
  /// The rate of `slow` as it is now, between 1 and its factor.
  double factor_now(const FaultSpec& spec) const;
  std::uint64_t hits(Fault& fault, std::uint64_t repetitions, bool warmup);
  bool change(Fault& fault, void* data, std::size_t count, std::size_t element_bytes);
  std::string summary(const Fault& fault) const;

  std::vector<Fault> faults_;
  Location location_;
  Device& device_;
  std::string case_path_;
};

}  // namespace assay
