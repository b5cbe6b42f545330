// SPDX-License-Identifier: Apache-2.0
// Shared by baseline and history: the compared parts, their values, and the retest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verdict/judgement.hpp"
#include "verdict/population.hpp"
#include "verdict/retest/result.hpp"
#include "verdict/snapshot.hpp"

namespace assay::verdict {

/// One part with its value of one metric. Links across nodes are drawn anew in every run, so a node is
/// represented by the upper quartile of the rates with its partners, which a slow partner cannot lower: those
/// of its model where there are any, else those of one other stratum. Links in a node are parts themselves.
struct Score {
  std::int32_t part = -1, stratum = 0;
  double log_rate = 0;
  double standard_error = 0;  ///< NaN where unknown
  std::int64_t n = 0;
  float log_clock = 0;  ///< NaN where not recorded
};

/// In an order that the file alone decides. None of collectives: they have one value per run.
std::vector<Score> scores_of(const Snapshot& run, const SnapshotSeries& series);

/// How certain a logarithmic deficit is: its interval, and whether it is a confirmed fault, a warning or
/// nothing.
struct Claim {
  double deficit = 0, low = 0, high = 0;  ///< logarithmic; 95 % interval
  bool fault = false;
  bool only_screened = false;  ///< it lasted in the screening, and the retest does not confirm it
  std::string confirmed_by;    ///< as in a finding; empty: not confirmed
  std::int64_t n = 0;
};
/// Not confirmed; without an interval where the error is NaN.
Claim claim_of(double deficit, double error, std::int64_t n);
/// `deficit` with its `error`, which needs to lie `alpha / candidates` surely beyond `delta` (logarithmic) to
/// be a fault. A fault is confirmed by the retest (`retest_deficit` with `retest_error`), by
/// blocks over a minute whatever the retest says, or by its size alone (over 20 %). At level smoke only size
/// counts.
Claim settle_claim(const Judgement& j, const Score& score, double deficit, double error, double delta,
                   const RetestRate& retest, double retest_deficit, double retest_error,
                   std::size_t candidates);

/// A finding about a part with value, reference, deficit and interval filled in; `what` names the reference.
results::Finding reference_finding(const Judgement& j, const SnapshotSeries& s, const Part& part,
                                   const Score& score, const Claim& claim, double reference_log,
                                   const std::string& kind, const std::string& what);

/// Makes a finding whose deficit the retest did not show a note.
void note_cleared(results::Finding& f, const SnapshotSeries& s, const Score& score);

/// Records in the series that these parts have a reference of this strength.
void mark_references(Judgement& j, const SnapshotSeries& s, const std::vector<const Part*>& parts,
                     Reference strength);

}  // namespace assay::verdict
