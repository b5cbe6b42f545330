// SPDX-License-Identifier: Apache-2.0
// Every measured value against what was promised.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/units.hpp"
#include "verdict/collective_groups.hpp"
#include "verdict/constants.hpp"
#include "verdict/judgement.hpp"
#include "verdict/limit_match.hpp"
#include "verdict/limits.hpp"
#include "verdict/retest/candidates.hpp"
#include "verdict/retest/result.hpp"
#include "verdict/shared_end.hpp"

namespace assay::verdict {
namespace {

/// What the findings from number `from` on say of a bound.
std::string met_of(const Judgement& j, std::size_t from) {
  std::string met = "yes";
  for (std::size_t i = from; i < j.found.size() && met != "no"; ++i) {
    const auto& severity = j.found[i].finding.severity;
    if (severity != "INFO") met = severity == "FAIL" ? "no" : "open";
  }
  return met;
}

/// One bound of a limit against one series: whether it is met, yes|open|no.
std::string judge_bound(Judgement& j, Series& s, const std::vector<SeriesRow*>& rows, double bound,
                        bool is_min, const std::string& bound_text) {
  std::vector<Below> below;
  for (const auto* row : rows) {
    const double value = LimitMatch::held(s, *row, is_min);
    if (is_min ? value >= bound : value <= bound) continue;
    // The highest reading of a counter is what it is.
    const bool exact = s.unit == "count";
    below.push_back({row, row->entity, rows_of(*row), value, bound,
                     exact && !is_min ? results::not_taken : row->claim_error, row->n, is_min, exact});
  }
  const std::size_t before = j.found.size();
  take_retests(j, s, below);
  const std::string what = std::string(is_min ? "limit min " : "limit max ") + bound_text;
  below = one_for_each_communicator(j, s, below);
  std::vector<const SeriesRow*> all(rows.begin(), rows.end());
  explain_by_ends(j, s, all, below, "limit", what);
  add_below(j, s, std::move(below), all.size(), constants::list_members + 1, "limit",
            [&](const Below&) { return what; });
  return met_of(j, before);
}

void check_unit(const Limit& limit, const Series& s, const std::string& file) {
  for (const auto* unit :
       {limit.has_min ? &limit.min_unit : nullptr, limit.has_max ? &limit.max_unit : nullptr}) {
    if (unit == nullptr || same_unit(*unit, s.unit)) continue;
    throw_usage(file + ":" + std::to_string(limit.line) + ": " + limit.full() + ": " + s.metric + " is in " +
                s.unit + ", not " + *unit);
  }
}

/// Marks rows as held against a limit, and those that keep one which names them and bounds their slow side:
/// then their owner knows how slow they are. A pattern that every part has names none.
void mark_rows(const LimitMatch& match, const Judgement& j, const Limit& limit, const Series& s,
               const std::vector<SeriesRow*>& rows) {
  for (auto* row : rows) row->reference = std::max<std::uint8_t>(row->reference, Reference::limit);
  const bool slow_side = s.better == results::Better::higher ? limit.has_min : limit.has_max;
  if (limit.device == "*" || !slow_side) return;
  std::vector<SeriesRow*> named;
  std::set<std::int32_t> nodes;
  for (auto* row : rows) {
    if (!match.names(limit, *row)) continue;
    named.push_back(row);
    nodes.insert(j.entities.node(row->source >= 0 ? row->source : row->entity));
  }
  if (named.size() == s.rows.size() && nodes.size() > 1) return;
  for (auto* row : named) {
    const bool within = (!limit.has_min || LimitMatch::held(s, *row, true) >= limit.min) &&
                        (!limit.has_max || LimitMatch::held(s, *row, false) <= limit.max);
    row->accepted = row->accepted || within;
  }
}

}  // namespace

MetBounds judge_bounds(Judgement& j) {
  MetBounds met;
  const auto& o = j.options;
  if (o.limits_text.empty() && o.limits_name.empty()) return met;
  const std::string file = o.limits_name.empty() ? "limits" : o.limits_name;
  const LimitMatch match(j);
  const auto limits = parse_limits(o.limits_text, o.limits_name);
  for (std::size_t l = 0; l < limits.size(); ++l) {
    const Limit& limit = limits[l];
    std::size_t judged = 0;
    for (std::size_t i = 0; i < j.series.size(); ++i) {
      Series& s = j.series[i];
      if (!match.series(limit, s)) continue;
      check_unit(limit, s, file);
      std::vector<SeriesRow*> rows;
      for (auto& row : s.rows) {
        if (match.row(limit, row)) rows.push_back(&row);
      }
      judged += rows.size();
      mark_rows(match, j, limit, s, rows);
      if (limit.has_min) met[{l, i, true}] = judge_bound(j, s, rows, limit.min, true, limit.min_text);
      if (limit.has_max) met[{l, i, false}] = judge_bound(j, s, rows, limit.max, false, limit.max_text);
      // A promised metric without samples is absent, not zero and not good.
      std::set<std::int32_t> silent(s.first->entity.begin(), s.first->entity.end());
      for (const auto& row : s.rows) silent.erase(row.entity);
      if (!silent.empty() && limit.device == "*") {
        j.gap("limit " + limit.full() + " (" + file + ":" + std::to_string(limit.line) + "): no samples of " +
                  j.entities.name(*silent.begin()) +
                  (silent.size() > 1 ? " and " + std::to_string(silent.size() - 1) + " more" : ""),
              {silent.begin(), silent.end()});
      }
    }
    if (judged == 0) {
      j.gap("limit " + limit.full() + " (" + file + ":" + std::to_string(limit.line) +
            ") matches no measurement" + (limit.device == "*" ? "" : " on " + limit.device));
    }
  }
  return met;
}

void judge_limits(Judgement& j) { judge_bounds(j); }

void suspect_by_limits(Judgement& j) {
  try {
    judge_limits(j);
  } catch (const Error&) {
    j.found.clear();
  }
}

}  // namespace assay::verdict
