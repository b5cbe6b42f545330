// SPDX-License-Identifier: Apache-2.0
#include "report/html/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "report/html/sections.hpp"
#include "results/case_name.hpp"

namespace assay::report {
namespace {

constexpr std::size_t peers_drawn = 240, samples_drawn = 240;

using Rows = std::unordered_map<std::string_view, std::int32_t>;

/// Rows of /entities by their name, of those that findings name: a large fleet has a million links.
Rows rows_of(const verdict::Judgement& j, const std::vector<results::Finding>& findings) {
  Rows rows;
  for (const auto& f : findings) {
    rows.try_emplace(f.name, -1);
    for (const auto& member : f.members) rows.try_emplace(member, -1);
  }
  for (std::size_t i = 0; i < j.entities.size() && !rows.empty(); ++i) {
    const auto it = rows.find(j.results.entities[i].name);
    if (it != rows.end() && it->second < 0) it->second = static_cast<std::int32_t>(i);
  }
  return rows;
}

/// Rows of /entities that a finding names: the part itself and, of a node, what is below it; of a population
/// its members.
std::set<std::int32_t> named_by(const verdict::Judgement& j, const results::Finding& f, const Rows& rows) {
  std::set<std::int32_t> named;
  std::vector<std::string> names = f.members;
  names.push_back(f.name);
  for (const auto& name : names)
    if (const auto row = rows.at(name); row >= 0) named.insert(row);
  if (f.level != "node") return named;
  for (std::size_t i = 0; i < j.entities.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    if (named.contains(j.entities.node(row))) named.insert(row);
  }
  return named;
}

bool concerned(const std::set<std::int32_t>& named, std::int32_t entity, std::int32_t source,
               std::int32_t destination) {
  return named.contains(entity) || named.contains(source) || named.contains(destination);
}

std::int32_t end_of(const std::vector<std::int32_t>& ends, std::size_t row) {
  return row < ends.size() ? ends[row] : -1;
}

using Timed = std::vector<std::pair<double, double>>;

void add_samples(const results::CaseData& c, const std::string& metric, const std::set<std::int32_t>& named,
                 std::vector<double>& out, Timed& timed) {
  const auto* m = c.find(metric);
  if (m == nullptr) return;
  const std::size_t width = m->per_sample ? c.samples() : 1;
  const auto values = m->values.held(), times = c.t.held();
  for (std::size_t r = 0; r < c.entity.size(); ++r) {
    if (!concerned(named, c.entity[r], end_of(c.source, r), end_of(c.destination, r))) continue;
    const std::size_t taken =
        m->per_sample && r < c.count.size() ? static_cast<std::size_t>(std::max(0, c.count[r])) : width;
    for (std::size_t s = 0; s < std::min(width, taken) && r * width + s < values.size(); ++s) {
      const double value = values[r * width + s],
                   t = r * width + s < times.size() ? times[r * width + s] : results::not_taken;
      if (std::isnan(value)) continue;
      out.push_back(value);
      if (std::isfinite(t)) timed.emplace_back(t, value);
    }
  }
}

/// Every n-th in the order of time.
Timed thinned_in_time(Timed timed, std::size_t most) {
  std::sort(timed.begin(), timed.end());
  if (timed.size() <= most) return timed;
  Timed out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(timed[i * (timed.size() - 1) / (most - 1)]);
  return out;
}

using Spans = std::map<std::string, std::pair<double, double>>;

std::vector<TimeMark> marks_of(const results::Results& r, const Spans& spans, const Seen::Rows& seen) {
  const auto who = [&](std::int32_t row) { return r.entities[static_cast<std::size_t>(row)].name; };
  std::vector<TimeMark> marks;
  for (const auto* c : seen.counters)
    if (const auto span = spans.find(c->case_path); span != spans.end())
      marks.push_back(
          {span->second.first, span->second.second, "counter",
           fmt::format("{} {} +{:.15g}", who(c->entity), c->counter.str(), c->after - c->before)});
  for (const auto* e : seen.events)
    if (std::isfinite(e->t))
      marks.push_back({e->t, e->t, "event", who(e->entity) + " " + e->kind + ": " + e->text});
  double last = 0;
  for (const auto& [path, span] : spans) last = std::max(last, span.second);
  std::map<std::pair<std::int32_t, std::string>, std::size_t> set;
  for (const auto* f : seen.flags) {
    if (!std::isfinite(f->t)) continue;
    const auto key = std::pair(f->entity, f->flag);
    if (f->value != 0) {
      set[key] = marks.size();
      marks.push_back({f->t, std::max(f->t, last), "flag", who(f->entity) + " " + f->flag});
    } else if (const auto it = set.find(key); it != set.end()) {
      marks[it->second].to = f->t;
      set.erase(it);
    }
  }
  std::ranges::stable_sort(marks, {}, &TimeMark::from);
  if (marks.size() > marks_shown) marks.resize(marks_shown);
  return marks;
}

Evidence evidence_for(const PageInput& in, const verdict::Series& s, const std::set<std::int32_t>& named) {
  Evidence e;
  e.series = &s;
  std::set<std::int32_t> strata;
  for (const auto& row : s.rows)
    if (concerned(named, row.entity, row.source, row.destination)) strata.insert(row.stratum);
  for (const auto& row : s.rows)
    if (strata.contains(row.stratum) && !concerned(named, row.entity, row.source, row.destination))
      e.peers.push_back(row.median);
  for (const auto& c : in.results.cases) {
    if (c.suite != s.suite || results::base_name(c.name) != s.name) continue;
    const bool again = results::retest_number(c.name) > 0;
    add_samples(c, s.metric, named, again ? e.again : e.own, again ? e.again_at : e.own_at);
  }
  e.own_at = thinned_in_time(std::move(e.own_at), samples_drawn);
  e.again_at = thinned_in_time(std::move(e.again_at), samples_drawn);
  e.peer_count = e.peers.size();
  e.peers = thinned(std::move(e.peers), peers_drawn);
  e.own = thinned(std::move(e.own), samples_drawn);
  e.again = thinned(std::move(e.again), samples_drawn);
  return e;
}

}  // namespace

std::vector<double> thinned(std::vector<double> values, std::size_t most) {
  std::sort(values.begin(), values.end());
  if (values.size() <= most) return values;
  std::vector<double> out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(values[i * (values.size() - 1) / (most - 1)]);
  return out;
}

std::vector<Evidence> evidence_of(const PageInput& in, const Seen& seen, std::size_t most) {
  const auto& j = in.judgement;
  std::map<std::string, const verdict::Series*> series;
  for (const auto& s : j.series) series.try_emplace(s.full(), &s);
  const auto& findings = in.verdict.findings;
  const Rows rows = rows_of(j, findings);
  Spans spans;
  if (!findings.empty())
    for (const CaseSpan& s : spans_of(in.results)) spans[s.suite + "/" + s.name] = {s.from, s.to};
  std::vector<Evidence> all;
  for (std::size_t i = 0; i < findings.size() && all.size() < most; ++i) {
    const auto& f = findings[i];
    const auto it = series.find(f.metric);
    if (it == series.end()) continue;
    Evidence e = evidence_for(in, *it->second, named_by(j, f, rows));
    e.finding = i;
    if (!e.own_at.empty() || !e.again_at.empty()) e.marks = marks_of(in.results, spans, seen.near(f.name));
    if (!e.own.empty() || !e.again.empty()) all.push_back(std::move(e));
  }
  return all;
}

}  // namespace assay::report
