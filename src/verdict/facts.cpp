// SPDX-License-Identifier: Apache-2.0
// What needs no statistics: wrong values, checkers that missed, events of the launch.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "results/described.hpp"
#include "verdict/constants.hpp"
#include "verdict/corrupt.hpp"
#include "verdict/stories.hpp"

namespace assay::verdict {
namespace {

/// A count of a file, where it is a double and may be anything.
std::int64_t whole(double count) {
  constexpr double most = 9e18;
  return count > 0 ? static_cast<std::int64_t>(std::min(count, most)) : 0;
}

/// Rows of `errors` metrics above zero of a case: entity -> how many.
std::map<std::int32_t, double> counted_errors(const results::CaseData& c) {
  std::map<std::int32_t, double> counted;
  const auto* m = c.find("errors");
  if (m == nullptr) return counted;
  const auto values = m->values.held();
  for (std::size_t r = 0; r < c.entity.size(); ++r) {
    double sum = 0;
    const std::size_t width = m->per_sample ? c.samples() : 1;
    for (std::size_t s = 0; s < width && r * width + s < values.size(); ++s) {
      const double v = values[r * width + s];
      if (v > 0) sum += v;
    }
    if (sum > 0) counted[c.entity[r]] = sum;
  }
  return counted;
}

/// The checkers that planned cases declare, in the order of the plan. A suite with results that declares none
/// proves nothing.
std::vector<std::string> needed_checkers(Judgement& j) {
  std::set<std::string> measured, told;
  for (const auto& c : j.results.cases)
    if (!c.metrics.empty()) measured.insert(c.suite);
  std::vector<std::string> needed;
  for (const auto& row : j.results.plan) {
    if (row.state == "not_applicable") continue;
    const auto checkers = results::checkers_of(row);
    if (!checkers.declared && measured.contains(row.suite) && told.insert(row.suite).second)
      j.gap("suite " + row.suite + " declares no self-test: its checks are untested");
    for (const auto& name : checkers.names)
      if (std::find(needed.begin(), needed.end(), name) == needed.end()) needed.push_back(name);
  }
  return needed;
}

/// Findings that a launch event may name. Others, such as oversubscribed, are a mismatch of the launch.
bool is_finding(const std::string& kind) {
  static const std::set<std::string> kinds{"uncovered", "missing", "mismatch", "lost",     "hang",
                                           "noisy",     "split",   "corrupt",  "throttled"};
  return kinds.contains(kind);
}

std::string wrong_values(std::int64_t n) {
  return std::to_string(n) + (n == 1 ? " wrong value" : " wrong values");
}

/// What the multiprocessors that saw the wrong words of one GPU have in common.
class ReportingSms {
 public:
  void add(const results::Miscompare& e, bool addresses) {
    if (e.sm < 0) return;  // records without it are no evidence
    multiprocessors_.insert(e.sm);
    times_.insert(e.t);
    ++words_;
    // Where the index is no place in memory (caches, shared memory) it is the word's own.
    places_.insert({addresses, addresses ? static_cast<std::uint64_t>(static_cast<double>(e.index) /
                                                                      constants::one_sm_place_bytes)
                                         : e.index});
  }

  /// Empty unless one multiprocessor saw all. Seen in one sweep only, a defect of the memory at equal
  /// distances could have met it each time: the next sweep gives the places to others.
  std::string text() const {
    if (multiprocessors_.size() != 1 || places_.size() < constants::one_sm_places || times_.size() < 2)
      return "";
    return "; all " + std::to_string(words_) + " recorded wrong words of this GPU, in " +
           std::to_string(places_.size()) + " places and " + std::to_string(times_.size()) +
           " sweeps, were reported by SM " + std::to_string(*multiprocessors_.begin()) +
           ": suspect this multiprocessor rather than the memory";
  }

 private:
  std::set<std::int32_t> multiprocessors_;
  std::set<std::pair<bool, std::uint64_t>> places_;
  std::set<double> times_;
  std::size_t words_ = 0;
};

/// " by SM 5 warp 3 lane 17", where that is known.
std::string seen_by(const results::Miscompare& e) {
  if (e.sm < 0) return "";
  return " by SM " + std::to_string(e.sm) + " warp " + std::to_string(e.warp) + " lane " +
         std::to_string(e.lane);
}

}  // namespace

std::string hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string with_rank(const Judgement& j, std::int32_t row) {
  std::string text = j.entities.name(row);
  if (j.entities.valid(row)) {
    const auto rank = j.results.entities[static_cast<std::size_t>(row)].rank;
    if (rank >= 0) text += " (rank " + std::to_string(rank) + ")";
  }
  return text;
}

void add_corrupt(Judgement& j, std::int32_t row, const std::string& path, const std::string& evidence,
                 const std::string& text, std::int64_t count) {
  auto f = j.about(row, "FAIL", "fact", "corrupt");
  f.suite = path.substr(0, path.find('/'));
  f.metric = path + ":errors";
  f.unit = "count";
  f.better = "lower";
  if (count > 0) f.value = static_cast<double>(count);
  f.action = "ISOLATE";
  f.evidence = evidence;
  f.text = text;
  j.add(std::move(f), {row});
}

/// " (/scratch)": the directory of a case that reads and writes files, so that the index is an offset there.
std::string in_directory(const Judgement& j, const std::string& path) {
  for (const auto& c : j.results.cases) {
    if (c.path() != path || !c.parameters.is_object()) continue;
    const auto it = c.parameters.find("path");
    if (it != c.parameters.end() && it->is_string() && it->get<std::string>().starts_with('/'))
      return " (" + it->get<std::string>() + ")";
  }
  return "";
}

void judge_miscompares(Judgement& j) {
  struct Seen {
    std::size_t count = 0;
    const results::Miscompare* first = nullptr;
  };
  std::map<std::pair<std::string, std::int32_t>, Seen> seen;
  std::map<std::int32_t, ReportingSms> reporting_sms;
  std::set<std::string> addressing;
  for (const auto& c : j.results.cases)
    if (results::traits_of(c).addresses) addressing.insert(c.path());
  for (const auto& e : j.results.errors) {
    auto& s = seen[{e.case_path, e.entity}];
    if (s.count++ == 0) s.first = &e;
    reporting_sms[e.entity].add(e, addressing.contains(e.case_path));
  }
  std::set<std::string> named;
  std::map<std::pair<std::string, std::int32_t>, double> counted;
  for (const auto& c : j.results.cases) {
    for (const auto& [row, n] : counted_errors(c)) counted[{c.path(), row}] = n;
  }
  for (const auto& [key, s] : seen) {
    const auto& [path, row] = key;
    const auto it = counted.find(key);
    const double total = std::max(it == counted.end() ? 0.0 : it->second, static_cast<double>(s.count));
    if (it != counted.end()) counted.erase(it);
    named.insert(path);
    const auto& e = *s.first;
    add_corrupt(j, row, path, "/errors",
                with_rank(j, row) + ": " + wrong_values(whole(total)) + " in " + path +
                    in_directory(j, path) + ", first at " + std::to_string(e.index) + seen_by(e) +
                    ": expected " + hex(e.expected) + " actual " + hex(e.actual) + " xor " +
                    hex(e.expected ^ e.actual) + " reread " + hex(e.reread) + reporting_sms[row].text(),
                whole(total));
  }
  for (const auto& [key, n] : counted) {
    named.insert(key.first);
    add_corrupt(j, key.second, key.first, "/cases/" + key.first + "/errors",
                with_rank(j, key.second) + ": " + wrong_values(whole(n)) + " in " + key.first, whole(n));
  }
  for (const auto& c : j.results.cases) {
    if (c.state != results::CaseState::fail || named.contains(c.path())) continue;
    const std::int32_t row = c.entity.size() == 1 ? c.entity[0] : -1;
    add_corrupt(j, row, c.path(), "/cases/" + c.path(),
                (row >= 0 ? with_rank(j, row) + ": " : "") + c.path() + " failed" +
                    (c.reason.empty() ? "" : ": " + c.reason),
                0);
  }
}

void judge_selftest(Judgement& j) {
  for (const auto& checker : needed_checkers(j)) {
    std::int64_t injected = 0;
    for (const auto& row : j.results.selftest) {
      if (row.checker != checker) continue;
      injected += row.injected;
      if (row.caught == row.injected && row.located == row.injected && row.counted == row.injected) continue;
      auto f = j.about(row.entity, "WARN", "fact", "missing");
      f.action = "TRIAGE";
      f.evidence = "/selftest";
      f.text = "self-test of the " + checker + " checker on " + j.entities.name(row.entity) + ": " +
               std::to_string(row.injected) + " injected, " + std::to_string(row.caught) + " caught, " +
               std::to_string(row.located) + " located, " + std::to_string(row.counted) + " counted";
      j.add(std::move(f), {row.entity}, true);
    }
    if (injected == 0) j.gap("self-test of the " + checker + " checker is missing: its checks are untested");
  }
}

namespace {

/// Nodes of which a part was lost in this launch, and this or another part in an earlier one.
std::set<std::int32_t> lost_twice(const Judgement& j) {
  std::set<std::int32_t> now, before, twice;
  for (const auto& e : j.results.events)
    if (const auto loss = results::loss_of(e))
      (loss->earlier ? before : now).insert(j.entities.node(e.entity));
  std::set_intersection(now.begin(), now.end(), before.begin(), before.end(),
                        std::inserter(twice, twice.end()));
  twice.erase(-1);
  return twice;
}

/// A node that is lost with all its parts, two or more, is one finding. From the finding number `from` on.
void join_lost_nodes(Judgement& j, std::size_t from) {
  using Loss =
      std::tuple<std::int32_t, std::string, std::string, bool>;  // node, kind, severity, inconclusive
  std::map<std::pair<std::int32_t, std::string>, std::set<std::int32_t>> parts;  // of a node, by their kind
  for (std::size_t row = 0; row < j.results.entities.size(); ++row) {
    const auto& e = j.results.entities[row];
    const auto index = static_cast<std::int32_t>(row);
    if (const auto node = j.entities.node(index); node >= 0 && node != index)
      parts[{node, e.kind}].insert(index);
  }
  std::map<Loss, std::vector<std::size_t>> losses;
  for (std::size_t i = from; i < j.found.size(); ++i) {
    const auto& [f, inconclusive, rows] = j.found[i];
    if ((f.kind != "lost" && f.kind != "hang") || rows.size() != 1 || !j.entities.valid(rows.front()))
      continue;
    const auto node = j.entities.node(rows.front());
    if (node >= 0 && node != rows.front()) losses[{node, f.kind, f.severity, inconclusive}].push_back(i);
  }
  std::set<std::size_t> told;
  for (const auto& [loss, of] : losses) {
    std::set<std::int32_t> rows;
    for (const auto i : of) rows.insert(j.found[i].rows.front());
    auto& lead = j.found[of.front()];
    const auto node = std::get<0>(loss);
    if (rows.size() < 2 || rows.size() != of.size() || rows != parts[{node, lead.finding.level}]) continue;
    for (const auto row : rows) lead.finding.members.push_back(j.entities.name(row));
    told.insert(of.begin() + 1, of.end());
    auto whole = j.about(node, lead.finding.severity, "fact", lead.finding.kind);
    whole.action = lead.finding.action;
    whole.evidence = lead.finding.evidence;
    whole.members = lead.finding.members;
    whole.text = whole.name + ": all of its " + std::to_string(rows.size()) + " parts " +
                 (lead.finding.kind == "hang" ? "hung" : "were lost") + ", the first: " + lead.finding.text;
    lead.finding = std::move(whole);
    lead.rows.assign(rows.begin(), rows.end());
    lead.rows.push_back(node);
  }
  leave_out(j, told);
}

}  // namespace

void judge_events(Judgement& j) {
  const auto twice = lost_twice(j);
  const std::size_t before = j.found.size();
  for (const auto& e : j.results.events) {
    // A file that cannot be read may have held evidence, a retest among it.
    if (e.kind == "inject-unfired" || e.kind == results::damage_event) j.gap(e.text);
    const auto lost = results::loss_of(e);
    const bool named = lost || is_finding(e.finding);
    const std::string kind = lost ? lost->kind : named ? e.finding : "mismatch";
    const bool uncovered = kind == "uncovered" && e.kind == "launch-warn" && requires_coverage(j);
    const bool fail = e.kind == "launch-fail" || (lost && twice.contains(j.entities.node(e.entity))),
               open = e.kind == "launch-inconclusive" || lost || uncovered;
    // Other differences that are only told are judged by the tables of the inventory.
    const bool note = e.kind == "launch-info" && kind == "uncovered";
    if (!fail && !open && !note && e.kind != "launch-warn") continue;
    auto f = j.about(e.entity, fail ? "FAIL" : note ? "INFO" : "WARN", "fact", kind);
    f.action = f.kind == "lost" || f.kind == "hang" || f.kind == "missing" ? "TRIAGE" : "CONFIG";
    f.evidence = "/events";
    f.text = named || e.finding.empty() ? e.text : e.finding + ": " + e.text;
    if (lost && lost->earlier) f.text = "in an earlier launch: " + f.text;
    if (j.entities.valid(e.entity) && e.text.find(f.name) == std::string::npos)
      f.text = f.name + ": " + f.text;
    j.add(std::move(f), {e.entity}, open);
  }
  join_lost_nodes(j, before);
}

}  // namespace assay::verdict
