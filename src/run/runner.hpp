// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "run/case_counters.hpp"
#include "run/controller.hpp"
#include "run/planner.hpp"
#include "supervisor/worker_link.hpp"
#include "telemetry/telemetry.hpp"
#include "topology/entities.hpp"

namespace assay {

/// Seconds after which transports give up waiting in a case that is ended in order after `seconds`: not in
/// what still has time, although it was expected to take less.
double give_up_s(const Case& c, double seconds) noexcept;

/// Runs on this rank the cases that the collector hands out, and reports each to it.
class Runner {
 public:
  struct Parts : RankEnvironment {
    const Plan& plan;
    const std::vector<std::unique_ptr<Suite>>& suites;
    CaseCounters* counters;  ///< on local rank 0 of each node; null elsewhere
    Telemetry* telemetry;    ///< likewise; null without telemetry
    supervisor::WorkerLink& link;
    double run_start_s;             ///< on this rank's clock
    Injector* injector = nullptr;   ///< null in all runs without --inject
    GpuLinks* gpu_links = nullptr;  ///< null where no GPU is measured
    std::function<std::unique_ptr<PowerMeter>(double period_s)> power_meter =
        {};  ///< on local rank 0 of each node; empty elsewhere
  };
  explicit Runner(Parts parts) : parts_(parts) {}

  /// Returns when the collector has no more cases; true when the run continues with another segment.
  bool run_all();

 private:
  /// `seconds`: after which it is ended in order.
  CaseReport run_case(const Case& c, double seconds);
  CaseRecord measure(const Case& c, double seconds);
  std::string counters_after(std::vector<double> before, CaseRecord& record);
  std::string telemetry_text(CaseRecord& record);
  /// What else runs on this rank's cores, once, where they are shared: `share` of a case.
  void name_other_process(double share, CaseRecord& record);
  void tell_unreadable(const std::vector<double>& before, const std::vector<double>& after,
                       CaseRecord& record) const;

  Parts parts_;
  bool other_process_named_ = false;
  bool counters_told_ = false;  ///< whether a record lists the available counters
};

}  // namespace assay
