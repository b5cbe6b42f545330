// SPDX-License-Identifier: Apache-2.0
// Sentences about a run that the page and the Markdown text share.
#pragma once

#include <cstddef>
#include <string>

#include "verdict/judgement.hpp"

namespace assay::report {

/// Judged values (a part in a metric) by the strongest reference that each was compared with.
struct Compared {
  std::size_t limits = 0, baseline = 0, hardware = 0, history = 0, peers = 0, nothing = 0;
  std::size_t with_something() const noexcept { return limits + baseline + hardware + history + peers; }
};
/// After judge_all. Values that are no rate are left out, as in `VerdictData::basis`.
Compared compared_of(const verdict::Judgement& j);

/// What a PASS rests on: how many values were compared with what, and how many required cases did not apply.
std::string pass_words(const verdict::Judgement& j);
/// What a level measures and what FAILs at it; empty for an unknown level.
std::string level_words(const std::string& level);
/// Which false alarms the calculated rate counts, and which it does not.
inline constexpr const char* false_alarm_scope =
    "of comparisons with peers; limits, hardware rates and earlier runs are not counted: a limit above what "
    "the "
    "hardware does fails healthy parts";
/// A group of peers with its rates in units: "simulated x5e+10" -> "simulated 50 GB/s NIC".
std::string group_words(const std::string& stratum);

}  // namespace assay::report
