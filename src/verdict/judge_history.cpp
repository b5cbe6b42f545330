// SPDX-License-Identifier: Apache-2.0
// The judgement of a run by its history, and the form in which that is stored.
#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/error.hpp"
#include "base/units.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/history.hpp"
#include "verdict/history_level.hpp"
#include "verdict/pack.hpp"
#include "verdict/peer_findings.hpp"
#include "verdict/reference_scores.hpp"

namespace assay::verdict {
namespace {

[[noreturn]] void damaged() { throw Error(ErrorKind::data, "/verdict/inputs: the history in it is damaged"); }

/// How far the whole fleet is from its past now; NaN where there are too few nodes to tell.
double drift_now(const Snapshot& now, const std::vector<Score>& scores, const HistorySeries& h) {
  std::vector<double> changes;
  std::set<std::int32_t> nodes;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(h.base[i])) continue;
    changes.push_back(scores[i].log_rate - static_cast<double>(h.base[i]));
    nodes.insert(now.part(scores[i].part).node);
  }
  return nodes.size() < constants::fleet_min_nodes ? results::not_taken
                                                   : drift_of(changes, std::isnan(h.scale) ? 0.0 : h.scale);
}

/// What all parts lost or gained is taken out of the history of each, and told from half a percent on.
std::string taken_out(double drift) {
  constexpr double least = 0.005;
  if (std::abs(drift) < least) return {};
  const std::string change = percent(std::abs(std::expm1(drift)));
  return drift < 0 ? " less the " + change + " that all parts lost"
                   : " with the " + change + " that all parts gained";
}

struct Change {
  const Part* part;
  const Score* score;
  double base, deficit;
  const Shifted* before;
};

class HistoryJudge {
 public:
  HistoryJudge(Judgement& j, const Snapshot& now, const History& history)
      : j_(j), now_(now), history_(history) {}

  void run() {
    std::unordered_map<std::string, const HistorySeries*> known;
    for (const auto& h : history_.series) known[h.metric + '\n' + h.case_key] = &h;
    auto [held, unknown] = judge_totals(j_, now_, history_);
    std::set<std::int32_t> parts, with_past;  // of metrics that earlier runs have
    for (const auto& s : now_.series) {
      const auto at = known.find(s.full() + '\n' + s.case_key);
      if (at == known.end()) continue;
      const auto scores = scores_of(now_, s);
      const auto& base = at->second->base;
      if (scores.size() != base.size()) damaged();
      judge(s, scores, *at->second);
      for (std::size_t i = 0; i < base.size(); ++i) {
        parts.insert(scores[i].part);
        if (!std::isnan(base[i])) with_past.insert(scores[i].part);
      }
      if (std::isnan(at->second->threshold))
        ++unknown;
      else if (std::ranges::any_of(base, [](float b) { return !std::isnan(b); }))
        ++held;
    }
    tell_injected();
    tell_parts_without_past(parts.size() - with_past.size(), parts.size());
    if (unknown == 0 && (held > 0 || !parts.empty())) return;
    auto f = j_.about(-1, "INFO", "fact", "uncovered");
    f.reference_kind = "history";
    f.text = "history " + history_.name + ": " +
             (history_.runs.empty() ? "it has no earlier run"
              : unknown > 0 ? count(static_cast<std::int64_t>(history_.runs.size()), "run has", "runs have") +
                                  " too few values of " + std::to_string(unknown) + " of " +
                                  count(static_cast<std::int64_t>(unknown + held), "metric", "metrics") +
                                  " to compare parts with; " + std::to_string(history_least) + " are needed"
                            : "none of its runs has the same case_key");
    j_.add(std::move(f), {});
  }

 private:
  void tell_injected() {
    if (history_.injected.empty()) return;
    auto f = j_.about(-1, "INFO", "fact", "uncovered");
    f.reference_kind = "history";
    f.text =
        "history " + history_.name + ": left out, since faults were injected: " + first_of(history_.injected);
    j_.add(std::move(f), {});
  }

  /// New parts, or old ones under another name or another layout of ranks.
  void tell_parts_without_past(std::size_t without, std::size_t of) {
    if (without == 0) return;
    auto f = j_.about(-1, "INFO", "fact", "uncovered");
    f.reference_kind = "history";
    f.text = "history " + history_.name + ": " + std::to_string(without) + " of " + std::to_string(of) +
             " parts are in none of its runs";
    j_.add(std::move(f), {});
  }

  void judge(const SnapshotSeries& s, const std::vector<Score>& scores, const HistorySeries& h) {
    const double drift = drift_now(now_, scores, h);
    // No other part shows the drift of the fleet: a change must be larger by what that usually is.
    const double threshold = h.threshold + (std::isnan(drift) ? 3 * h.fleet : 0.0);
    double off = std::isnan(drift) ? 0 : drift;
    if (-off > fleet_threshold(static_cast<std::size_t>(h.levels), h.fleet)) {
      if (drifted_together(scores, h, -off))
        tell_drift(s, h, scores, -off);
      else
        off = 0;
    }
    if (std::isnan(threshold)) return;
    std::unordered_map<std::size_t, const Shifted*> shifted;
    for (const auto& shift : h.shifted) shifted[shift.score] = &shift;
    std::vector<Change> changes;
    std::vector<const Part*> held;
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (!std::isnan(h.base[i])) held.push_back(&now_.part(scores[i].part));
    mark_references(j_, s, held, Reference::history);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double value = scores[i].log_rate - off;
      const auto before = shifted.find(i);
      const Part* part = &now_.part(scores[i].part);
      if (before != shifted.end() && before->second->base - value > threshold) {
        changes.push_back(
            {part, &scores[i], before->second->base, before->second->base - value, before->second});
      } else if (!std::isnan(h.base[i]) && static_cast<double>(h.base[i]) - value > threshold) {
        changes.push_back({part, &scores[i], h.base[i], static_cast<double>(h.base[i]) - value, nullptr});
      }
    }
    // Parts that are as they were while all others got faster did not lose anything.
    const double raise = off > fleet_threshold(static_cast<std::size_t>(h.levels), h.fleet) ? off : 0;
    const auto behind = std::stable_partition(changes.begin(), changes.end(), [&](const Change& change) {
      return raise == 0 || change.deficit - raise > threshold;
    });
    if (behind != changes.end()) tell_raise(s, h, {behind, changes.end()}, held.size(), raise);
    changes.erase(behind, changes.end());
    for (const auto& change : changes) report(s, h, change, off, threshold, changes.size());
  }

  /// Whether nearly all parts changed by half of the fleet's median change or more. Else some did and others
  /// did not: each is told by itself.
  static bool drifted_together(const std::vector<Score>& scores, const HistorySeries& h, double deficit) {
    constexpr double nearly_all = 0.9;
    std::size_t all = 0, changed = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (std::isnan(h.base[i])) continue;
      ++all;
      changed += static_cast<double>(h.base[i]) - scores[i].log_rate > deficit / 2 ? 1U : 0U;
    }
    return static_cast<double>(changed) >= nearly_all * static_cast<double>(all);
  }

  /// Whether a limit that names this part covers the metric: then its owner knows.
  bool accepted(const SnapshotSeries& s, const Change& change) const {
    const auto& rows = j_.series[s.origin].rows;
    const auto entity = change.part->entities.empty() ? -1 : change.part->entities.front();
    return std::any_of(rows.begin(), rows.end(),
                       [&](const SeriesRow& row) { return row.entity == entity && row.accepted; });
  }

  void report(const SnapshotSeries& s, const HistorySeries& h, const Change& change, double drift,
              double threshold, std::size_t candidates) {
    const double delta = log_deficit(s.fault_threshold);
    const double error =
        std::hypot(h.scale, std::isnan(change.score->standard_error) ? 0.0 : change.score->standard_error);
    Claim c = claim_of(change.deficit, error, change.score->n);
    bool retested = false;
    if (change.before != nullptr && change.before->alert && change.deficit > delta) {
      RetestRate retest = retest_rate(j_, j_.series[s.origin], *change.part, *change.score);
      // The night before is a measurement of its own, too.
      const double t =
          t_quantile(1 - constants::alpha_retest / static_cast<double>(std::max<std::size_t>(candidates, 1)),
                     constants::retest_degrees);
      retest.before = change.before->last - t * h.scale > delta;
      c = settle_claim(j_, *change.score, change.deficit, error, delta, retest,
                       change.base + drift - retest.log_rate, std::hypot(retest.standard_error, h.scale),
                       candidates);
      retested = retest.measured;
    }
    const std::int32_t in_a_row = change.before == nullptr ? 1 : change.before->runs + 1;
    auto f = reference_finding(j_, s, *change.part, *change.score, c, change.base + drift, "drift",
                               "own history of " + count(h.runs, "run", "runs") + taken_out(drift));
    f.claim = "abnormality";
    f.reference_kind = "history";
    f.controls = h.pairs;
    f.since = change.before != nullptr ? change.before->since : now_.source.started;
    if (retested && !c.fault && c.deficit <= threshold) note_cleared(f, s, *change.score);
    f.text += ", threshold " + percent(-std::expm1(-threshold)) + ", in " + std::to_string(in_a_row) +
              (in_a_row == 1 ? " run" : " runs in a row") + ", since " + f.since;
    if (change.before != nullptr && accepted(s, change)) {
      f.severity = "INFO";
      f.confirm("");
      f.text += ", accepted by a limit that names it";
    }
    j_.add(std::move(f), change.part->entities);
  }

  void tell_raise(const SnapshotSeries& s, const HistorySeries& h, const std::vector<Change>& behind,
                  std::size_t of, double raise) {
    auto f = drift_finding(j_, now_, s, raise, "");
    std::vector<std::int32_t> rows;
    f.samples = 0;
    for (const auto& change : behind) {
      f.members.push_back(change.part->name);
      *f.samples += change.score->n;
      rows.insert(rows.end(), change.part->entities.begin(), change.part->entities.end());
    }
    f.controls = static_cast<std::int64_t>(of - behind.size());
    f.action = "MONITOR";
    f.text = "cluster: " + s.full() + " of " + std::to_string(of - behind.size()) + " of " +
             std::to_string(of) + " parts together is " + percent(std::expm1(raise)) +
             " above their own history of " + count(h.runs, "run", "runs") +
             "; as before: " + first_of(f.members);
    j_.add(std::move(f), rows);
  }

  void tell_drift(const SnapshotSeries& s, const HistorySeries& h, const std::vector<Score>& scores,
                  double deficit) {
    auto f = drift_finding(j_, now_, s, deficit, h.fleet_since);
    f.controls = static_cast<std::int64_t>(scores.size());
    f.text = "cluster: " + s.full() + " of all parts together is " + percent(*f.deficit) +
             " below their own history of " + count(h.runs, "run", "runs") + ", since " + f.since;
    j_.add(std::move(f), {});
  }

  Judgement& j_;
  const Snapshot& now_;
  const History& history_;
};

/// Infinities and NaN have no form in JSON.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number_from(const Json& json) { return json.is_null() ? results::not_taken : json.get<double>(); }

}  // namespace

Json history_json(const History& history) {
  Json runs = Json::array(), series = Json::array();
  for (const auto& r : history.runs)
    runs.push_back(Json{{"file", r.file}, {"run_id", r.run_id}, {"started", r.started}, {"hash", r.hash}});
  for (const auto& h : history.series) {
    Json shifted = Json::array();
    for (const auto& s : h.shifted)
      shifted.push_back(Json{{"score", s.score},
                             {"runs", s.runs},
                             {"alert", s.alert},
                             {"base", s.base},
                             {"last", s.last},
                             {"since", s.since}});
    series.push_back(Json{{"metric", h.metric},
                          {"case_key", h.case_key},
                          {"null", h.null},
                          {"scale", number(h.scale)},
                          {"threshold", number(h.threshold)},
                          {"runs", h.runs},
                          {"levels", h.levels},
                          {"fleet", number(h.fleet)},
                          {"fleet_since", h.fleet_since},
                          {"pairs", h.pairs},
                          {"shifted", std::move(shifted)},
                          {"base", to_base64(h.base)}});
  }
  Json totals = Json::array();
  for (const auto& t : history.totals) {
    if (t.node >= 0) continue;
    totals.push_back(Json{{"metric", t.metric},
                          {"case_key", t.case_key},
                          {"base", number(t.base)},
                          {"threshold", number(t.threshold)},
                          {"runs", t.runs},
                          {"since", t.since}});
  }
  return Json{{"name", history.name},         {"runs", std::move(runs)},
              {"injected", history.injected}, {"series", std::move(series)},
              {"totals", std::move(totals)},  {"node_totals", node_totals_json(history.totals)}};
}

History history_from(const Json& json) {
  try {
    History out;
    out.name = json.at("name");
    for (const auto& r : json.at("runs"))
      out.runs.push_back({r.at("file"), r.at("run_id"), r.at("started"), r.at("hash")});
    out.injected = json.value("injected", std::vector<std::string>{});  // absent in earlier versions
    for (const auto& s : json.at("series")) {
      HistorySeries h;
      h.metric = s.at("metric");
      h.case_key = s.at("case_key");
      h.null = s.at("null");
      h.scale = number_from(s.at("scale"));
      h.threshold = number_from(s.at("threshold"));
      h.fleet = number_from(s.at("fleet"));
      const auto all = static_cast<std::int64_t>(out.runs.size());
      h.runs = s.value("runs", all);  // absent before 0.2.0
      h.levels = s.value("levels", all);
      h.fleet_since = s.value("fleet_since", "");
      h.pairs = s.at("pairs");
      h.base = from_base64_as<float>(s.at("base"));
      for (const auto& at : s.at("shifted")) {
        h.shifted.push_back({at.at("score"), at.at("runs"), at.at("alert"), at.at("base"),
                             at.value("last", 0.0), at.at("since")});
        if (h.shifted.back().score >= h.base.size()) damaged();
      }
      out.series.push_back(std::move(h));
    }
    for (const auto& t : json.value("totals", Json::array()))  // absent before 0.2.0
      out.totals.push_back({t.at("metric"), t.at("case_key"), number_from(t.at("base")),
                            number_from(t.at("threshold")), t.at("runs"), t.at("since")});
    add_node_totals(out.totals, json.value("node_totals", Json::array()));  // absent before, too
    return out;
  } catch (const Json::exception&) {
    damaged();
  }
}

void judge_history(Judgement& j, const Snapshot& now, const History& history) {
  HistoryJudge(j, now, history).run();
}

}  // namespace assay::verdict
