// SPDX-License-Identifier: Apache-2.0
// Pairs of nodes of a cluster that has too many to report each. Those that the schedule of a case leaves out
// exchange a few messages once. The pairs that seem slow then are measured as the scheduled ones are, and
// only these samples are stored and judged: the choice of the pairs does not bias them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "suites/p2p/schedule.hpp"
#include "topology/topology.hpp"

namespace assay::p2p {

inline constexpr std::size_t sweep_messages = 4;  ///< of a batch
inline constexpr std::size_t sweep_samples = 2;   ///< of a direction, the faster of which counts
/// A pair below this share of what both ends usually reach is measured again.
inline constexpr double suspect_share = 0.8;
inline constexpr std::size_t suspects_of_rank = 4;  ///< the slowest
inline constexpr std::size_t suspect_rounds = 8;    ///< in which all of them must fit

/// Rounds of Meetings from `first` on, between one rank of each node, the next one in the next round. Ranks
/// that no scheduled round uses are left out: nothing would be known of their ends.
class Sweep {
 public:
  /// `random`: of the schedule whose first rounds are measured.
  Sweep(const Topology& topology, const RandomStream& random, std::size_t first, std::size_t rounds);
  std::size_t rounds() const noexcept { return rounds_; }
  /// Whom `rank` meets in round `i` of the sweep; -1: nobody.
  int partner_of(std::size_t i, int rank) const;

 private:
  const Topology& topology_;
  Meetings all_;
  std::size_t first_, rounds_;
};

/// B/s from a rank to one that it met, and back; 0: not measured.
struct Met {
  int peer = -1;
  double to = 0, back = 0;
};

/// What a rank usually reaches: the medians of its rates to others and from them, and whether they are enough
/// to tell it.
struct Usual {
  double to = 0, from = 0;
  std::uint64_t met = 0;
};
Usual usual_rate(const std::vector<Met>& met);
/// By rank; ranks that met fewer than 8 have the medians of the others, or of all where all are such.
std::vector<Usual> usual_rates(const std::vector<Usual>& of_ranks);

/// A pair that seems slow in one direction: its share of the lesser of what the one end usually sends and the
/// other receives.
struct Suspect {
  Pair pair;
  double share = 0;
};
/// The slowest few of what `rank` sent to. A rank or node that is slow to all or from all is in no suspect:
/// it is slow in the scheduled rounds, too.
std::vector<Suspect> suspects_of(int rank, const std::vector<Met>& met, const std::vector<Usual>& usual);

/// Rounds in which suspects are measured, slowest first, one pair of a node in each: two would share a NIC.
/// Those that do not fit are left out.
Schedule rounds_of(std::vector<Suspect> suspects, const Topology& topology);
/// Adds pairs of the other nodes to each round, as `all` matches them. So the network carries what it does in
/// a scheduled round, and the rates of suspects have healthy ones beside them.
void fill(Schedule& rounds, const Sweep& all, const Topology& topology);

/// As JSON, and back. Error(internal) on other text.
std::string text_of(const std::vector<Suspect>& suspects);
std::string text_of(const Schedule& schedule);
std::vector<Suspect> suspects_from(const std::string& text);
Schedule schedule_from(const std::string& text);

}  // namespace assay::p2p
