// SPDX-License-Identifier: Apache-2.0
// Fail closed: what was planned and not measured is never a PASS.
#include <algorithm>
#include <cmath>
#include <map>
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

/// Links that other cases of the suite report and this one lacks, between parts as those of its own links: a
/// case between nodes has none inside a node, one between NICs none between devices.
std::vector<std::int32_t> absent_links(const Judgement& j, const CaseData& c) {
  const auto scope = [&](const CaseData& of, std::size_t i) {
    const auto source = of.source[i], destination = of.destination[i];
    return std::pair(j.entities.kind(source), j.entities.node(source) == j.entities.node(destination));
  };
  const auto ends_known = [&](const CaseData& of, std::size_t i) {
    return i < of.source.size() && i < of.destination.size() && j.entities.valid(of.source[i]) &&
           j.entities.valid(of.destination[i]);
  };
  const std::set<std::int32_t> seen(c.entity.begin(), c.entity.end());
  std::set<std::pair<std::string, bool>> own;
  for (std::size_t i = 0; i < c.entity.size(); ++i)
    if (ends_known(c, i)) own.insert(scope(c, i));
  std::set<std::int32_t> absent;
  for (const CaseData& other : j.results.cases) {
    if (other.suite != c.suite || other.kind != c.kind) continue;
    for (std::size_t i = 0; i < other.entity.size(); ++i)
      if (j.entities.valid(other.entity[i]) && !seen.contains(other.entity[i]) && ends_known(other, i) &&
          own.contains(scope(other, i)))
        absent.insert(other.entity[i]);
  }
  return {absent.begin(), absent.end()};
}

/// Rows of the case's kind that it does not report, when it reports fewer than planned.
std::vector<std::int32_t> absent_rows(const Judgement& j, const CaseData& c) {
  if (c.kind == "link") return absent_links(j, c);
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

/// Required cases that lack a lost node's parts: one gap for the node.
struct LostNodes {
  struct Lack {
    std::set<std::int32_t> rows;
    std::size_t cases = 0;
    std::string first;
  };
  std::set<std::int32_t> lost;  ///< rows of events: ranks' devices or nodes
  std::map<std::int32_t, Lack> by_node;

  explicit LostNodes(const Judgement& j) {
    for (const auto& e : j.results.events)
      if (results::loss_of(e)) lost.insert(e.entity);
  }

  /// Takes the lost parts of `absent`, and leaves the others.
  void take(const Judgement& j, std::vector<std::int32_t>& absent, const std::string& path) {
    std::set<std::int32_t> nodes;
    std::erase_if(absent, [&](std::int32_t row) {
      const auto node = j.entities.node(row);
      if (node < 0 || (!lost.contains(row) && !lost.contains(node))) return false;
      nodes.insert(node);
      by_node[node].rows.insert(row);
      return true;
    });
    for (const auto node : nodes)
      if (Lack& lack = by_node[node]; lack.cases++ == 0) lack.first = path;
  }

  void tell(Judgement& j) const {
    for (const auto& [node, lack] : by_node)
      j.gap(j.entities.name(node) + ": " + std::to_string(lack.cases) +
                (lack.cases == 1 ? " required case was" : " required cases were") +
                " measured without its lost ranks" + (lack.cases == 1 ? ": " : ", the first: ") + lack.first,
            {lack.rows.begin(), lack.rows.end()});
  }
};

/// Cases that did not run: one gap for all required ones, one for the others.
struct NotRun {
  struct Cases {
    std::size_t count = 0;
    std::string first;
  };
  Cases required, others;

  void take(const std::string& path, bool is_required) {
    Cases& cases = is_required ? required : others;
    if (cases.count++ == 0) cases.first = path;
  }

  void tell(Judgement& j) const {
    for (const auto& [cases, kind] :
         {std::pair(&required, "required case"), std::pair(&others, "optional case")}) {
      if (cases->count == 1) j.gap(std::string(kind) + " " + cases->first + " did not run");
      if (cases->count > 1)
        j.gap(std::to_string(cases->count) + " " + kind + "s did not run, the first: " + cases->first);
    }
  }
};

/// What is told once for many cases.
struct ToldTogether {
  LostNodes losses;
  NotRun not_run;
};

/// The parts that a case without data was to measure, where the file tells them; empty: it may be all.
std::vector<std::int32_t> would_measure(const Judgement& j, const results::PlanRow& plan, const CaseData& c) {
  if (c.entity.empty()) return {};
  std::set<std::int32_t> rows(c.entity.begin(), c.entity.end());
  rows.insert(c.source.begin(), c.source.end());
  rows.insert(c.destination.begin(), c.destination.end());
  const auto lacking = plan.entities - static_cast<std::int64_t>(c.entities());
  if (lacking > 0) {
    const auto absent = absent_rows(j, c);
    if (static_cast<std::int64_t>(absent.size()) < lacking) return {};
    rows.insert(absent.begin(), absent.end());
  }
  std::erase_if(rows, [&](std::int32_t row) { return !j.entities.valid(row); });
  return {rows.begin(), rows.end()};
}

/// Of the ranks that did not finish a case; their devices, whatever it measures.
std::vector<std::int32_t> unfinished_rows(const Judgement& j, const CaseData& c) {
  const auto names = results::unfinished_parts(c);
  const std::set<std::string> parts(names.begin(), names.end());
  std::vector<std::int32_t> rows;
  for (std::size_t row = 0; row < j.entities.size(); ++row)
    if (parts.contains(j.results.entities[row].name)) rows.push_back(static_cast<std::int32_t>(row));
  return rows;
}

/// One planned case with what was measured of it (null: nothing).
void account(Judgement& j, const results::PlanRow& plan, const CaseData* c, ToldTogether& together) {
  auto& a = j.accounting;
  const std::string path = plan.suite + "/" + plan.name;
  const CaseState state = c == nullptr ? CaseState::incomplete : c->state;
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
  if (c == nullptr) return together.not_run.take(path, required);
  if (state == CaseState::skip) {
    if (required) {
      j.gap("required case " + path + " was skipped" + because(c->reason), would_measure(j, plan, *c));
    } else if (c->reason.rfind("budget", 0) != 0) {
      add_uncovered(j, path, c->reason);
    }
  } else if (!measured) {
    const std::string what = state == CaseState::error ? " ended in error" : " is incomplete";
    j.gap((required ? "required case " : "case ") + path + what + because(c->reason),
          would_measure(j, plan, *c));
  }
  if (!measured) return;
  check_samples(j, *c, required);
  if (const std::string text = results::unfinished_text(*c); !text.empty()) {
    return j.gap((required ? "required case " : "case ") + path + " " + text, unfinished_rows(j, *c));
  }
  if (required && plan.entities > static_cast<std::int64_t>(c->entities())) {
    auto absent = absent_rows(j, *c);
    const bool named = !absent.empty();
    together.losses.take(j, absent, path);
    if (named && absent.empty()) return;
    j.gap(path + ": " + std::to_string(c->entities()) + " of " + std::to_string(plan.entities) +
              " entities measured" + (absent.empty() ? "" : ", without " + first_names(j, absent)),
          absent);
  }
}

/// What the run measured of a suite, of all its cases that ended.
struct Measured {
  bool machine = false;  ///< a rate, a time, or what a node has
  bool results = false;  ///< whether they are right, and nothing else
  bool any = false;      ///< at least the self-test of a checker, which tells of the program
};

std::map<std::string, Measured> measured_by_suite(const results::Results& results) {
  std::map<std::string, Measured> all;
  for (const auto& c : results.cases) {
    const bool ended = c.state == CaseState::pass || c.state == CaseState::fail;
    if (!ended || results::is_retest(c.name)) continue;
    Measured& of = all[c.suite];
    of.any = true;
    of.machine = of.machine || c.metrics.empty();  // arrays, or a case that is a gap of its own
    for (const auto& m : c.metrics) {
      if (m.name == "errors")
        of.results = true;
      else if (m.role == results::Role::metric || m.unit.ends_with("/s"))  // of a rate that is not judged
        of.machine = true;
    }
  }
  return all;
}

/// Why planned cases of a suite do not apply here; empty where all do.
std::string not_applicable_because(const results::Results& results, const std::string& suite) {
  for (const auto& row : results.plan)
    if (row.suite == suite && row.state == "not_applicable" && !row.reason.empty()) return row.reason;
  return {};
}

/// A run of self-tests proves the program, not the machine. Where what was asked for does not apply here,
/// right results of small checks do not stand for it either.
void check_measured(Judgement& j) {
  const auto suites = measured_by_suite(j.results);
  std::set<std::string> planned;
  for (const auto& row : j.results.plan) planned.insert(row.suite);
  std::string why;
  std::vector<std::string> tested_only;
  bool any = false;
  const auto measured = [&](const std::string& suite, const std::string& reason) {
    const auto at = suites.find(suite);
    return at != suites.end() && (at->second.machine || (at->second.results && reason.empty()));
  };
  for (const auto& [suite, of] : suites)
    any = any || measured(suite, not_applicable_because(j.results, suite));
  for (const std::string& suite : planned) {
    const std::string reason = not_applicable_because(j.results, suite);
    if (measured(suite, reason)) continue;
    const bool tested = suites.contains(suite) && suites.at(suite).any;
    if (!tested && reason.empty()) continue;  // a gap of its own
    const std::string text = suite + because(reason.empty() ? "only self-tests are planned" : reason);
    why += (why.empty() ? "" : "; ") + text;
    if (tested && !reason.empty()) tested_only.push_back(suite);
  }
  if (!any) return j.gap("nothing was measured" + because(why));
  for (const std::string& suite : tested_only) {
    auto f = j.about(-1, "INFO", "fact", "uncovered");
    f.suite = suite;
    f.evidence = "/plan";
    f.text = suite + ": only self-tests were run" + because(not_applicable_because(j.results, suite));
    j.add(std::move(f), {});
  }
}

/// Why the run was aborted, from its last event: one that was resumed may have been aborted before.
std::string end_reason(const results::Results& results) {
  const auto last = std::find_if(results.events.rbegin(), results.events.rend(),
                                 [](const auto& e) { return e.kind == "aborted"; });
  return last == results.events.rend() ? std::string() : last->text;
}

}  // namespace

void judge_accounting(Judgement& j) {
  std::unordered_map<std::string, const CaseData*> cases;
  for (const auto& c : j.results.cases) cases[c.path()] = &c;
  std::set<std::string> planned;
  ToldTogether together{LostNodes(j), {}};
  for (const auto& row : j.results.plan) {
    if (row.state == "not_applicable") {
      ++j.accounting.not_applicable;
      continue;
    }
    ++j.accounting.planned;
    const auto it = cases.find(row.suite + "/" + row.name);
    planned.insert(row.suite + "/" + row.name);
    account(j, row, it == cases.end() ? nullptr : it->second, together);
  }
  together.losses.tell(j);
  together.not_run.tell(j);
  // Cases beyond the plan (imported files) count as planned by having been run.
  for (const auto& c : j.results.cases) {
    // What ranks measured of a case that they did not finish: the case tells of them.
    if (planned.contains(c.path()) || results::is_unfinished_name(c.name)) continue;
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
    account(j, row, &c, together);
  }
  for (const std::string& doubt : results::doubtful_content(j.results)) j.gap(doubt);
  check_measured(j);
  if (j.results.info.state == "aborted") j.gap("the run ended early" + because(end_reason(j.results)));
}

}  // namespace assay::verdict
