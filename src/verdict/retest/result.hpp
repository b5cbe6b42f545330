// SPDX-License-Identifier: Apache-2.0
// Results of the retest cases (NAME.cK) for a suspect: among peers against controls measured in turns,
// against a bound or a reference by itself. Those of links: link_result.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "verdict/constants.hpp"
#include "verdict/population.hpp"
#include "verdict/retest/samples.hpp"

namespace assay::verdict {

struct Part;
struct Score;

/// Whether a case is a further measurement of a series, made to confirm or to clear: same name and case_key.
bool is_retest_of(const results::CaseData& c, const Series& s);

/// Blocks of the screening whose median lay beyond a bound, and the time between the first and last of them.
struct Lasting {
  void add(const SampleBlock& block, bool beyond);
  std::size_t blocks = 0, of = 0;
  double first_t = results::not_taken, last_t = results::not_taken;  ///< of the blocks beyond, seconds
  double span_s = 0;
  bool enough() const { return blocks >= constants::lasting_blocks && span_s >= constants::lasting_s; }
  /// Whether there are more of them than chance leaves in one of `parts`, where each block of a healthy part
  /// is beyond its bound with the probability `usual`.
  bool more_than(double usual, std::size_t parts) const;
};
Lasting lasting_of(const Judgement& j, const Series& s, std::int32_t entity,
                   const std::function<bool(double median)>& beyond);

/// Share of blocks in which a healthy part is `delta` or more (logarithmic) below its reference, by Jeffreys'
/// estimate: of members that are not suspects, and whose median is not as low.
double usual_share_beyond(const Judgement& j, const Population& p, double delta,
                          const std::vector<std::int32_t>& suspects);

struct RetestMember {
  std::int32_t entity = -1;
  double rate = 0, clock = 0;  ///< log of the median; log Hz or NaN
  double half = 0;             ///< relative difference of the halves of its samples
  double block_error = 0;      ///< relative standard error from its block medians; NaN for fewer than 3
  std::int64_t samples = 0;
};

/// One retest case of a population.
struct RetestCase {
  int number = 0;
  std::vector<RetestMember> members;
  double se = 0;  ///< pooled over its members
  std::int64_t blocks = 0;
  double span_s = 0;
  const RetestMember* find(std::int32_t entity) const noexcept;
};

/// The retest cases of a population, by number.
std::vector<RetestCase> retest_cases(const Judgement& j, const Population& p);

struct RetestResult {
  bool measured = false;
  bool confirmed = false;  ///< the whole one-sided interval lies beyond delta
  bool refuted =
      false;  ///< the interval reaches below the least deficit worth a warning, and lies below delta
  bool earlier_confirmed = false;         ///< the last retest refutes what an earlier one confirmed
  double deficit = 0, low = 0, high = 0;  ///< logarithmic; low and high at the level of the claim
  double se = 0;
  std::int64_t samples = 0, controls = 0;
  std::int64_t needed = 0;  ///< samples that would decide, where it is ambiguous
};

/// `suspects`: rows of /entities that are no controls. `at_clock`: hold the residual against p.delta, else
/// the rate against p.delta_raw. One-sided at alpha_confirm / candidates.
RetestResult judge_retest(const Population& p, const std::vector<RetestCase>& cases, std::int32_t entity,
                          bool at_clock, const std::vector<std::int32_t>& suspects, std::size_t candidates);

/// A control of the last retest that lost over `coarse_deficit` since the screening, and the others did not.
struct SlowControl {
  std::size_t member = 0;
  double rate = 0, deficit = 0;  ///< logarithmic
  std::int64_t samples = 0;
};
std::vector<SlowControl> slow_controls(const Population& p, const std::vector<RetestCase>& cases,
                                       const std::vector<std::int32_t>& suspects);

/// Replaces the screening's values of entities beyond a bound by those of their retest cases.
void take_retests(const Judgement& j, const Series& s, std::vector<Below>& below);

/// Result of the retest cases, or else of the blocks of the screening case, for one part.
struct RetestRate {
  bool measured = false;  ///< in a retest of the same job
  bool before = false;    ///< or in the run before
  double log_rate = 0, standard_error = 0;
  std::int64_t n = 0;
  std::vector<SampleBlock> blocks;  ///< of the screening, with logarithmic rates as medians
  /// What else than a retest confirms a rate `delta` below the reference: "blocks" (3 over 60 s, three
  /// quarters of all), "runs", or "".
  std::string lasting(double reference, double delta) const;
};
RetestRate retest_rate(const Judgement& j, const Series& s, const Part& part, const Score& score);

}  // namespace assay::verdict
