// SPDX-License-Identifier: Apache-2.0
// What needs no statistics: wrong values, digests that disagree, checkers that missed, events of the launch.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <unordered_map>

#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

/// A count of a file, where it is a double and may be anything.
std::int64_t whole(double count) {
  constexpr double most = 9e18;
  return count > 0 ? static_cast<std::int64_t>(std::min(count, most)) : 0;
}

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

std::string suite_of(const std::string& path) { return path.substr(0, path.find('/')); }

void add_corrupt(Judgement& j, std::int32_t row, const std::string& path, const std::string& evidence,
                 const std::string& text, std::int64_t count) {
  auto f = j.about(row, "FAIL", "fact", "corrupt");
  f.suite = suite_of(path);
  f.metric = path + ":errors";
  f.unit = "count";
  f.better = "lower";
  if (count > 0) f.value = static_cast<double>(count);
  f.action = "ISOLATE";
  f.evidence = evidence;
  f.text = text;
  j.add(std::move(f), {row});
}

/// Rows of `errors` metrics above zero of a case: entity -> how many.
std::map<std::int32_t, double> counted_errors(const results::CaseData& c) {
  std::map<std::int32_t, double> counted;
  const auto* m = c.find("errors");
  if (m == nullptr) return counted;
  for (std::size_t r = 0; r < c.entity.size(); ++r) {
    double sum = 0;
    const std::size_t width = m->per_sample ? c.samples() : 1;
    for (std::size_t s = 0; s < width && r * width + s < m->values.size(); ++s) {
      const double v = m->values[r * width + s];
      if (v > 0) sum += v;
    }
    if (sum > 0) counted[c.entity[r]] = sum;
  }
  return counted;
}

/// The value that more than half of `votes` agree on; false without such a majority.
bool majority_of(const std::map<std::uint64_t, std::vector<std::size_t>>& votes, std::size_t total,
                 std::uint64_t& value) {
  for (const auto& [v, voters] : votes) {
    if (2 * voters.size() > total) {
      value = v;
      return true;
    }
  }
  return false;
}

/// A view of an integer array as [entity][everything else].
struct DigestView {
  const results::IntegerArray& array;
  std::size_t entity_dim = 0, entities = 0, inner = 1, outer = 1;
  bool per_sample = false;

  explicit DigestView(const results::IntegerArray& a) : array(a) {
    const auto it = std::find(a.dims.begin(), a.dims.end(), "entity");
    entity_dim = it == a.dims.end() ? 0 : static_cast<std::size_t>(it - a.dims.begin());
    for (std::size_t d = 0; d < a.shape.size(); ++d) {
      if (d < entity_dim) outer *= a.shape[d];
      if (d == entity_dim) entities = a.shape[d];
      if (d > entity_dim) inner *= a.shape[d];
    }
    per_sample = a.dims.size() == 2 && entity_dim == 0 && a.dims[1] == "sample";
    if (outer * entities * inner != a.values.size()) entities = 0;  // not the shape it claims
  }
  std::size_t columns() const noexcept { return outer * inner; }
  std::uint64_t at(std::size_t entity, std::size_t column) const {
    const std::size_t o = column / inner, i = column % inner;
    return array.values[(o * entities + entity) * inner + i];
  }
};

struct Liar {
  std::size_t columns = 0, first = 0;
  std::uint64_t seen = 0, expected = 0;
};

/// Votes column by column among `members` (entity positions of one stratum).
void vote(Judgement& j, const results::CaseData& c, const DigestView& view,
          const std::vector<std::size_t>& members) {
  std::map<std::size_t, Liar> liars;
  std::set<std::size_t> tied;
  for (std::size_t column = 0; column < view.columns(); ++column) {
    std::map<std::uint64_t, std::vector<std::size_t>> votes;
    std::size_t total = 0;
    for (const auto e : members) {
      const bool taken = e >= c.count.size() ||
                         (view.per_sample ? static_cast<std::int64_t>(column) < c.count[e] : c.count[e] > 0);
      if (!taken) continue;
      votes[view.at(e, column)].push_back(e);
      ++total;
    }
    if (votes.size() < 2) continue;
    std::uint64_t truth = 0;
    const bool decided = majority_of(votes, total, truth);
    for (const auto& [value, voters] : votes) {
      for (const auto e : voters) {
        if (!decided) tied.insert(e);
        if (!decided || value == truth) continue;
        auto& liar = liars[e];
        if (liar.columns++ == 0) liar = {1, column, value, truth};
      }
    }
  }
  const std::string evidence = "/cases/" + c.path() + "/" + view.array.name;
  for (const auto& [e, liar] : liars) {
    add_corrupt(j, c.entity[e], c.path(), evidence,
                with_rank(j, c.entity[e]) + ": " + view.array.name + " of " + c.path() +
                    " differs from the majority in " + std::to_string(liar.columns) + " of " +
                    std::to_string(view.columns()) + ", first at " + std::to_string(liar.first) + ": " +
                    hex(liar.seen) + " instead of " + hex(liar.expected),
                static_cast<std::int64_t>(liar.columns));
  }
  if (tied.empty()) return;
  std::vector<std::int32_t> rows;
  auto f = j.about(-1, "WARN", "fact", "corrupt");
  for (const auto e : tied) {
    rows.push_back(c.entity[e]);
    f.members.push_back(j.entities.name(c.entity[e]));
  }
  f.confirmed = false;
  f.suite = c.suite;
  f.metric = c.path() + ":" + view.array.name;
  f.action = "TRIAGE";
  f.evidence = evidence;
  f.text = view.array.name + " of " + c.path() + " differs between " + f.members.front() + " and " +
           f.members.back() + " without a majority: replay the case to find who is wrong";
  j.add(std::move(f), rows, true);
}

/// The number of threads a result was computed with, where the case tells: it decides the order of summation.
std::string threads_of(const results::CaseData& c, std::size_t row) {
  for (const auto& a : c.arrays) {
    if (a.name == "threads" && a.values.size() == c.entity.size())
      return " threads " + std::to_string(a.values[row]);
  }
  return {};
}

std::vector<std::string> needed_checkers(const results::Results& results) {
  std::set<std::string> suites;
  for (const auto& row : results.plan) {
    if (row.state != "not_applicable") suites.insert(row.suite);
  }
  std::vector<std::string> needed;
  const std::pair<const char*, const char*> checkers[] = {
      {"gemm", "gemm"}, {"memory", "memory"}, {"p2p", "pair"}, {"allreduce", "allreduce"}, {"train", "train"}};
  for (const auto& [suite, checker] : checkers) {
    if (suites.contains(suite)) needed.emplace_back(checker);
  }
  return needed;
}

/// "uncovered: ..." -> uncovered; what a text without a known word means depends on how bad the event is.
std::string kind_of_event(const std::string& text) {
  for (const char* kind :
       {"uncovered", "missing", "mismatch", "lost", "hang", "noisy", "split", "corrupt", "throttled"}) {
    if (text.rfind(std::string(kind) + ":", 0) == 0) return kind;
  }
  return "mismatch";
}

}  // namespace

void judge_miscompares(Judgement& j) {
  struct Seen {
    std::size_t count = 0;
    const results::Miscompare* first = nullptr;
  };
  std::map<std::pair<std::string, std::int32_t>, Seen> seen;
  for (const auto& e : j.results.errors) {
    auto& s = seen[{e.case_path, e.entity}];
    if (s.count++ == 0) s.first = &e;
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
                with_rank(j, row) + ": " + std::to_string(whole(total)) +
                    " wrong values in " + path + ", first at " + std::to_string(e.index) + ": expected " +
                    hex(e.expected) + " actual " + hex(e.actual) + " xor " + hex(e.expected ^ e.actual) +
                    " reread " + hex(e.reread),
                whole(total));
  }
  for (const auto& [key, n] : counted) {
    named.insert(key.first);
    add_corrupt(j, key.second, key.first, "/cases/" + key.first + "/errors",
                with_rank(j, key.second) + ": " + std::to_string(whole(n)) +
                    " wrong values in " + key.first,
                whole(n));
  }
  for (const auto& c : j.results.cases) {
    if (c.state != results::CaseState::fail || named.contains(c.path())) continue;
    const std::int32_t row = c.entity.size() == 1 ? c.entity[0] : -1;
    add_corrupt(j, row, c.path(), "/cases/" + c.path(),
                c.path() + " failed" + (c.reason.empty() ? "" : ": " + c.reason), 0);
  }
}

void judge_digests(Judgement& j) {
  for (const auto& c : j.results.cases) {
    if (c.state != results::CaseState::pass && c.state != results::CaseState::fail) continue;
    for (const auto& array : c.arrays) {
      if (array.name.rfind("digest", 0) != 0) continue;
      const DigestView view(array);
      if (view.entities != c.entity.size()) {
        if (!c.entity.empty()) j.gap(c.path() + ": " + array.name + " does not have one row per entity");
        continue;
      }
      // Different processors may round differently by right: only equal ones vote together.
      std::unordered_map<std::int32_t, std::string> strata;
      for (const auto& s : j.series) {
        if (s.first != &c && !(s.suite == c.suite && s.name == base_name(c.name))) continue;
        for (const auto& row : s.rows) strata[row.entity] = s.strata[static_cast<std::size_t>(row.stratum)];
        break;
      }
      std::map<std::string, std::vector<std::size_t>> groups;
      for (std::size_t e = 0; e < c.entity.size(); ++e) {
        groups[strata[c.entity[e]] + threads_of(c, e)].push_back(e);
      }
      for (const auto& [label, members] : groups) vote(j, c, view, members);
    }
  }
}

void judge_selftest(Judgement& j) {
  for (const auto& checker : needed_checkers(j.results)) {
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
    if (injected == 0) j.gap("self-test of the " + checker + " checker is missing: its checks are unproven");
  }
}

void judge_events(Judgement& j) {
  for (const auto& e : j.results.events) {
    if (e.kind == "inject-unfired") j.gap(e.text);
    const bool lost = e.kind == "hang" || e.kind == "lost";
    const bool fail = e.kind == "launch-fail", open = e.kind == "launch-inconclusive" || lost;
    if (!fail && !open && e.kind != "launch-warn") continue;
    auto f = j.about(e.entity, fail ? "FAIL" : "WARN", "fact", lost ? e.kind : kind_of_event(e.text));
    f.action = lost || f.kind == "missing" ? "TRIAGE" : "CONFIG";
    f.evidence = "/events";
    f.text = e.text;
    if (j.entities.valid(e.entity) && e.text.find(f.name) == std::string::npos)
      f.text = f.name + ": " + e.text;
    j.add(std::move(f), {e.entity}, open);
  }
}

}  // namespace assay::verdict
