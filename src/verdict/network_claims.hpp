// SPDX-License-Identifier: Apache-2.0
// From suspects of single series to claims about parts of the machine.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "verdict/retest/link_result.hpp"

namespace assay::verdict::network {

/// A part of the machine, the same in all series.
struct NetworkPart {
  PartKind place = PartKind::end;
  bool inside = false;
  bool storage = false;     ///< as a client or server of storage
  std::int32_t row = -1;    ///< of the node, end, or the link whose direction is slow; -1 for a leaf
  std::int32_t other = -1;  ///< pairs: the other direction's row, if it is slow too
  std::string leaf;
  friend auto operator<=>(const NetworkPart&, const NetworkPart&) = default;
};
/// An end that is the only one of its node counts as the node, unless it is a NIC.
NetworkPart part_of(const Judgement& j, const LinkSet& set, const SlowPlace& s);

/// By set: the suspects that are measured again in that set's series. Each part in the series that shows it
/// best, single pairs in the two series of the longest messages.
std::vector<std::vector<const SlowPlace*>> assign(const Judgement& j, const std::vector<Screened>& screened);

/// The claim about a part, from the series with the most evidence.
struct Claim {
  NetworkPart part;
  const Screened* screened = nullptr;
  const SlowPlace* suspect = nullptr;
  RetestResult result;
  bool cleared = false;             ///< measured again and not slower, or too little
  bool lacks_core = false;          ///< of those, slower, but on cores that it shares
  int severity = 0;                 ///< 0 nothing, 1 INFO, 2 WARN, 3 FAIL
  std::vector<std::string> series;  ///< in which it was suspect
  std::size_t gross = 0;            ///< of these, how many by `network_gross_deficit`
};
std::vector<Claim> claims_of(const Judgement& j, const Places& places, const std::vector<Screened>& screened);

}  // namespace assay::verdict::network
