// SPDX-License-Identifier: Apache-2.0
#include "verdict/explain.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "measure/statistics.hpp"
#include "verdict/baseline.hpp"
#include "verdict/constants.hpp"
#include "verdict/history.hpp"
#include "verdict/judgement.hpp"
#include "verdict/limits.hpp"
#include "verdict/reference_scores.hpp"
#include "verdict/retest/samples.hpp"

namespace assay::verdict {
namespace {

/// The part and what is below it; links are told at both of their ends.
std::set<std::int32_t> family_of(const EntityIndex& entities, std::int32_t row) {
  std::set<std::int32_t> family{row};
  for (std::size_t i = 0; i < entities.size(); ++i) {
    const auto own = static_cast<std::int32_t>(i);
    if (entities.kind(row) == "node" && entities.node(own) == row) family.insert(own);
  }
  return family;
}

bool concerns(const SeriesRow& row, const std::set<std::int32_t>& family) {
  return family.contains(row.entity) || family.contains(row.source) || family.contains(row.destination);
}

void add_peers(MetricEvidence& e, const Series& s, const SeriesRow& row) {
  std::vector<double> others;
  const bool higher = s.better == results::Better::higher;
  std::size_t slower = 0;
  for (const auto& other : s.rows) {
    if (other.stratum != row.stratum) continue;
    ++e.of;
    if (&other == &row) continue;
    others.push_back(other.median);
    slower += (higher ? other.median < row.median : other.median > row.median) ? 1 : 0;
  }
  e.rank = slower + 1;
  if (others.empty()) return;
  e.peers = median(others);
  if (e.peers > 0 && row.median > 0) e.peers_deficit = deficit_of(row.median, e.peers, higher);
}

void add_limits(MetricEvidence& e, const Judgement& j, const std::vector<Limit>& limits, const Series& s) {
  for (const auto& l : limits) {
    if (l.metric != s.metric || !glob(l.case_glob, s.suite + "/" + s.name)) continue;
    const std::string where = " (" + j.options.limits_name + ":" + std::to_string(l.line) +
                              (l.device == "*" ? "" : ", " + l.device) + ")";
    if (l.has_min) e.limits.push_back("min " + l.min_text + where);
    if (l.has_max) e.limits.push_back("max " + l.max_text + where);
  }
}

void add_retest_samples(MetricEvidence& e, const Judgement& j, const Series& s, const SeriesRow& row) {
  for (const auto& c : j.results.cases) {
    if (retest_number(c.name) == 0 || c.suite != s.suite || base_name(c.name) != s.name) continue;
    const auto* m = c.find(s.metric);
    for (std::size_t r = 0; m != nullptr && r < c.entity.size(); ++r) {
      if (c.entity[r] != row.entity) continue;
      const auto values = values_of(samples_of(c, *m, r));
      if (!values.empty())
        e.retests.push_back({c.path(), median(values), static_cast<std::int64_t>(values.size())});
    }
  }
}

/// What baseline and history hold for one score of the run.
class Held {
 public:
  Held(const Judgement& j, const Snapshot& now) : now_(now) {
    if (j.options.baseline)
      for (const auto& v : j.options.baseline->values)
        baseline_[v.metric + '\n' + v.case_key + '\n' + v.stratum] = &v;
    history_ = j.options.history;
    if (j.options.earlier)
      history_ = std::make_shared<const History>(history_of(*j.options.earlier, now, j.options.history_name));
  }
  void add(MetricEvidence& e, std::size_t origin, std::int32_t entity) const {
    for (const auto& s : now_.series) {
      if (s.origin != origin) continue;
      const auto scores = scores_of(now_, s);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const Part& part = now_.part(scores[i].part);
        if (part.entities.empty() || part.entities.front() != entity) continue;
        add_baseline(e, s, scores[i]);
        add_history(e, s, scores[i], i);
      }
    }
  }

 private:
  void add_baseline(MetricEvidence& e, const SnapshotSeries& s, const Score& score) const {
    const auto at = baseline_.find(s.full() + '\n' + s.case_key + '\n' +
                                   s.strata[static_cast<std::size_t>(score.stratum)]);
    if (at == baseline_.end()) return;
    e.baseline = value_of(at->second->log_rate, s.higher_is_better);
    e.baseline_deficit = -std::expm1(score.log_rate - at->second->log_rate);
  }
  void add_history(MetricEvidence& e, const SnapshotSeries& s, const Score& score, std::size_t i) const {
    if (!history_) return;
    for (const auto& h : history_->series) {
      if (h.metric != s.full() || h.case_key != s.case_key || i >= h.base.size() || std::isnan(h.base[i]))
        continue;
      e.history = value_of(h.base[i], s.higher_is_better);
      e.history_deficit = -std::expm1(score.log_rate - static_cast<double>(h.base[i]));
      e.history_threshold = -std::expm1(-h.threshold);
    }
  }
  const Snapshot& now_;
  std::map<std::string, const BaselineValue*> baseline_;
  std::shared_ptr<const History> history_;
};

MetricEvidence evidence_of(const Judgement& j, const Series& s, const SeriesRow& row,
                           const std::vector<Limit>& limits) {
  MetricEvidence e;
  e.metric = s.full();
  e.unit = s.unit;
  e.part = name_of(j, row);
  e.stratum = s.strata[static_cast<std::size_t>(row.stratum)];
  e.value = row.median;
  e.n = row.n;
  if (!std::isnan(row.claim_error)) {
    e.low = row.median - constants::interval_z * row.claim_error;
    e.high = row.median + constants::interval_z * row.claim_error;
  }
  add_limits(e, j, limits, s);
  if (s.judged) add_peers(e, s, row);
  add_retest_samples(e, j, s, row);
  return e;
}

template <class Row>
void keep(const std::vector<Row>& all, const std::set<std::int32_t>& family, std::vector<Row>& out) {
  for (const auto& row : all)
    if (family.contains(row.entity)) out.push_back(row);
}

/// Whether a finding is about the part: by name or as a member, or about something below it.
bool about(const results::Finding& f, const EntityIndex& entities, const std::set<std::int32_t>& family) {
  for (const auto row : family) {
    const std::string name = entities.name(row);
    if (f.name == name || f.name.starts_with(name + ">") || f.name.ends_with(">" + name)) return true;
    if (std::find(f.members.begin(), f.members.end(), name) != f.members.end()) return true;
  }
  return false;
}

}  // namespace

std::optional<Explanation> explain(const results::Results& results, const results::VerdictData& verdict,
                                   const Options& options, const std::string& name) {
  const auto found = std::find_if(results.entities.begin(), results.entities.end(), [&](const auto& e) {
    return e.name == name || (!e.id.empty() && e.id == name) || e.name == e.kind + ":" + name;
  });
  if (found == results.entities.end()) return std::nullopt;
  Judgement j(results, options);
  collect_series(j, true);
  const auto row = static_cast<std::int32_t>(found - results.entities.begin());
  const auto family = family_of(j.entities, row);
  Explanation out;
  out.entity = *found;
  out.node = j.entities.valid(j.entities.node(row)) ? j.entities.name(j.entities.node(row)) : "";
  for (const auto& s : verdict.entities) {
    if (s.entity != row) continue;
    out.state = s.state;
    out.reason = s.reason;
  }
  for (const auto& f : verdict.findings)
    if (about(f, j.entities, family) || found->kind == "cluster") out.findings.push_back(f);
  const auto limits = options.limits_text.empty() ? std::vector<Limit>{}
                                                  : parse_limits(options.limits_text, options.limits_name);
  const Snapshot now = snapshot_of(j, "");
  const Held held(j, now);
  for (std::size_t i = 0; i < j.series.size(); ++i) {
    for (const auto& r : j.series[i].rows) {
      if (!concerns(r, family)) continue;
      out.metrics.push_back(evidence_of(j, j.series[i], r, limits));
      held.add(out.metrics.back(), i, r.entity);
    }
  }
  std::stable_sort(out.metrics.begin(), out.metrics.end(), [](const auto& a, const auto& b) {
    const auto key = [](const MetricEvidence& e) {
      return std::isnan(e.peers_deficit) ? -1e300 : e.peers_deficit;
    };
    return key(a) > key(b);
  });
  keep(results.counters, family, out.counters);
  std::erase_if(out.counters, [](const auto& c) {
    return c.before == c.after || (std::isnan(c.before) && std::isnan(c.after));
  });
  keep(results.events, family, out.events);
  keep(results.errors, family, out.errors);
  return out;
}

}  // namespace assay::verdict
