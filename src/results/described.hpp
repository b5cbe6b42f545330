// SPDX-License-Identifier: Apache-2.0
// What metrics, cases and plan rows say of themselves; what files before schema 1.3 leave out is filled in
// here and nowhere else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay::results {

/// The stage whose cases describe the machine and time nothing. Findings about /inventory say it as their
/// suite.
inline constexpr const char* inventory_stage = "inventory";
/// The hidden suite that fails, skips and throws on purpose: it tells of the program, not of the machine.
inline constexpr const char* selftest_suite = "selftest";
/// Whether the cases of a suite in a stage measure the machine.
bool is_measurement(const std::string& suite, const std::string& stage) noexcept;

Judging judging_of(const CaseData& c, const Metric& m);
CaseTraits traits_of(const CaseData& c);
/// The checkers whose self-test a planned case needs. Declared is false for one that should have named some
/// and did not.
struct Checkers {
  bool declared = true;
  std::vector<std::string> names;
};
Checkers checkers_of(const PlanRow& row);
/// An event about a lost rank.
struct Loss {
  std::string kind;      ///< lost or hang
  bool earlier = false;  ///< in an earlier launch of the run, whose results this one took over
};
std::optional<Loss> loss_of(const EventRow& event);
/// Marks an event about a lost rank, or its stack, as one of an earlier launch; false for other events.
bool mark_earlier(EventRow& event);
/// The kind of an event that tells what of a partial directory could not be read.
inline constexpr const char* damage_event = "damaged";
/// Whether there was some: it stays for inspection.
bool has_damage(const std::vector<EventRow>& events);
/// Gives launch events of files before schema 1.3 their finding, and events of earlier launches their kind:
/// both were the first words of the text.
void complete_launch_events(std::vector<EventRow>& events);

}  // namespace assay::results
