// SPDX-License-Identifier: Apache-2.0
#include "results/carry.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "results/case_name.hpp"
#include "results/described.hpp"
#include "results/disk.hpp"
#include "results/entity_tree.hpp"
#include "results/facts.hpp"
#include "results/iso_time.hpp"
#include "results/reader.hpp"
#include "results/resume.hpp"

namespace assay::results {
namespace {

namespace fs = std::filesystem;
using Key = std::pair<std::string, std::string>;

Key key_of(const Entity& e) { return {e.kind, e.id}; }

/// From rows of the earlier run to rows of this one; what is not there is added, below its own parents.
class Rows {
 public:
  Rows(const std::vector<Entity>& earlier, const std::vector<Entity>& now)
      : earlier_(earlier), all_(now), with_ranks_(nodes_with_ranks(now)) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      known_.emplace(key_of(all_[i]), static_cast<std::int32_t>(i));
      if (all_[i].kind == "node") nodes_.emplace(all_[i].name, static_cast<std::int32_t>(i));
    }
  }

  std::int32_t operator()(std::int32_t row) {
    if (row < 0 || static_cast<std::size_t>(row) >= earlier_.size()) return -1;
    Entity e = earlier_[static_cast<std::size_t>(row)];
    if (const auto at = known_.find(key_of(e)); at != known_.end()) return at->second;
    if (const auto at = nodes_.find(e.name); e.kind == "node" && at != nodes_.end() && is_same(e, at->second))
      return at->second;
    e.parent = e.parent < row ? (*this)(e.parent) : -1;  // a parent stands before its children
    e.rank = -1;                                         // it has none in this run
    const auto fresh = static_cast<std::int32_t>(all_.size());
    known_.emplace(key_of(e), fresh);
    all_.push_back(e);
    added_.push_back(std::move(e));
    return fresh;
  }
  /// Whether a row of the earlier run lies on a node on which this one has no rank.
  bool is_gone(std::int32_t row) {
    const std::int32_t node = node_above(earlier_, row);
    return node >= 0 && !with_ranks_.contains((*this)(node));
  }
  void move(std::vector<std::int32_t>& rows) {
    for (std::int32_t& row : rows) row = (*this)(row);
  }
  std::vector<Entity> take_added() { return std::exchange(added_, {}); }
  const std::vector<Entity>& all() const noexcept { return all_; }

 private:
  /// A node that was lost before it was described is known by its host name only.
  bool is_same(const Entity& e, std::int32_t node) const {
    return (e.id_source == "hostname") != (all_[static_cast<std::size_t>(node)].id_source == "hostname");
  }

  const std::vector<Entity>& earlier_;
  std::vector<Entity> all_, added_;
  std::map<Key, std::int32_t> known_;
  std::map<std::string, std::int32_t> nodes_;  ///< by name
  std::set<std::int32_t> with_ranks_;          ///< rows of nodes
};

std::set<std::string> planned(const std::vector<PlanRow>& plan) {
  std::set<std::string> out;
  for (const PlanRow& row : plan) {
    if (row.state == "planned") out.insert(row.suite + "/" + row.name);
  }
  return out;
}

/// What belongs to each case, by its path.
template <typename Row>
std::map<std::string, std::vector<Row>> by_case(const std::vector<Row>& rows) {
  std::map<std::string, std::vector<Row>> out;
  for (const Row& row : rows) out[row.case_path].push_back(row);
  return out;
}

/// The path of a case, or of the one that a retest measured again or that ranks did not finish.
std::string family(const CaseData& c) {
  return c.suite + "/" + (is_retest(c.name) ? base_name(c.name) : finished_name(c.name));
}

/// Which cases of an earlier run stand in this one, and which run again.
class Standing {
 public:
  Standing(const Results& earlier, const std::vector<PlanRow>& plan)
      : wanted_(planned(plan)), with_facts_(cases_with_facts(earlier)) {
    for (const CaseData& c : earlier.cases)
      if (c.state == CaseState::fail || with_facts_.contains(c.path())) showing_.insert(family(c));
  }

  bool is_planned(const CaseData& c) const { return wanted_.contains(family(c)); }
  /// What a case found that is not planned any more is not measured again: it stands, with its retests.
  bool contain(const CaseData& c) const { return is_planned(c) ? is_final(c) : showing_.contains(family(c)); }
  bool shows(const CaseData& c) const { return with_facts_.contains(c.path()); }

 private:
  std::set<std::string> wanted_, with_facts_, showing_;
};

constexpr std::string_view taken_over = " cases were taken over from run ";

/// Whether an event is of what was measured, and neither of the launch, which tells at 0 s what it finds, nor
/// of its end.
bool is_of_cases(const EventRow& e) {
  static const std::set<std::string> of_the_launch = {"aborted", "resumed", "inject", "inject-unfired"};
  return !(e.kind.starts_with("launch-") && e.t <= 0) && !of_the_launch.contains(e.kind);
}

/// What the launch found out about the whole job, by which the next one plans: how much memory there is in
/// time.
bool is_of_the_plan(const EventRow& e, const Results& earlier) {
  return e.kind.starts_with("launch-") && e.t <= 0 && e.finding == "uncovered" && e.entity >= 0 &&
         earlier.entities[static_cast<std::size_t>(e.entity)].kind == "cluster";
}

/// A fault that a case showed, also one that runs again or is not in this run; or that the launch found of a
/// node or device that is not here now.
bool is_fault(const EventRow& e, Rows& rows) {
  if (e.kind != "launch-fail" && e.finding != "corrupt") return false;
  return e.t > 0 || rows.is_gone(e.entity);
}

bool tells_of_taking_over(const EventRow& e) {
  return e.kind == "resumed" && e.text.find(taken_over) != std::string::npos;
}

/// Events name no case: those of a case are the ones of its time.
class TimesOfCases {
 public:
  TimesOfCases(const Results& earlier, const Standing& standing) {
    const auto opened = unix_seconds(earlier.info.started);
    for (const CaseData& c : earlier.cases) {
      // Events count from the first case on. Those taken over began before the file was opened.
      if (const auto begun = unix_seconds(c.started); opened && begun && *begun >= *opened)
        started_ = std::min(started_.value_or(*begun), *begun);
      const auto from = unix_seconds(c.started), to = unix_seconds(c.ended);
      if (standing.contain(c) && from && to)
        times_.emplace_back(*from - 1, *to + 1);  // whole seconds are stored
    }
  }
  bool contain(const EventRow& e) const {
    if (!started_) return false;
    const double at = static_cast<double>(*started_) + e.t;
    return std::any_of(times_.begin(), times_.end(), [&](const auto& time) {
      return static_cast<double>(time.first) <= at && at <= static_cast<double>(time.second);
    });
  }

 private:
  std::optional<std::int64_t> started_;
  std::vector<std::pair<std::int64_t, std::int64_t>> times_;
};

}  // namespace

Results load_earlier(const std::filesystem::path& path) {
  if (path.extension() == ".partial") {
    const auto owner = read_owner(path);
    if (owner && seems_to_run(path, *owner))
      throw_usage("--resume: " + path.string() + " is being written by process " +
                  std::to_string(owner->pid) + " on " + owner->host);
  }
  return load(path);
}

Writer::Start start_of(const Results& earlier) {
  Writer::Start then;
  then.info = earlier.info;
  then.config = earlier.config;
  then.plan = earlier.plan;
  then.entities = earlier.entities;
  return then;
}

void check_carry_over(const std::filesystem::path& path, const Results& earlier, const Writer::Start& now) {
  if (const std::string problem = carry_over_problem(start_of(earlier), now); !problem.empty())
    throw_usage("--resume " + path.string() + ": " + problem);
}

namespace {

/// The events that stand in a run that takes over `earlier`, with rows of this run.
std::vector<EventRow> kept_events(const Results& earlier, const Standing& standing, Rows& rows) {
  const TimesOfCases times(earlier, standing);
  std::vector<EventRow> events;
  // What the earlier run had itself taken over stands first, by the clock of another run.
  auto not_its_own = std::count_if(earlier.events.begin(), earlier.events.end(), tells_of_taking_over);
  for (EventRow e : earlier.events) {
    if (tells_of_taking_over(e)) --not_its_own;
    if (!mark_earlier(e) && e.kind != damage_event && !is_of_the_plan(e, earlier) && !is_fault(e, rows) &&
        !(is_of_cases(e) && (not_its_own > 0 || times.contain(e))))
      continue;
    e.entity = rows(e.entity);
    events.push_back(std::move(e));
  }
  return events;
}

/// Cases with what belongs to them, with rows of this run.
class Bundles {
 public:
  Bundles(const Results& earlier, Rows& rows)
      : errors_(by_case(earlier.errors)), counters_(by_case(earlier.counters)), rows_(rows) {}

  CaseBundle of(const CaseData& c) {
    CaseBundle bundle;
    bundle.data = c;
    for (auto* column : {&bundle.data.entity, &bundle.data.source, &bundle.data.destination})
      rows_.move(*column);
    bundle.errors = moved(errors_[c.path()]);
    bundle.counters = moved(counters_[c.path()]);
    return bundle;
  }

 private:
  template <class Row>
  std::vector<Row> moved(std::vector<Row>& from) {
    for (Row& row : from) row.entity = rows_(row.entity);
    return std::exchange(from, {});
  }

  std::map<std::string, std::vector<Miscompare>> errors_;
  std::map<std::string, std::vector<CounterRow>> counters_;
  Rows& rows_;
};

/// Cases beyond the plan have the row that they had.
void add_plan_rows(const Results& earlier, const Standing& standing, std::vector<PlanRow>& plan) {
  const auto path = [](const PlanRow& row) { return row.suite + "/" + row.name; };
  std::map<std::string, const PlanRow*> missing;
  for (const PlanRow& row : earlier.plan) missing.emplace(path(row), &row);
  for (const CaseData& c : earlier.cases) {
    if (standing.is_planned(c) || !standing.contain(c)) continue;
    const auto row = missing.find(family(c));
    if (row == missing.end()) continue;  // of a retest, too: it is there
    const auto now = std::ranges::find(plan, row->first, path);
    if (now == plan.end())
      plan.push_back(*row->second);
    else
      *now = *row->second;  // not applicable here
    missing.erase(row);
  }
}

fs::path take_over_mark(const fs::path& partial) { return partial / "taking-over"; }

}  // namespace

void extend_start(const Results& earlier, Writer::Start& now) {
  Rows rows(earlier.entities, now.entities);
  const Standing standing(earlier, now.plan);
  kept_events(earlier, standing, rows);
  std::set<std::string> unfinished;
  for (const CaseData& c : earlier.cases) {
    if (is_final(c) || !standing.shows(c)) continue;
    unfinished.insert(c.path());
    for (const auto* column : {&c.entity, &c.source, &c.destination})
      for (const std::int32_t row : *column) rows(row);
  }
  const auto place = [&](const auto& table) {
    for (const auto& row : table)
      if (unfinished.contains(row.case_path)) rows(row.entity);
  };
  if (!unfinished.empty()) place(earlier.errors), place(earlier.counters);
  now.entities = rows.all();
  add_plan_rows(earlier, standing, now.plan);
}

bool was_taking_over(const fs::path& partial) { return is_there(take_over_mark(partial)); }

std::vector<Entity> carry_over(Writer& writer, const Results& earlier, const Writer::Start& now) {
  write_durable(take_over_mark(writer.partial()), earlier.info.run_id + "\n");
  Rows rows(earlier.entities, now.entities);
  const Standing standing(earlier, now.plan);
  // Before the cases: with these, or not at all.
  for (const EventRow& e : kept_events(earlier, standing, rows)) writer.add_event(e);
  Bundles bundles(earlier, rows);
  bool first = true;
  std::size_t count = 0;
  for (const CaseData& c : earlier.cases) {
    if (!standing.contain(c)) {
      if (standing.shows(c)) writer.add_unfinished(bundles.of(c));
      continue;
    }
    CaseBundle bundle = bundles.of(c);
    if (std::exchange(first, false)) {
      bundle.telemetry = earlier.telemetry;
      rows.move(bundle.telemetry.entity);
      bundle.flags = earlier.flags;
      for (FlagRow& row : bundle.flags) row.entity = rows(row.entity);
      bundle.selftest = earlier.selftest;
      for (SelftestRow& row : bundle.selftest) row.entity = rows(row.entity);
    }
    bundle.new_entities = rows.take_added();
    writer.add_case(bundle);
    ++count;
  }
  writer.add_event({0, -1, "resumed",
                    std::to_string(count) + std::string(taken_over) + earlier.info.run_id + " of " +
                        earlier.info.started});
  fs::remove(take_over_mark(writer.partial()));
  return rows.all();
}

}  // namespace assay::results
