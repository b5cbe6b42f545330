// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "telemetry/counters.hpp"

namespace assay {

/// Counters of a node, read around each case of all segments of a run.
class CaseCounters {
 public:
  /// From now on, no error is lost.
  explicit CaseCounters(CounterSet set) : set_(std::move(set)), last_(set_.read()) {}

  const CounterSet& set() const noexcept { return set_; }
  /// Values at the start of a case. An error that came between two cases, or before the first, belongs to the
  /// second, or it would be lost: what counts errors has its value at the end of the case before.
  std::vector<double> before();
  /// Values at its end. There may be more of them: a counter that was not there (an Xid) was 0 before.
  const std::vector<double>& after() { return last_ = set_.read(); }

 private:
  CounterSet set_;
  std::vector<double> last_;
};

}  // namespace assay
