// SPDX-License-Identifier: Apache-2.0
// From findings and gaps to states: of every entity, and of the run.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/exit_code.hpp"
#include "verdict/constants.hpp"
#include "verdict/judgement.hpp"
#include "verdict/network_constants.hpp"

namespace assay::verdict {
namespace {

enum class Grade { not_tested, pass, warn, inconclusive, fail };

const char* text_of(Grade g) {
  switch (g) {
    case Grade::not_tested: return "NOT_TESTED";
    case Grade::pass: return "PASS";
    case Grade::warn: return "WARN";
    case Grade::inconclusive: return "INCONCLUSIVE";
    case Grade::fail: return "FAIL";
  }
  return "FAIL";
}

Grade grade_of(const Found& found) {
  if (found.finding.severity == "FAIL") return Grade::fail;
  if (found.inconclusive) return Grade::inconclusive;
  return found.finding.severity == "WARN" ? Grade::warn : Grade::pass;
}

struct Standing {
  Grade grade = Grade::not_tested;
  std::string reason;
  bool measured = false;
};

/// The states of all rows: from the measured data, the gaps and the findings, then upwards to the nodes.
class Standings {
 public:
  explicit Standings(const Judgement& j) : j_(j), standings_(j.entities.size()) {
    for (const auto& s : j.series) {
      for (const auto& row : s.rows) {
        for (const auto r : rows_of(row)) measured(r);
      }
    }
    // Cases without metrics (checks, the inventory) count as having looked at their entities.
    for (const auto& c : j.results.cases) {
      if (c.state != results::CaseState::pass && c.state != results::CaseState::fail) continue;
      for (const auto r : c.entity) measured(r);
    }
    for (const auto& g : j.gaps) gap(g);
    for (const auto& f : j.found) {
      for (const auto r : f.rows) worsen(r, grade_of(f), f.finding.text);
    }
    climb();
  }

  std::vector<results::EntityState> states() const {
    std::vector<results::EntityState> states;
    for (std::size_t i = 0; i < standings_.size(); ++i) {
      const auto& kind = j_.results.entities[i].kind;
      const auto& s = standings_[i];
      const bool reported = kind == "node" || kind == "device" || kind == "numa" || kind == "nic";
      if (!reported && s.grade <= Grade::pass) continue;
      if (kind == "cluster") continue;
      const bool silent = s.grade == Grade::not_tested;
      states.push_back(
          {static_cast<std::int32_t>(i), text_of(s.grade), silent ? "no data of its own" : s.reason});
    }
    return states;
  }

 private:
  Standing* at(std::int32_t row) {
    return j_.entities.valid(row) ? &standings_[static_cast<std::size_t>(row)] : nullptr;
  }

  void measured(std::int32_t row) {
    if (auto* s = at(row)) {
      s->measured = true;
      s->grade = std::max(s->grade, Grade::pass);
    }
  }
  void worsen(std::int32_t row, Grade grade, const std::string& reason) {
    auto* s = at(row);
    if (s == nullptr || grade <= s->grade) return;
    // An INFO about a part that was not measured does not make it measured.
    if (grade == Grade::pass) return;
    s->grade = grade;
    s->reason = reason;
  }
  void gap(const Judgement::Gap& g) {
    if (g.rows.empty()) {
      for (const auto row : j_.entities.nodes()) worsen(row, Grade::inconclusive, g.reason);
    }
    for (const auto row : g.rows) worsen(row, Grade::inconclusive, g.reason);
  }
  void climb() {
    for (std::size_t i = 0; i < standings_.size(); ++i) {
      const auto row = static_cast<std::int32_t>(i);
      const auto node = j_.entities.node(row);
      if (node == row || node < 0) continue;
      const Standing below = standings_[i];
      if (below.measured) measured(node);
      if (below.grade > Grade::pass) worsen(node, below.grade, below.reason);
    }
  }

  const Judgement& j_;
  std::vector<Standing> standings_;
};

int severity_rank(const Found& f) {
  if (f.finding.severity == "FAIL") return 0;
  if (f.inconclusive) return 1;
  return f.finding.severity == "WARN" ? 2 : 3;
}

int claim_rank(const results::Finding& f) { return f.claim == "fact" ? 0 : f.claim == "magnitude" ? 1 : 2; }

/// Hard evidence first, then the largest deficit: what a reader must see stands on top.
void order_findings(std::vector<Found>& found) {
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    const auto key = [](const Found& f) {
      return std::tuple(severity_rank(f), claim_rank(f.finding), -f.finding.deficit.value_or(0.0));
    };
    return key(a) < key(b);
  });
}

std::vector<std::pair<std::string, std::size_t>> counts_of_compared(const Judgement& j) {
  const Compared c = compared_of(j);
  std::vector<std::pair<std::string, std::size_t>> counts{{"limits", c.limits}};
  // Said only where one was given.
  if (j.options.baseline) counts.emplace_back("baseline", c.baseline);
  counts.emplace_back("hardware rates", c.hardware);
  if (j.options.earlier || j.options.history) counts.emplace_back("own history", c.history);
  counts.emplace_back("peers only", c.peers);
  counts.emplace_back(compared_with_nothing, c.nothing);
  if (c.left_out > 0) counts.emplace_back(left_out_of_comparisons, c.left_out);
  return counts;
}

Json inputs_of(const Judgement& j) {
  Json inputs;
  inputs["delta"] = {{"warn", constants::delta_warn}, {"at_clock", constants::delta_at_clock}};
  for (const auto& s : j.series)
    if (s.judged) inputs["delta"][results::to_string(s.judging.of)] = s.judging.fault_threshold;
  inputs["constants"] = constants::as_json();
  inputs["network"] = constants::network_json();
  inputs["limits"] = j.options.limits_name;
  inputs["limits_text"] = j.options.limits_text;
  inputs["require"] = j.options.require;
  inputs["strict"] = j.options.strict;
  inputs["history"] = Json::array();
  inputs["baseline"] = Json::array();
  return inputs;
}

void give_reasons(const Judgement& j, results::VerdictData& v) {
  std::set<std::string> said;
  auto say = [&](const std::string& text) {
    if (said.insert(text).second) v.reasons.push_back(text);
  };
  for (const auto& f : j.found) {
    if (grade_of(f) == Grade::fail) say(f.finding.text);
  }
  for (const auto& g : j.gaps) say(g.reason);
  for (const auto& f : j.found) {
    if (grade_of(f) == Grade::inconclusive) say(f.finding.text);
  }
  if (v.state != "WARN") return;
  for (const auto& f : j.found) {
    if (grade_of(f) == Grade::warn) say(f.finding.text);
  }
}

}  // namespace

std::string basis_of(const std::vector<std::pair<std::string, std::size_t>>& counts) {
  std::string text;
  bool compared = false;
  for (const auto& [name, count] : counts) {
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
    compared = compared || (count > 0 && name != compared_with_nothing && name != left_out_of_comparisons);
  }
  return text + (compared || text.empty() ? "" : " (checks and counters only)");
}

Compared compared_of(const Judgement& j) {
  Compared out;
  for (const auto& s : j.series)
    for (const auto& row : s.rows) {
      // No logarithm, no comparison.
      if (s.judged && !(row.median > 0 && std::isfinite(row.median))) {
        ++out.left_out;
        continue;
      }
      if (!s.judged && row.reference == Reference::none) continue;
      switch (static_cast<Reference>(row.reference)) {
        case Reference::limit: ++out.limits; break;
        case Reference::baseline: ++out.baseline; break;
        case Reference::physical: ++out.hardware; break;
        case Reference::history: ++out.history; break;
        case Reference::peers: ++out.peers; break;
        case Reference::none: ++out.nothing; break;
      }
    }
  return out;
}

results::VerdictData conclude(Judgement& j) {
  order_findings(j.found);
  bool fail = false, open = !j.gaps.empty(), warn = false;
  for (const auto& f : j.found) {
    const Grade g = grade_of(f);
    fail = fail || g == Grade::fail;
    open = open || g == Grade::inconclusive;
    warn = warn || g == Grade::warn;
  }
  results::VerdictData v;
  const bool clean = !fail && !open;
  if (clean && j.results.info.injected) {
    j.gap("faults were injected: the run cannot be PASS");
    open = true;
  }
  v.state = fail ? "FAIL" : open ? "INCONCLUSIVE" : warn ? "WARN" : "PASS";
  const ExitCode code = fail                       ? ExitCode::fail
                        : open                     ? ExitCode::inconclusive
                        : warn && j.options.strict ? ExitCode::warn
                                                   : ExitCode::pass;
  v.exit_code = static_cast<int>(code);
  v.compared = counts_of_compared(j);
  v.basis = basis_of(v.compared);
  v.false_alarm_rate = j.expected_false_fails;
  v.accounting = j.accounting;
  v.entities = Standings(j).states();
  give_reasons(j, v);
  v.inputs = inputs_of(j);
  for (auto& f : j.found) v.findings.push_back(std::move(f.finding));
  return v;
}

}  // namespace assay::verdict
