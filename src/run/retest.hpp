// SPDX-License-Identifier: Apache-2.0
// The retest stage of a run: suspects of the verdict are measured again in the same job under the same
// conditions before they can fail.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "results/model.hpp"
#include "run/planner.hpp"
#include "suite/record.hpp"
#include "topology/entities.hpp"
#include "topology/topology.hpp"
#include "verdict/verdict.hpp"

namespace assay {

/// Message of rank 0's supervisor to the ranks with the number of the next case.
struct Order {
  double seconds = 0;  ///< after which it is ended in order, as the budget stands
  std::string retest;  ///< of a case that the plan does not hold, else empty
};
std::string to_text(const Order& order);
/// Throws Error(internal) when it is none.
Order order_from(const std::string& text);

/// A case that the plan does not hold, as sent to the ranks.
std::string to_text(const RetestOrder& order);
RetestOrder retest_order_from(const std::string& text);

/// The screening case of `plan` as it is measured again: the same size, mode and co-load; `alone` cases take
/// turns among the chosen devices, pairs follow the given rounds, other cases are repeated by all ranks for
/// longer. Throws Error(internal) when the plan holds no such case.
Case retest_case(const Plan& plan, RetestOrder order, const Topology& topology, const EntityTable& entities);

/// The rank that measures for a row: of a device its own, of a NIC or node the first of that node; -1 if
/// there is none.
int rank_for(int row, const Topology& topology, const EntityTable& entities);

/// Makes one row of the several that a device or link has after several visits; blocks go on counting.
void join_visits(CaseRecord& record);

/// Which cases to measure again, once everything planned has been measured.
class RetestPlanner {
 public:
  /// Judges the measured cases and returns new retests, to run now in this order, that take at most
  /// `left_s()` seconds, which is called when they are judged; none after `rounds_at_most` calls.
  std::vector<Case> ask(const results::Results& results, const verdict::Options& options, const Plan& plan,
                        const Topology& topology, const EntityTable& entities,
                        const std::function<double()>& left_s);
  static constexpr int rounds_at_most = 3;
  /// A retest that would take longer than what is left is shortened to that, down to this share.
  static constexpr double shortest_share = 1.0 / 3;

  /// "suite/case (metric)" of what is suspected in the end and was not measured again, since it would not
  /// have fitted the time that was left.
  const std::set<std::string>& left_out() const noexcept { return left_out_; }

 private:
  std::set<std::string> asked_;
  std::set<std::string> left_out_;  ///< as of the last judgement: later ones may have more time
  int rounds_ = 0;
};

}  // namespace assay
