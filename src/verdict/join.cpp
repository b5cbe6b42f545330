// SPDX-License-Identifier: Apache-2.0
#include "verdict/join.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "base/exit_code.hpp"
#include "results/entity_tree.hpp"
#include "verdict/drift.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

/// Larger is worse; unknown is worst.
std::size_t rank_of(const std::string& state) {
  constexpr std::array order{"NOT_TESTED", "PASS", "INFO", "WARN", "INCONCLUSIVE", "FAIL"};
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), state) - order.begin());
}

bool worse(const std::string& a, const std::string& b) { return rank_of(a) > rank_of(b); }

/// The text with '#' for its numbers: words that begin with a digit, such as a time. Digits of a name stay.
std::string without_numbers(std::string_view text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const std::size_t first = std::min(word.find_first_not_of("(<>=~+-"), word.size());
    const bool number = first < word.size() && std::isdigit(static_cast<unsigned char>(word[first])) != 0;
    out.append(number ? "#" : word).append(" ");
    begin = end + 1;
  }
  return out;
}

/// What has no metric is told apart by its text.
std::string key_of(const results::Finding& f) {
  std::string key;
  for (const std::string* part : {&f.level, &f.name, &f.kind, &f.suite, &f.metric}) key += *part + '\n';
  return f.metric.empty() ? key + without_numbers(f.text) : key;
}

void add(results::Accounting& to, const results::Accounting& from) {
  to.planned += from.planned;
  to.passed += from.passed;
  to.failed += from.failed;
  to.skipped += from.skipped;
  to.error += from.error;
  to.incomplete += from.incomplete;
  to.not_applicable += from.not_applicable;
  to.required_missing += from.required_missing;
}

/// At most three names, then how many more.
std::string first_files(const std::vector<std::string>& files) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(files.size(), 3); ++i)
    text += (i == 0 ? "" : ", ") + files[i];
  return files.size() > 3 ? text + " and " + std::to_string(files.size() - 3) + " more" : text;
}

std::string files_words(std::size_t n) { return std::to_string(n) + (n == 1 ? " file" : " files"); }

int exit_of(const std::string& state, bool strict) {
  const ExitCode code = state == "FAIL"   ? ExitCode::fail
                        : state == "WARN" ? (strict ? ExitCode::warn : ExitCode::pass)
                        : state == "PASS" ? ExitCode::pass
                                          : ExitCode::inconclusive;
  return static_cast<int>(code);
}

}  // namespace

std::int32_t Join::row_of(const results::Entity& entity) {
  const auto next = static_cast<std::int32_t>(results_.entities.size());
  const auto [at, added] = rows_.emplace(entity.kind + '\n' + entity.id, next);
  if (added) {
    results_.entities.push_back(entity);
    results_.entities.back().parent = -1;
  }
  return at->second;
}

void Join::take_entities(const results::Results& results, const results::VerdictData& verdict) {
  std::vector<std::int32_t> row(results.entities.size());
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = row_of(results.entities[i]);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::int32_t parent = results.entities[i].parent;
    // a parent that comes first keeps the rows free of circles, whatever the files say
    if (parent < 0 || static_cast<std::size_t>(parent) >= row.size()) continue;
    if (row[static_cast<std::size_t>(parent)] < row[i])
      results_.entities[static_cast<std::size_t>(row[i])].parent = row[static_cast<std::size_t>(parent)];
  }
  for (results::EntityState s : verdict.entities) {
    if (s.entity < 0 || static_cast<std::size_t>(s.entity) >= row.size()) continue;
    s.entity = row[static_cast<std::size_t>(s.entity)];
    const auto [at, added] = states_.emplace(s.entity, s);
    if (!added && worse(s.state, at->second.state)) at->second = s;
  }
}

void Join::take_findings(const std::string& file, const results::VerdictData& verdict) {
  const std::set<std::string_view> reasons(verdict.reasons.begin(), verdict.reasons.end());
  std::map<std::string, std::size_t> told;  // of this file, by key
  for (const results::Finding& f : verdict.findings) {
    // The reasons of a file name a warning where it is WARN for it, or INCONCLUSIVE.
    const bool open = f.severity == "WARN" && verdict.state != "WARN" && reasons.contains(f.text);
    const std::string key = key_of(f);
    auto& known = known_findings_[key];
    const std::size_t earlier = told[key]++;
    if (earlier < known.size()) {
      merge(findings_[known[earlier]], f, file);
      findings_[known[earlier]].open |= open;
      continue;
    }
    known.push_back(findings_.size());
    findings_.push_back({f, {file}, open});
    findings_.back().finding.evidence = file + ":" + f.evidence;
  }
}

void Join::take_compared(const results::VerdictData& verdict) {
  for (const auto& [name, count] : verdict.compared) {
    auto& counts = verdict_.compared;
    const auto at = std::ranges::find(counts, name, &std::pair<std::string, std::size_t>::first);
    if (at == counts.end())
      counts.emplace_back(name, count);
    else
      at->second += count;
  }
}

std::string Join::basis() const {
  const std::string text = basis_of(verdict_.compared);
  return text + (text.empty() ? "in " : ", in ") + files_words(runs_.size()) +
         (runs_.size() == 1 ? "" : " judged together");
}

void Join::merge(Merged& known, const results::Finding& f, const std::string& file) {
  known.files.push_back(file);
  const bool worst = f.severity != known.finding.severity
                         ? worse(f.severity, known.finding.severity)
                         : f.deficit.value_or(0) > known.finding.deficit.value_or(0);
  const results::Finding sure = known.finding.confirmed ? known.finding : f;
  if (worst) {
    known.finding = f;
    known.finding.evidence = file + ":" + f.evidence;
  }
  known.finding.confirmed = sure.confirmed;
  known.finding.confirmed_by = sure.confirmed_by;
}

void Join::add(const std::string& file, const results::Results& results,
               const results::VerdictData& verdict) {
  if (runs_.empty()) {
    results_.info = results.info;
    verdict_.inputs = verdict.inputs;
  }
  const auto count = [&](const char* severity) {
    return static_cast<std::size_t>(
        std::ranges::count(verdict.findings, severity, &results::Finding::severity));
  };
  const auto& info = results.info;
  runs_.push_back({file, info.run_id, info.started, info.level, verdict.state, verdict.exit_code,
                   count("FAIL"), count("WARN")});
  results_.info.ended = std::max(results_.info.ended, results.info.ended);
  results_.info.injected = results_.info.injected || results.info.injected;
  if (verdict_.state.empty() || worse(verdict.state, verdict_.state)) verdict_.state = verdict.state;
  log_none_wrong_ += std::log1p(-std::clamp(verdict.false_alarm_rate, 0.0, 1.0));
  verdict_.false_alarm_rate = 0 - std::expm1(log_none_wrong_);  // of no chance 0, not -0
  take_compared(verdict);
  std::set<std::string_view> told;  // findings are taken below
  for (const auto& f : verdict.findings) told.insert(f.text);
  for (const std::string& reason : verdict.reasons)
    if (!told.contains(reason)) verdict_.reasons.push_back(file + ": " + reason);
  verdict::add(verdict_.accounting, verdict.accounting);
  take_entities(results, verdict);
  take_findings(file, verdict);
  segments_.push_back(snapshot_of(results, file));
}

void Join::leave_out(const std::string& file, const std::string& same_as) {
  left_out_[same_as].push_back(file);
}

/// One for each run that several files hold.
void Join::add_left_out(results::VerdictData& v) const {
  for (const auto& [counted, files] : left_out_) {
    const bool one = files.size() == 1;
    results::Finding f;
    f.severity = "INFO";
    f.claim = "fact";
    f.kind = "duplicate";
    f.level = f.name = "cluster";
    f.evidence = files.front();
    f.text = first_files(files) + (one ? " holds" : " hold") + " the same run as " + counted + " and " +
             (one ? "is" : "are") + " not counted";
    v.findings.push_back(std::move(f));
  }
}

std::vector<Snapshot> Join::segments() const {
  auto segments = segments_;
  std::ranges::stable_sort(segments, {}, [](const Snapshot& s) { return s.source.started; });
  return segments;
}

/// Of the file from which on it drifts: the direction of its metric, and where its values are.
void Join::locate(results::Finding& drift) const {
  for (const Snapshot& segment : segments_) {
    if (segment.source.started != drift.since) continue;
    const auto s = std::ranges::find(segment.series, drift.metric, &SnapshotSeries::full);
    if (s == segment.series.end()) continue;
    drift.better = to_string(s->higher_is_better ? results::Better::higher : results::Better::lower);
    drift.evidence = segment.source.file + ":/cases/" + s->suite + "/" + s->name + "/" + s->metric;
    return;
  }
}

void Join::add_drift(results::VerdictData& v) const {
  auto states = states_;
  const auto warn = [&](std::int32_t row, const std::string& reason) {
    if (row < 0) return;
    const auto [at, added] = states.try_emplace(row, results::EntityState{row, "WARN", reason});
    if (!added && worse("WARN", at->second.state)) at->second = {row, "WARN", reason};
  };
  for (auto& drift : drift_over(segments_)) {
    locate(drift.finding);
    if (const auto row = rows_.find(drift.part); row != rows_.end()) {
      warn(row->second, drift.finding.text);
      warn(results::node_above(results_.entities, row->second), drift.finding.text);
    }
    if (worse("WARN", v.state)) v.state = "WARN";
    v.findings.push_back(std::move(drift.finding));
  }
  for (const auto& [row, state] : states) v.entities.push_back(state);
}

results::VerdictData Join::verdict(bool strict) const {
  if (runs_.empty()) throw Error(ErrorKind::internal, "no results file was joined");
  results::VerdictData v = verdict_;
  v.basis = basis();
  std::vector<std::string> files;
  for (const JoinedRun& run : runs_) files.push_back(run.file);
  v.inputs["files"] = files;
  std::vector<std::string> open;
  for (const Merged& m : findings_) {
    v.findings.push_back(m.finding);
    v.findings.back().text += " (in " + std::to_string(m.files.size()) + " of " + files_words(runs_.size()) +
                              ": " + first_files(m.files) + ")";
    if (m.open && m.finding.severity == "WARN") open.push_back(v.findings.back().text);
  }
  add_drift(v);
  add_left_out(v);
  v.exit_code = exit_of(v.state, strict);
  std::stable_sort(v.findings.begin(), v.findings.end(),
                   [](const auto& a, const auto& b) { return worse(a.severity, b.severity); });
  // As of one file: FAILs, what is missing, and of WARN the warnings.
  std::vector<std::string> fails, warnings;
  for (const results::Finding& f : v.findings) {
    if (f.severity == "FAIL") fails.push_back(f.text);
    if (f.severity == "WARN" && v.state == "WARN") warnings.push_back(f.text);
  }
  v.reasons.insert(v.reasons.begin(), fails.begin(), fails.end());
  for (const auto* more : {&open, &warnings}) v.reasons.insert(v.reasons.end(), more->begin(), more->end());
  return v;
}

}  // namespace assay::verdict
