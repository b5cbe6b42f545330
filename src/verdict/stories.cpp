// SPDX-License-Identifier: Apache-2.0
#include "verdict/stories.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "verdict/constants.hpp"

namespace assay::verdict {
namespace {

bool joins(const Judgement& j, const results::Finding& f) {
  if (f.metric.empty() || f.severity == "INFO" || f.unit == "count") return false;
  // What a bound says of a collective is looked up by its metric (bisection.cpp).
  const Series* s = series_of(j, f);
  const bool bound = f.reference_kind == "limit" || f.reference_kind == "physical";
  return !bound || s == nullptr || !s->is_of(results::MetricClass::collective);
}

/// Whom a finding is about. Of the cluster there are findings of several groups: one that fails is not the
/// one that warns, nor is a loss of all parts one of some.
std::string subject_of(const results::Finding& f) {
  if (f.level != "cluster") return f.id.empty() ? f.name : f.id;
  return f.severity + ' ' + f.kind + (f.members.empty() ? " of all" : "");
}

void join_metrics(Judgement& j, std::size_t from) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::vector<std::size_t>> stories;
  for (std::size_t i = from; i < j.found.size(); ++i) {
    const auto& f = j.found[i].finding;
    if (joins(j, f)) stories[{f.reference_kind, f.level, subject_of(f), f.suite}].push_back(i);
  }
  std::set<std::size_t> told;
  for (auto& [key, of] : stories) {
    if (of.size() < 2) continue;
    std::stable_sort(of.begin(), of.end(), [&](std::size_t a, std::size_t b) {
      const auto &x = j.found[a].finding, &y = j.found[b].finding;
      // What shows for longer may be acted on sooner.
      return std::tuple(x.severity != "FAIL", x.since, -x.deficit.value_or(0)) <
             std::tuple(y.severity != "FAIL", y.since, -y.deficit.value_or(0));
    });
    auto& lead = j.found[of.front()];
    lead.finding.text += ", and so in " + std::to_string(of.size() - 1) + " other metric" +
                         (of.size() > 2 ? "s" : "") + " of " + lead.finding.suite;
    std::set<std::string> members(lead.finding.members.begin(), lead.finding.members.end());
    for (std::size_t k = 1; k < of.size(); ++k) {
      const auto& other = j.found[of[k]];
      if (k <= 3)
        lead.finding.text += (k == 1 ? ": " : ", ") +
                             other.finding.metric.substr(lead.finding.suite.size() + 1) + " " +
                             percent(other.finding.deficit.value_or(0));
      lead.inconclusive = lead.inconclusive || other.inconclusive;
      lead.rows.insert(lead.rows.end(), other.rows.begin(), other.rows.end());
      for (const auto& member : other.finding.members)
        if (members.insert(member).second) lead.finding.members.push_back(member);
      told.insert(of[k]);
    }
  }
  leave_out(j, told);
}

/// The parts of the finding's kind below a node that its metric was measured of.
std::set<std::int32_t> parts_of(const Judgement& j, const results::Finding& f, std::int32_t node) {
  std::set<std::int32_t> parts;
  if (const Series* s = series_of(j, f); s != nullptr)
    for (const auto& row : s->rows)
      if (j.entities.node(row.entity) == node && j.entities.kind(row.entity) == f.level)
        parts.insert(row.entity);
  return parts;
}

void join_nodes(Judgement& j, std::size_t from) {
  using Alike = std::tuple<std::string, std::string, std::string, std::string, std::int32_t>;
  std::map<Alike, std::vector<std::size_t>> nodes;
  for (std::size_t i = from; i < j.found.size(); ++i) {
    const auto& [f, inconclusive, rows] = j.found[i];
    if (!joins(j, f) || (f.kind != "slow" && f.kind != "drift") || f.level == "link" || f.level == "node" ||
        rows.empty())
      continue;
    const auto node = j.entities.node(rows.front());
    if (node >= 0) nodes[{f.reference_kind, f.level, f.suite, f.severity, node}].push_back(i);
  }
  std::set<std::size_t> told;
  for (const auto& [key, of] : nodes) {
    const auto node = std::get<std::int32_t>(key);
    std::set<std::int32_t> slow;
    for (const auto i : of) slow.insert(j.found[i].rows.front());
    auto& lead = j.found[*std::max_element(of.begin(), of.end(), [&](std::size_t a, std::size_t b) {
      return j.found[a].finding.deficit.value_or(0) < j.found[b].finding.deficit.value_or(0);
    })];
    if (slow.size() < 2 || slow != parts_of(j, lead.finding, node)) continue;
    for (const auto i : of) {
      lead.finding.members.push_back(j.found[i].finding.name);
      if (&j.found[i] == &lead) continue;
      lead.rows.insert(lead.rows.end(), j.found[i].rows.begin(), j.found[i].rows.end());
      told.insert(i);
    }
    lead.rows.insert(lead.rows.begin(), node);
    const auto about = j.about(node, lead.finding.severity, lead.finding.claim, lead.finding.kind);
    lead.finding.level = about.level;
    lead.finding.name = about.name;
    lead.finding.id = about.id;
    lead.finding.text =
        lead.finding.name + ": all of its " + std::to_string(slow.size()) +
        (lead.finding.kind == "drift" ? " parts lost speed; worst " : " parts are slow; worst ") +
        lead.finding.text;
  }
  leave_out(j, told);
}

/// More parts than a list of findings can show, which lost speed against their past, are one finding.
void join_crowd(Judgement& j, std::size_t from) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::size_t>> crowds;
  for (std::size_t i = from; i < j.found.size(); ++i) {
    const auto& f = j.found[i].finding;
    if (joins(j, f) && f.kind == "drift" && f.reference_kind == "history" && f.level != "cluster")
      crowds[{f.level, f.suite, f.severity}].push_back(i);
  }
  std::set<std::size_t> told;
  for (const auto& [key, of] : crowds) {
    if (of.size() <= constants::list_members) continue;
    auto& lead = j.found[*std::max_element(of.begin(), of.end(), [&](std::size_t a, std::size_t b) {
      return j.found[a].finding.deficit.value_or(0) < j.found[b].finding.deficit.value_or(0);
    })];
    std::vector<std::string> names, members;
    for (const auto i : of) {
      const auto& f = j.found[i].finding;
      names.push_back(f.name);
      members.insert(members.end(), f.members.begin(), f.members.end());
      if (&j.found[i] == &lead) continue;
      lead.rows.insert(lead.rows.end(), j.found[i].rows.begin(), j.found[i].rows.end());
      told.insert(i);
    }
    lead.finding.text =
        "cluster: " + std::to_string(of.size()) + (lead.finding.level == "node" ? " nodes" : " parts") +
        " are below their own history; worst " + lead.finding.text + "; members " + first_of(names);
    members.insert(members.begin(), names.begin(), names.end());
    lead.finding.members = std::move(members);
    lead.finding.level = lead.finding.name = "cluster";
    lead.finding.id.clear();
    lead.finding.part.clear();
  }
  leave_out(j, told);
}

}  // namespace

void leave_out(Judgement& j, const std::set<std::size_t>& numbers) {
  std::vector<Found> kept;
  for (std::size_t i = 0; i < j.found.size(); ++i)
    if (!numbers.contains(i)) kept.push_back(std::move(j.found[i]));
  j.found = std::move(kept);
}

void join_stories(Judgement& j, std::size_t from) {
  join_metrics(j, from);
  join_nodes(j, from);
  join_crowd(j, from);
}

}  // namespace assay::verdict
