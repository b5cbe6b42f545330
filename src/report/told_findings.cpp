// SPDX-License-Identifier: Apache-2.0
#include "report/told_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace assay::report {
namespace {

struct Reference {
  std::string_view kind;
  const char* words;
};
/// The most binding first.
constexpr std::array<Reference, 5> references{{{"limit", "its limit"},
                                               {"peers", "its peers"},
                                               {"baseline", "the baseline"},
                                               {"physical", "its physical floor"},
                                               {"history", "its own history"}}};

std::size_t place_of(const results::Finding& f) {
  const auto at = std::find_if(references.begin(), references.end(),
                               [&](const Reference& r) { return r.kind == f.reference_kind; });
  return static_cast<std::size_t>(at - references.begin());
}

/// Whether the finding says by how much a part is slower than one of the references.
bool is_deficit(const results::Finding& f) {
  constexpr std::array<std::string_view, 4> kinds{"slow", "slow_at_clock", "throttled", "drift"};
  return f.severity != "INFO" && f.deficit && place_of(f) < references.size() &&
         std::find(kinds.begin(), kinds.end(), f.kind) != kinds.end();
}

/// "10.5 % behind its own history since 2026-11-24T02:00:00Z"; names the metric where the lead has another.
std::string against(const results::Finding& f, const results::Finding& lead) {
  const bool other = f.metric != lead.metric && f.metric.starts_with(f.suite + "/");
  return fmt::format("{:.1f} % behind {}{}{}", 100 * *f.deficit, references[place_of(f)].words,
                     other ? " in " + f.metric.substr(f.suite.size() + 1) : "",
                     f.since.empty() || f.since == lead.since ? "" : " since " + f.since);
}

}  // namespace

std::vector<Told> told_findings(const std::vector<results::Finding>& findings) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const results::Finding*>> stories;
  for (const auto& f : findings)
    if (is_deficit(f)) stories[{f.level, f.id.empty() ? f.name : f.id, f.suite}].push_back(&f);
  std::map<const results::Finding*, std::string> with;  // what is told with a finding
  std::set<const results::Finding*> within;             // told with another
  for (auto& [key, of] : stories) {
    std::stable_sort(of.begin(), of.end(), [](const results::Finding* a, const results::Finding* b) {
      return std::pair(a->severity != "FAIL", place_of(*a)) < std::pair(b->severity != "FAIL", place_of(*b));
    });
    const results::Finding& lead = *of.front();
    for (const auto* f : of) {
      if (f->reference_kind == lead.reference_kind) continue;  // two limits are two contracts
      std::string& text = with[&lead];
      text += (text.empty() ? "; also " : ", ") + against(*f, lead);
      within.insert(f);
    }
  }
  std::vector<Told> told;
  for (const auto& f : findings) {
    if (f.severity == "INFO" || within.contains(&f)) continue;
    std::string text = f.text;
    if (const auto at = with.find(&f); at != with.end())
      text.insert(std::min(text.find("; next:"), text.size()), at->second);
    told.push_back({&f, std::move(text)});
  }
  return told;
}

}  // namespace assay::report
