// SPDX-License-Identifier: Apache-2.0
// The pairs of one series as numbers: log rates without the common effect of their round, and the switches of
// their ends.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "verdict/judgement.hpp"

namespace assay::verdict::network {

/// An index that is not -1.
constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// A device or NIC that took part.
struct End {
  std::int32_t row = -1;  ///< of /entities
  int node = -1;          ///< index into LinkSet::node_rows
  int leaf = -1;          ///< index into LinkSet::leaves; -1 if unknown or several
  int degree = 0;         ///< pairs measured
  bool shared = false;    ///< other ranks use its cores too: the scheduler decides its rate
  bool server = false;    ///< of storage: compared with other servers only
};

/// One measurement of a pair: natural logarithms of rates (higher is better), centred; NaN for a direction
/// without data.
struct Pair {
  int a = 0, b = 0;                       ///< indices of ends, a < b by row of /entities
  double ab = 0, ba = 0;                  ///< centred medians by direction
  double best_ab = 0, best_ba = 0;        ///< best samples, centred alike
  std::int32_t row_ab = -1, row_ba = -1;  ///< rows of the link entities
  std::int32_t samples = 0;
  int cls = 0;          ///< class_of its rows
  double mean() const;  ///< of the directions there are
};

/// Least deficits, of the logarithm but for `fail`.
struct Least {
  double node, pair, node_confirmed, warn, fail;
};

struct LinkSet {
  const Series* series = nullptr;
  bool inside = false;  ///< pairs inside nodes; otherwise across
  double centre = 0;    ///< median of what centring took from the log rates
  double across = 0;    ///< what links across switches lose (of the logarithm) beside those below one
  std::vector<End> ends;
  std::vector<Pair> pairs;
  std::vector<std::int32_t> node_rows;  ///< of /entities, by node index
  std::vector<std::string> leaves;      ///< switch names, by leaf index
  bool crosses(const Pair& p) const;    ///< both leaves are known and differ
  bool to_servers() const;              ///< clients of storage and its servers
  Least least() const;
  std::size_t ends_like(const End& e) const;  ///< how many it is compared with, itself included
};

/// Row of a switch in /entities, by its name with or without "switch:"; -1 when there is none.
std::int32_t switch_row(const Judgement& j, const std::string& name);

/// Switches of NICs, from /inventory/nic; by row of /entities.
class Places {
 public:
  explicit Places(const Judgement& j);
  /// Switch of a NIC, or of all NICs of a device's node where they hang on the same one; empty when unknown.
  const std::string& leaf_of(std::int32_t row) const;
  /// Row of that switch in /entities; -1 when unknown.
  std::int32_t switch_of(std::int32_t row) const;
  /// The only physical NIC of a node, -1 with several or none.
  std::int32_t only_nic(std::int32_t node) const;

 private:
  const Judgement& j_;
  std::vector<std::string> leaf_;                         ///< by row; nodes included
  mutable std::map<std::string, std::int32_t> switches_;  ///< rows of /entities by name
  std::vector<std::int32_t> only_nic_;                    ///< by row of a node: -1 none, -2 several
};

/// The pairs of a series, apart by inside and across nodes and by stratum; sets of fewer than two pairs are
/// left out.
std::vector<LinkSet> link_sets(const Judgement& j, const Places& places, const Series& series);

/// The pairs of the retest cases (.cK) of a set's series, not centred; its first ends are those of `set` in
/// their order. `rounds` gets the round of each pair (cases apart), the result is the number of those cases.
int retest_pairs(const Judgement& j, const Places& places, const LinkSet& set, LinkSet& retest,
                 std::vector<int>& rounds);

}  // namespace assay::verdict::network
