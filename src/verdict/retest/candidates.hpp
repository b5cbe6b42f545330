// SPDX-License-Identifier: Apache-2.0
// Which suspects of a screening are measured again: one function of each rule.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "verdict/retest/retest.hpp"
#include "verdict/screening.hpp"

namespace assay::verdict {

/// The retest `number` of a case, without candidates; and the one with the next free number.
Retest retest_of(const std::string& suite, const std::string& name, const std::string& metric, int number);
Retest next_retest(const Judgement& j, const std::string& suite, const std::string& name,
                   const std::string& metric);
/// By what a part is to be named where several metrics of a suite name it: the metric in which it is worst
/// against what that may be short of.
double rank_of(const Screening& screening, const Suspect& s);
/// Rows of /entities of the suspects of a population.
std::vector<std::int32_t> suspected_rows(const Screening& screening, std::size_t population);
/// Candidates to be measured again.
struct Candidates {
  /// The worst of each entity and suite, the worst of all first, not more than can be measured. So many share
  /// the error of the retest.
  std::vector<const Suspect*> named;
  /// Where the retest refuted that: the others of the part, those that only warn, too. With those of `named`
  /// that are not refuted, not more than can be measured: the next candidate of each part first, warnings
  /// last.
  std::vector<const Suspect*> beside;
};
Candidates candidates_of(const Judgement& j, const Screening& screening);
/// Splits into sides that may both be healthy; with nearly the same members in several metrics of a suite
/// they are one: indices of the populations, the one to be named first (explained before others, then the
/// worst against what it may be short of).
std::vector<std::vector<std::size_t>> split_stories(const Screening& screening);
/// judge_limits for the retest stage: a limit in the wrong unit gives no error here; the verdict reports it.
void suspect_by_limits(Judgement& j);

// What each rule asks for. All need collect_series; none for suspects that were measured again.
/// Peers: the worst of each population with its controls.
std::vector<Retest> population_retests(const Judgement& j);
/// Links: units before single pairs (links.cpp).
struct NetworkRetests {
  std::vector<Retest> asked;
  /// Ends of links that a retest of any case has shown to be slow: rows of /entities.
  std::set<std::int32_t> slow_ends;
};
NetworkRetests network_retests(const Judgement& j);
/// Limits, physical floors, baseline and history: candidates among the parts below them, controls from the
/// others (none when there are no others); of links those below, in rounds of disjoint pairs. A link of which
/// an end is in `slow_ends` is not measured again: what was seen of that end explains it.
std::vector<Retest> reference_retests(const Judgement& j, const NetworkRetests& network);
/// Digests without a majority: the case again on those that disagree (../digests.cpp).
std::vector<Retest> digest_retests(const Judgement& j);
/// Collectives over groups: suspects in new groups (../collectives.cpp).
std::vector<Retest> collective_retests(const Judgement& j);
/// A slow collective of all nodes: its halves, quarters, ... (../bisection.cpp).
std::vector<Retest> bisection_retests(const Judgement& j);
/// Ranks slower than the others of their operation: the case with most samples (../in_step.cpp).
std::vector<Retest> in_step_retests(const Judgement& j);

}  // namespace assay::verdict
