// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "suites/p2p/p2p_plan.hpp"

namespace assay::p2p {

/// Pairs of a measurement. Where no switch is known and all nodes have as many ranks, each draw has as many,
/// so that one of them is made for all measurements.
class PairCounts {
 public:
  explicit PairCounts(const Topology& topology);
  std::size_t of(const Spec& spec, const RandomStream& stream, const Timing& timing);

 private:
  std::size_t drawn(const Spec& spec, const RandomStream& stream, const Timing& timing) const;

  const Topology& topology_;
  std::vector<Rail> rails_;
  std::vector<int> leaves_;
  bool alike_ = true;
  std::map<std::tuple<bool, bool, Lanes, std::size_t>, std::size_t> known_;  ///< the first: without a NIC
};

}  // namespace assay::p2p
