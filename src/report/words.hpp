// SPDX-License-Identifier: Apache-2.0
// Sentences about a run that the page and the Markdown text share.
#pragma once

#include <cstddef>
#include <string>

#include "results/model.hpp"
#include "verdict/judgement.hpp"

namespace assay::report {

/// What a PASS rests on: how many values were compared with what, and how many required cases did not apply.
std::string pass_words(const verdict::Judgement& j);
/// What a level measures and what FAILs at it; empty for an unknown level.
std::string level_words(const std::string& level);
/// What confirms a finding; empty where it is not confirmed or an earlier version did not store it.
std::string confirmation_words(const results::Finding& f);
/// Which false alarms the calculated rate counts, and which it does not.
inline constexpr const char* false_alarm_scope =
    "of comparisons with peers; limits, hardware rates and earlier runs are not counted: a limit above what "
    "the "
    "hardware does fails healthy parts";
/// A group of peers with its rates in units: "simulated x5e+10" -> "simulated 50 GB/s NIC".
std::string group_words(const std::string& stratum);

}  // namespace assay::report
