// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "run/run_file.hpp"
#include "suite/record.hpp"

namespace assay {

/// The records of the running case on rank 0's supervisor. Each is decoded when it arrives, while other ranks
/// still measure, and its text is not kept. What ranks declare in common is kept once.
class Arrivals {
 public:
  /// Throws Error(internal) for a text that is no CaseReport.
  void take(int rank, const std::string& report);
  /// The error in the record of a rank; empty without one.
  std::string complaint(int rank) const;

  struct Ended {
    std::vector<CaseRecord> records;                ///< by place; of a lost rank an empty one
    std::vector<std::vector<std::string>> unfired;  ///< by place: injected faults without effect so far
    NodeNews news;
    bool any = false, all = true;
  };
  /// What arrived of those of `ranks` that are among `members`, both ascending. Forgets all.
  Ended end(const std::vector<int>& ranks, const std::vector<int>& members);

 private:
  struct Arrival {
    CaseRecord record;
    std::string counters, telemetry;
    std::vector<std::string> unfired;
    bool shares_metrics = false;
  };
  std::map<int, Arrival> arrived_;
  std::vector<CaseRecord::MetricSpec> metrics_;  ///< of the first that declared any
};

}  // namespace assay
