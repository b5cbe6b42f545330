// SPDX-License-Identifier: Apache-2.0
// Findings about parts that differ from their peers: part, metric, deficit with its interval, n, p, since
// when, and the next step.
#pragma once

#include <string>
#include <vector>

#include "verdict/retest/result.hpp"
#include "verdict/screening.hpp"

namespace assay::verdict {

struct PeerFinding {
  const Population* population = nullptr;
  std::size_t member = 0;
  Suspect suspect;
  std::size_t metrics = 1;  ///< of the suite with this finding
  double p = 1;             ///< chance of such a part in a healthy run, adjusted
  RetestResult retest;
  std::size_t lasting_blocks = 0;  ///< blocks of the screening in which it was slower than delta
  double lasting_s = 0;            ///< seconds from the first to the last of these blocks
  bool throttle_counted = false, intermittent = false, fail = false;
  bool coarse = false;  ///< smoke lets a deficit of this size pass
};

/// Whether it is INFO.
bool is_note(const PeerFinding& f);
/// A finding about entity `row` of a population (-1: all of it) against its peers, with series, group and
/// start.
results::Finding about_peers(const Judgement& j, const Population& p, std::int32_t row,
                             const std::string& severity, const std::string& claim, const std::string& kind);
void add_peer_finding(Judgement& j, const PeerFinding& f);
/// All parts of a node are slow: one finding of the node, its parts as members.
void add_node_finding(Judgement& j, std::int32_t node, const std::vector<PeerFinding>& parts);
/// A part that was slow when it was measured again beside a suspect, and not before.
void add_control_finding(Judgement& j, const Population& p, const SlowControl& c);
/// Parts of one population that are slow together, each judged by itself: one finding with them as members.
void add_group_finding(Judgement& j, const std::vector<PeerFinding>& parts);
/// Two populations in one stratum that may both be healthy, seen in `metrics` metrics of the suite.
void add_split_finding(Judgement& j, const Population& p, std::size_t metrics);
/// Of populations without a suspect, and of few parts beside their suspects: levels of rates that are too far
/// apart for healthy parts of one model, where no side has most parts.
void judge_levels(Judgement& j, const std::vector<const Population*>& unsuspected,
                  const std::vector<Population>& beside_suspects);
/// The number with its noun: "1 metric", "2 metrics".
std::string count(std::int64_t n, const char* one, const char* many);
/// What the low side of a split has in common, as ", ..."; empty if nothing recorded explains it.
std::string in_common(const SplitFound& split);
/// The place that these parts of a population have in common and the others have not, in the same form.
std::string place_in_common(const Judgement& j, Population p, const std::vector<std::int32_t>& rows);

}  // namespace assay::verdict
