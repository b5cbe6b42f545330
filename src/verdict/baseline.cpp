// SPDX-License-Identifier: Apache-2.0
#include "verdict/baseline.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.hpp"
#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/peer_findings.hpp"
#include "verdict/reference_scores.hpp"

namespace assay::verdict {
namespace {

using Key = std::tuple<std::string, std::string, std::string>;  ///< metric, case_key, stratum

std::string stratum_of(const SnapshotSeries& s, const Score& score) {
  return static_cast<std::size_t>(score.stratum) < s.strata.size()
             ? s.strata[static_cast<std::size_t>(score.stratum)]
             : "";
}

/// A part below its reference, before it becomes a finding of its own or of all.
struct Low {
  const Part* part;
  const Score* score;
  const BaselineValue* reference;
  double deficit, error;
  double reference_error;  ///< of the reference alone, beside the retest
};

/// With what is claimed of it.
struct Claimed {
  Low low;
  Claim claim;
  bool measured = false;  ///< in a retest
};

/// Parts of a metric whose stratum the baseline lacks, beside others that it holds.
struct Unheld {
  std::string metric;
  std::size_t parts, of;
  std::set<std::string> strata;
};

class BaselineJudge {
 public:
  BaselineJudge(Judgement& j, const Snapshot& now) : j_(j), now_(now), baseline_(*j.options.baseline) {
    for (const auto& v : baseline_.values) {
      known_[{v.metric, v.case_key, v.stratum}] = &v;
      keys_[v.metric].insert(v.case_key);
    }
  }

  void run() {
    for (const auto& file : baseline_.injected) tell("baseline " + file + ": faults were injected", "WARN");
    for (const auto& s : now_.series) judge(s);
    report_disagreement();
    report_unheld();
    report_absent();
  }

 private:
  void judge(const SnapshotSeries& s) {
    const auto scores = scores_of(now_, s);
    if (scores.empty()) return;
    std::vector<Low> low;
    std::vector<const Part*> held;
    Unheld unheld{s.full(), 0, scores.size(), {}};
    for (const auto& score : scores) {
      const auto at = known_.find({s.full(), s.case_key, stratum_of(s, score)});
      if (at == known_.end()) {
        ++unheld.parts;
        unheld.strata.insert(stratum_of(s, score));
        continue;
      }
      const auto& reference = *at->second;
      if (reference.range > log_deficit(constants::peers_note_deficit)) disagree_.insert(&reference);
      held.push_back(&now_.part(score.part));
      const double own = std::isnan(score.standard_error) ? results::not_taken : score.standard_error;
      const double reference_error =
          normal_median_error * reference.spread / std::sqrt(static_cast<double>(reference.parts));
      const double error = std::hypot(own, reference_error);
      const double deficit = reference.log_rate - score.log_rate;
      if (deficit > least(reference))
        low.push_back({held.back(), &score, &reference, deficit, error, reference_error});
    }
    if (held.empty()) {
      absent(s);
      return;
    }
    if (unheld.parts > 0) unheld_.push_back(std::move(unheld));
    mark_references(j_, s, held, Reference::baseline);
    std::vector<Claimed> all;
    for (const auto& l : low) all.push_back(claimed(s, l, low.size()));
    const auto are_most = [&] {
      return held.size() >= constants::population_min && 2 * all.size() > held.size() && all.size() > 1;
    };
    if (are_most()) spread_retests(s, all);
    // What the retest cleared is no member.
    const auto gone = std::stable_partition(all.begin(), all.end(),
                                            [](const Claimed& c) { return !c.measured || !is_open(c); });
    single(s, {gone, all.end()});
    all.erase(gone, all.end());
    if (!are_most()) return single(s, all);
    // What is at fault and what is only slower are told apart: a fault of one is none of the others.
    const auto last =
        std::stable_partition(all.begin(), all.end(), [](const Claimed& c) { return c.claim.fault; });
    for (const auto& group : {std::vector(all.begin(), last), std::vector(last, all.end())}) {
      if (group.size() > 1 && (2 * group.size() > held.size() || group.size() > constants::list_members))
        population(s, group, held.size());
      else
        single(s, group);
    }
  }

  /// Of many parts that are surely as slow, only some are measured again: where all of these are confirmed,
  /// so are the others.
  static void spread_retests(const SnapshotSeries& s, std::vector<Claimed>& all) {
    const double delta = log_deficit(s.fault_threshold);
    std::size_t measured = 0, faults = 0;
    for (const auto& c : all) {
      measured += c.measured ? 1 : 0;
      faults += c.measured && c.claim.fault ? 1 : 0;
    }
    if (measured < constants::population_min || faults < measured) return;
    for (auto& c : all)
      if (!c.measured && !c.claim.fault && c.low.deficit - constants::interval_z * c.low.error > delta) {
        c.claim.fault = true;
        c.claim.confirmed_by = "others";
      }
  }

  /// Healthy parts differ: a warning needs more than that.
  static double least(const BaselineValue& v) {
    return std::max(log_deficit(constants::delta_warn), 3 * v.spread);
  }

  /// Neither a fault nor surely slower: the retest does not confirm it, or it was noise.
  static bool is_open(const Claimed& c) {
    return !c.claim.fault && (c.claim.deficit < least(*c.low.reference) || c.claim.low <= 0);
  }

  Claimed claimed(const SnapshotSeries& s, const Low& l, std::size_t candidates) const {
    const double delta = log_deficit(s.fault_threshold);
    if (l.deficit <= delta) return {l, claim_of(l.deficit, l.error, l.score->n), false};
    const RetestRate retest = retest_rate(j_, j_.series[s.origin], *l.part, *l.score);
    return {
        l,
        settle_claim(j_, *l.score, l.deficit, l.error, delta, retest, l.reference->log_rate - retest.log_rate,
                     std::hypot(retest.standard_error, l.reference_error), candidates),
        retest.measured};
  }

  std::string what(const BaselineValue& v) const {
    return "baseline " + baseline_.name + " (" + std::to_string(v.parts) +
           (v.parts == 1 ? " part)" : " parts)");
  }

  void single(const SnapshotSeries& s, const std::vector<Claimed>& all) {
    for (const auto& one : all) {
      const auto& [l, c, measured] = one;
      const bool open = is_open(one);
      if (open && !measured) continue;
      auto f =
          reference_finding(j_, s, *l.part, *l.score, c, l.reference->log_rate, "slow", what(*l.reference));
      f.reference_kind = "baseline";
      f.controls = l.reference->parts;
      if (open) note_cleared(f, s, *l.score);
      j_.add(std::move(f), l.part->entities);
    }
  }

  /// One finding of parts that are all at fault, or all only slower.
  void population(const SnapshotSeries& s, const std::vector<Claimed>& low, std::size_t of) {
    const bool fault = low.front().claim.fault;
    std::vector<double> deficits, references;
    std::vector<std::int32_t> rows;
    const Claimed* worst = &low.front();
    std::vector<std::string> members;
    for (const auto& one : low) {
      const Low& l = one.low;
      deficits.push_back(one.claim.deficit);
      references.push_back(l.reference->log_rate);
      rows.insert(rows.end(), l.part->entities.begin(), l.part->entities.end());
      members.push_back(l.part->name);
      if (one.claim.deficit > worst->claim.deficit) worst = &one;
    }
    Claim c;
    c.deficit = median(deficits);
    c.low = c.high = results::not_taken;
    c.fault = fault;
    c.confirmed_by = low.front().claim.confirmed_by;
    for (const auto& one : low) c.n += one.claim.n;
    const Part& slowest = *worst->low.part;
    const std::string held_against = what(*worst->low.reference);
    auto f =
        reference_finding(j_, s, slowest, *worst->low.score, c, median(references), "slow", held_against);
    f.reference_kind = "baseline";
    f.level = f.name = "cluster";
    f.id.clear();
    f.members = members;
    f.text = "cluster: " + s.full() + " of " + std::to_string(low.size()) + " of " + std::to_string(of) +
             " parts is below " + held_against + ", median deficit " + percent(*f.deficit) + ", worst " +
             slowest.name + (fault ? "" : ", not confirmed");
    j_.add(std::move(f), rows);
  }

  void absent(const SnapshotSeries& s) {
    const auto at = keys_.find(s.full());
    if (at == keys_.end()) {
      unknown_.push_back(s.full());
    } else {
      (at->second.contains(s.case_key) ? other_stratum_ : other_key_).push_back(s.full());
    }
  }

  void tell(const std::string& text, const std::string& severity) {
    auto f = j_.about(-1, severity, "fact", "mismatch");
    f.reference_kind = "baseline";
    f.action = severity == "INFO" ? "" : "CONFIG";
    f.text = text;
    j_.add(std::move(f), {});
  }

  static std::string first_of(const std::vector<std::string>& names) {
    return names.front() + (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more" : "");
  }

  /// The median of parts that are so different is no measure of a healthy one.
  void report_disagreement() {
    if (disagree_.empty()) return;
    const auto& worst = **std::max_element(disagree_.begin(), disagree_.end(),
                                           [](auto a, auto b) { return a->range < b->range; });
    std::set<std::string> metrics;  // one may have several strata
    for (const auto* value : disagree_) metrics.insert(value->metric);
    const auto others = static_cast<std::int64_t>(metrics.size()) - 1;
    tell("baseline " + baseline_.name + ": its " + std::to_string(worst.parts) + " parts differ by " +
             percent(-std::expm1(-worst.range)) + " in " + worst.metric +
             (others > 0 ? " and in " + count(others, "other metric", "other metrics") : "") +
             ": not all of them were healthy, or not alike",
         "WARN");
  }

  /// One finding of all metrics, told by the one that lacks most.
  void report_unheld() {
    if (unheld_.empty()) return;
    const auto& most = *std::ranges::max_element(unheld_, {}, &Unheld::parts);
    std::vector<std::string> names(most.strata.begin(), most.strata.end());
    std::erase(names, "");
    const auto others = static_cast<std::int64_t>(unheld_.size()) - 1;
    tell("baseline " + baseline_.name + ": no reference for " + std::to_string(most.parts) + " of " +
             std::to_string(most.of) + " parts in " + most.metric +
             (others > 0 ? " and for some in " + count(others, "other metric", "other metrics") : "") +
             ": it has no part of their model" + (names.empty() ? "" : " (" + first_of(names) + ")"),
         "WARN");
  }

  void report_absent() {
    const std::string name = "baseline " + baseline_.name + ": ";
    if (!other_key_.empty())
      tell(name + "no reference for " + first_of(other_key_) +
               ": another case_key (size, type, algorithm, library or path)",
           "WARN");
    if (!other_stratum_.empty())
      tell(name + "no reference for " + first_of(other_stratum_) + ": it has no part of this model", "WARN");
    if (!unknown_.empty()) tell(name + "has no values of " + first_of(unknown_), "INFO");
    const bool any =
        std::any_of(now_.series.begin(), now_.series.end(), [](const auto& s) { return !s.shared; });
    const std::size_t absent = other_key_.size() + other_stratum_.size() + unknown_.size();
    const auto judged =
        std::count_if(now_.series.begin(), now_.series.end(), [](const auto& s) { return !s.shared; });
    if (any && static_cast<std::size_t>(judged) == absent) j_.gap(name + "has no metric of this run");
  }

  Judgement& j_;
  const Snapshot& now_;
  const Baseline& baseline_;
  std::map<Key, const BaselineValue*> known_;
  std::map<std::string, std::set<std::string>> keys_;
  std::set<const BaselineValue*> disagree_;
  std::vector<std::string> other_key_, other_stratum_, unknown_;
  std::vector<Unheld> unheld_;
};

}  // namespace

Baseline baseline_of(const std::vector<Snapshot>& runs, const std::string& name) {
  Baseline out;
  out.name = name;
  std::map<Key, std::unordered_map<std::string, std::vector<double>>> parts;
  for (const auto& run : runs) {
    out.runs.push_back(run.source);
    if (run.injected) out.injected.push_back(run.source.file);
    for (const auto& s : run.series) {
      for (const auto& score : scores_of(run, s)) {
        const Part& part = run.part(score.part);
        parts[{s.full(), s.case_key, stratum_of(s, score)}][part.kind + '\n' + part.id].push_back(
            score.log_rate);
      }
    }
  }
  for (const auto& [key, by_part] : parts) {
    std::vector<double> rates;
    for (const auto& [id, values] : by_part) rates.push_back(median(values));
    BaselineValue v;
    std::tie(v.metric, v.case_key, v.stratum) = key;
    v.log_rate = median(rates);
    v.spread = rates.size() >= 3 ? mad_sigma(rates) : 0;
    v.parts = static_cast<std::int64_t>(rates.size());
    const bool links = by_part.begin()->first.starts_with("link\n");
    if (!links && rates.size() >= constants::peers_min_population)
      v.range = quantile(rates, 0.75) - quantile(rates, 0.25);
    else if (!links)
      v.range = *std::max_element(rates.begin(), rates.end()) - *std::min_element(rates.begin(), rates.end());
    out.values.push_back(std::move(v));
  }
  out.totals = baseline_totals_of(runs);
  return out;
}

Json baseline_json(const Baseline& baseline) {
  Json runs = Json::array(), values = Json::array(), totals = Json::array();
  for (const auto& r : baseline.runs)
    runs.push_back(Json{{"file", r.file}, {"run_id", r.run_id}, {"started", r.started}, {"hash", r.hash}});
  for (const auto& v : baseline.values) {
    values.push_back(Json{{"metric", v.metric},
                          {"case_key", v.case_key},
                          {"stratum", v.stratum},
                          {"log_rate", v.log_rate},
                          {"spread", v.spread},
                          {"parts", v.parts},
                          {"range", v.range}});
  }
  for (const auto& t : baseline.totals)
    totals.push_back(Json{{"metric", t.metric},
                          {"case_key", t.case_key},
                          {"log_rate", t.log_rate},
                          {"spread", t.spread},
                          {"ranks", t.ranks},
                          {"runs", t.runs}});
  return Json{{"name", baseline.name},
              {"runs", runs},
              {"injected", baseline.injected},
              {"values", values},
              {"totals", totals}};
}

Baseline baseline_from(const Json& json) {
  try {
    Baseline out;
    out.name = json.at("name");
    out.injected = json.at("injected").get<std::vector<std::string>>();
    for (const auto& r : json.at("runs"))
      out.runs.push_back({r.at("file"), r.at("run_id"), r.at("started"), r.at("hash")});
    for (const auto& v : json.at("values")) {
      out.values.push_back({v.at("metric"), v.at("case_key"), v.at("stratum"), v.at("log_rate"),
                            v.at("spread"), v.at("parts"), v.value("range", 0.0)});
      if (out.values.back().parts < 1)
        throw Error(ErrorKind::data, "/verdict/inputs: the baseline has a value of no part");
    }
    for (const auto& t : json.value("totals", Json::array()))  // absent before 0.2.0
      out.totals.push_back(
          {t.at("metric"), t.at("case_key"), t.at("log_rate"), t.at("spread"), t.at("ranks"), t.at("runs")});
    return out;
  } catch (const Json::exception&) {
    throw Error(ErrorKind::data, "/verdict/inputs: the baseline in it is damaged");
  }
}

void judge_baseline(Judgement& j, const Snapshot& now) {
  if (j.options.baseline) {
    BaselineJudge(j, now).run();
    judge_baseline_totals(j, now);
  } else if (!j.options.baseline_name.empty()) {
    j.gap("baseline " + j.options.baseline_name +
          ": its values are not stored in this file: judge it again with --baseline");
  }
}

}  // namespace assay::verdict
