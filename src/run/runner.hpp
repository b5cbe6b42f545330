// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "results/writer.hpp"
#include "run/planner.hpp"
#include "run/progress.hpp"
#include "topology/counters.hpp"

namespace assay {

/// Runs the cases of a plan in order on all ranks and hands every ended case to the writer on rank 0.
class Runner {
 public:
  struct Parts {
    const Config& config;
    const Topology& topology;
    const Plan& plan;
    EntityTable& entities;
    Device& device;
    Communicator& world;
    Communicator& node;
    Communicator* leaders;
    const std::vector<std::unique_ptr<Suite>>& suites;
    const CounterSet* counters;   ///< on local rank 0 of each node; null elsewhere
    results::Writer* writer;      ///< on rank 0; null elsewhere
    Progress* progress;           ///< on rank 0; null elsewhere
    double run_start_s;           ///< on this rank's clock
    Injector* injector = nullptr;  ///< null in all runs without --inject
  };
  explicit Runner(Parts parts) : parts_(parts) {}

  /// True when all was run or skipped in order; false when writing failed or a signal asked for an end (`why` says).
  bool run_all();
  const std::string& why() const noexcept { return why_; }

 private:
  std::string decide(const Case& c, double required_left_s) const;
  void run_case(const Case& c);
  void skip_case(const Case& c, const std::string& reason);
  CaseRecord measure(const Case& c, std::string& started);
  void store(const Case& c, const std::vector<std::string>& texts, const std::string& started,
             const Json& counters);
  void write(const Case& c, const std::vector<CaseRecord>& records, const std::string& started,
             const Json& counters);
  bool stored_everywhere();

  Parts parts_;
  std::string why_;
};

/// Asks for an orderly end after the running case: SIGUSR1, SIGUSR2, SIGTERM, SIGINT set it.
void install_stop_signals();
bool stop_requested() noexcept;

}  // namespace assay
