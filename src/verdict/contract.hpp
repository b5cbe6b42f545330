// SPDX-License-Identifier: Apache-2.0
// The bounds of a contract and the measured values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "verdict/judgement.hpp"

namespace assay::verdict {

/// One bound of one [[limit]] against one metric.
struct ContractRow {
  std::string promised, where;  ///< "min 20 GFLOP/s", "limits.toml:3"
  std::string metric, unit;     ///< suite/case:metric; empty if the limit matches no measurement
  double bound = 0, median = results::not_taken, low = results::not_taken,
         high = results::not_taken;  ///< over parts, with its 95 % interval
  std::size_t parts = 0, beyond = 0;
  std::string worst;  ///< name of the part with the least margin
  double worst_value = results::not_taken;
  double margin =
      results::not_taken;  ///< of the worst part, as a fraction of the rate: below 0 is beyond the bound
  std::string met;         ///< yes|no|open|absent
  bool is_min = false;     ///< a lower bound, else an upper one
  bool of_all = true;      ///< the limit names no device
};

/// By margin, the least first; those that match nothing before all. Empty without limits.
std::vector<ContractRow> contract_of(const Judgement& j);

/// The sensitivity of a metric.
struct Sensitivity {
  std::string metric, unit, stratum, basis;  ///< strongest reference of its parts
  std::size_t parts = 0;
  std::int64_t samples = 0;            ///< least of a part
  double spread = results::not_taken;  ///< between parts, robust, a fraction of the rate
  double error = results::not_taken;   ///< standard error of a part's median, likewise
  double delta = results::not_taken;   ///< the least deficit that is called a fault
  /// A part slower by this fraction in this metric alone is named, WARN or FAIL, in 95 % of runs
  /// (tests/operating: Operating.WhatIsCalledVisibleIsSeen, for populations); NaN: no such fraction is known,
  /// as against a limit or a floor that parts lie above by any margin.
  double visible = results::not_taken;
};

/// Per judged metric and stratum, the least visible first. Where there is a population it is that of its
/// peers; for links and collectives, and with too few parts, of one part against a fixed reference.
std::vector<Sensitivity> sensitivity_of(const Judgement& j);

}  // namespace assay::verdict
