// SPDX-License-Identifier: Apache-2.0
#include "run/unfinished.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "results/case_name.hpp"
#include "run/assemble.hpp"

namespace assay {
namespace {

using results::CaseState;

bool is_unfinished(const CaseRecord& r) {
  return r.state_ == CaseState::error || r.state_ == CaseState::incomplete;
}

bool has_rows(const CaseRecord& r) { return !r.rows_.empty(); }

/// Ranks that declare the same metrics send them once: the first with rows declares those of all.
void declare(const std::vector<CaseRecord::MetricSpec>& metrics, std::vector<CaseRecord>& records) {
  const auto first = std::ranges::find_if(records, has_rows);
  if (first == records.end() || !first->metrics_.empty()) return;
  first->metrics_ = metrics;
}

std::string text_of(const std::vector<CaseRecord>& records, const EntityTable& entities) {
  const auto first = std::ranges::find_if(records, is_unfinished);
  const auto count = std::ranges::count_if(records, is_unfinished);
  const std::int32_t device = entities.device_of_rank(static_cast<int>(first - records.begin()));
  return fmt::format("{} on {}{}{}", first->state_ == CaseState::error ? "ended in error" : "is incomplete",
                     entities.name(device), count > 1 ? fmt::format(" and {} more", count - 1) : "",
                     first->reason_.empty() ? "" : ": " + first->reason_);
}

}  // namespace

std::optional<Unfinished> take_unfinished(const Case& c, std::vector<CaseRecord>& records,
                                          const EntityTable& entities) {
  const bool measured =
      std::ranges::any_of(records, [](const CaseRecord& r) { return !is_unfinished(r) && has_rows(r); });
  const bool skipped =
      std::ranges::any_of(records, [](const CaseRecord& r) { return r.state_ == CaseState::skip; });
  if (c.stage > Stage::node_local || c.retest || !measured || skipped ||
      std::ranges::none_of(records, is_unfinished))
    return std::nullopt;
  Unfinished out;
  out.text = text_of(records, entities);
  const auto metrics = std::ranges::find_if(records, has_rows)->metrics_;
  out.records.resize(records.size());
  for (std::size_t i = 0; i < records.size(); ++i)
    if (is_unfinished(records[i])) {
      out.parts.push_back(entities.name(entities.device_of_rank(static_cast<int>(i))));
      out.records[i] = std::exchange(records[i], {});
    }
  declare(metrics, records);
  declare(metrics, out.records);
  return out;
}

std::optional<results::CaseBundle> assemble_unfinished(const Case& c, Unfinished unfinished,
                                                       EntityTable& entities, const std::string& identity) {
  results::CaseBundle bundle = assemble(c, std::move(unfinished.records), entities, identity);
  if (bundle.data.entity.empty() && bundle.errors.empty() && bundle.selftest.empty()) return std::nullopt;
  bundle.data.name = results::unfinished_name(c.name);
  bundle.data.required = false;
  for (results::Miscompare& m : bundle.errors) m.case_path = bundle.data.path();
  return bundle;
}

}  // namespace assay
