// SPDX-License-Identifier: Apache-2.0
// Fail closed: what was planned and not measured is never a PASS.
#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "results/check_content.hpp"
#include "results/described.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

using results::CaseData;
using results::CaseState;

std::string because(const std::string& reason) { return reason.empty() ? std::string() : ": " + reason; }

/// Rows of the case's kind that it does not report, when it reports fewer than planned.
std::vector<std::int32_t> absent_rows(const Judgement& j, const CaseData& c) {
  std::set<std::int32_t> seen(c.entity.begin(), c.entity.end());
  std::vector<std::int32_t> absent;
  for (std::size_t i = 0; i < j.entities.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    if (j.results.entities[i].kind == c.kind && !seen.contains(row) && j.entities.takes_part(row))
      absent.push_back(row);
  }
  return absent;
}

std::string first_names(const Judgement& j, const std::vector<std::int32_t>& rows) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 3); ++i) {
    text += (i == 0 ? "" : ", ") + j.entities.name(rows[i]);
  }
  return rows.size() > 3 ? text + " and " + std::to_string(rows.size() - 3) + " more" : text;
}

/// Entities of a passed case whose required metric is empty, has no sample, or holds a measured NaN.
void check_samples(Judgement& j, const CaseData& c, bool required) {
  const bool measures = results::is_measurement(c.suite, c.stage);
  if (required && measures && c.metrics.empty() && c.arrays.empty())
    j.gap(c.path() + ": no metric was stored");
  if (required && measures && c.entity.empty()) j.gap(c.path() + ": no entity was measured");
  const std::size_t width = c.samples();
  for (const auto& m : c.metrics) {
    std::vector<std::int32_t> empty, broken;
    const auto values = m.values.held();
    for (std::size_t r = 0; r < c.entity.size(); ++r) {
      const std::size_t taken =
          r < c.count.size() ? static_cast<std::size_t>(std::max(0, c.count[r])) : width;
      std::size_t measured = 0, not_numbers = 0;
      const std::size_t n = m.per_sample ? std::min(taken, width) : 1;
      for (std::size_t s = 0; s < n; ++s) {
        const std::size_t i = m.per_sample ? r * width + s : r;
        const bool nan = i >= values.size() || std::isnan(values[i]);
        ++(nan ? not_numbers : measured);
      }
      if (measured == 0) {
        empty.push_back(c.entity[r]);
      } else if (not_numbers > 0) {
        broken.push_back(c.entity[r]);
      }
    }
    const std::string metric = c.path() + ":" + m.name;
    if (!empty.empty() && m.required && required) {
      j.gap(metric + ": no samples of " + first_names(j, empty), empty);
    }
    if (!broken.empty() && m.required) {
      j.gap(metric + ": a measured sample of " + first_names(j, broken) + " is not a number", broken);
    }
  }
}

void add_uncovered(Judgement& j, const std::string& path, const std::string& why) {
  auto f = j.about(-1, "WARN", "fact", "uncovered");
  f.suite = path.substr(0, path.find('/'));
  f.action = "MONITOR";
  f.evidence = "/cases/" + path;
  f.text = path + " skipped" + because(why);
  j.add(std::move(f), {});
}

/// One planned case with what was measured of it (null: nothing).
void account(Judgement& j, const results::PlanRow& plan, const CaseData* c) {
  auto& a = j.accounting;
  const std::string path = plan.suite + "/" + plan.name;
  const CaseState state = c == nullptr ? CaseState::incomplete : c->state;
  const std::string reason = c == nullptr ? "did not run" : c->reason;
  const bool required = plan.required || (c != nullptr && c->required);
  switch (state) {
    case CaseState::pass: ++a.passed; break;
    case CaseState::fail: ++a.failed; break;
    case CaseState::skip: ++a.skipped; break;
    case CaseState::error: ++a.error; break;
    case CaseState::incomplete: ++a.incomplete; break;
  }
  const bool measured = state == CaseState::pass || state == CaseState::fail;
  if (required && !measured) ++a.required_missing;
  if (state == CaseState::skip) {
    if (required) {
      j.gap("required case " + path + " was skipped" + because(reason));
    } else if (reason.rfind("budget", 0) != 0) {
      add_uncovered(j, path, reason);
    }
  } else if (!measured) {
    const std::string what = state == CaseState::error ? " ended in error" : " is incomplete";
    j.gap((required ? "required case " : "case ") + path + what + because(reason));
  }
  if (c == nullptr || !measured) return;
  check_samples(j, *c, required);
  if (required && plan.entities > static_cast<std::int64_t>(c->entities())) {
    const auto absent = absent_rows(j, *c);
    j.gap(path + ": " + std::to_string(c->entities()) + " of " + std::to_string(plan.entities) +
              " entities measured" + (absent.empty() ? "" : ", without " + first_names(j, absent)),
          absent);
  }
}

/// Why the run was aborted, from its event.
std::string end_reason(const results::Results& results) {
  for (const auto& e : results.events) {
    if (e.kind == "aborted") return e.text;
  }
  return {};
}

}  // namespace

void judge_accounting(Judgement& j) {
  std::unordered_map<std::string, const CaseData*> cases;
  for (const auto& c : j.results.cases) cases[c.path()] = &c;
  std::int64_t measured = 0;
  for (const auto& c : j.results.cases) {
    const bool ended = c.state == CaseState::pass || c.state == CaseState::fail;
    measured += ended && !results::is_retest(c.name) ? 1 : 0;
  }
  std::set<std::string> planned;
  for (const auto& row : j.results.plan) {
    if (row.state == "not_applicable") {
      ++j.accounting.not_applicable;
      continue;
    }
    ++j.accounting.planned;
    const auto it = cases.find(row.suite + "/" + row.name);
    planned.insert(row.suite + "/" + row.name);
    account(j, row, it == cases.end() ? nullptr : it->second);
  }
  // Cases beyond the plan (imported files) count as planned by having been run.
  for (const auto& c : j.results.cases) {
    if (planned.contains(c.path())) continue;
    if (results::is_retest(c.name)) {
      // It answers a question of the verdict's own, so it is not counted; one that broke is a gap all the
      // same.
      const bool broke = c.state == CaseState::error || c.state == CaseState::incomplete;
      if (broke) j.gap("retest case " + c.path() + " did not end" + because(c.reason), c.entity);
      continue;
    }
    ++j.accounting.planned;
    results::PlanRow row;
    row.suite = c.suite;
    row.name = c.name;
    account(j, row, &c);
  }
  for (const std::string& doubt : results::doubtful_content(j.results)) j.gap(doubt);
  if (measured == 0) j.gap("nothing was measured");
  if (j.results.info.state == "aborted") j.gap("the run ended early" + because(end_reason(j.results)));
}

}  // namespace assay::verdict
