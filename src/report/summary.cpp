// SPDX-License-Identifier: Apache-2.0
// What a tired engineer reads: rates per suite, what is wrong, what was covered, the verdict, the file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "base/units.hpp"
#include "report/layout.hpp"
#include "report/link_ends.hpp"
#include "report/report.hpp"
#include "report/summary_data.hpp"
#include "report/told_findings.hpp"
#include "results/case_name.hpp"
#include "results/described.hpp"
#include "results/entity_tree.hpp"

namespace assay::report {
namespace {

using results::CaseData;
using results::Results;
using results::VerdictData;

constexpr std::size_t rows_per_suite = 6, findings_shown = 10, reasons_shown = 6, nodes_shown = 5;

constexpr double worst_told = 0.02;  ///< an entity this far behind the median is named with the case

std::size_t width_of(const Style& style) { return static_cast<std::size_t>(std::max(style.width, 60)); }

std::string heading(const Results& results) {
  std::size_t nodes = 0, devices = 0, driven = 0;
  for (const auto& e : results.entities) {
    nodes += e.kind == "node" ? 1 : 0;
    devices += e.kind == "device" ? 1 : 0;
    driven += e.kind == "device" && e.rank >= 0 ? 1 : 0;
  }
  if (driven > 0) devices = driven;  // imported files know of no ranks
  const auto& i = results.info;
  return fmt::format("assay {}, level {}: {}, {}, started {}", i.assay_version, i.level,
                     plural(nodes, "node"), plural(devices, "device"), i.started);
}

/// A repeat (.p2) is the same case again: the first one stands for it.
bool is_repeat(const std::string& name) {
  std::size_t i = name.size();
  while (i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9') --i;
  return i < name.size() && i >= 2 && name[i - 1] == 'p' && name[i - 2] == '.';
}

struct Row {
  const CaseData* data;
  std::size_t order;
  int priority;  ///< lower is shown first
};

/// The rows worth a line: what findings name, then what did not pass, then required cases.
std::vector<Row> pick_rows(const std::vector<const CaseData*>& cases, const std::set<std::string>& named) {
  std::vector<Row> rows;
  for (const auto* c : cases) {
    if (is_repeat(c->name)) continue;
    const auto* m = headline(*c);
    int priority = c->required && m != nullptr && m->unit != "count" ? 2 : 3;
    if (c->state == results::CaseState::error || c->state == results::CaseState::incomplete) priority = 1;
    if (c->state == results::CaseState::fail || named.contains(c->path())) priority = 0;
    if (m == nullptr && c->state == results::CaseState::pass) priority = 4;
    // What was only left out for time is told by the coverage line.
    if (c->state == results::CaseState::skip) priority = c->required ? 1 : 4;
    rows.push_back({c, rows.size(), priority});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.priority < b.priority; });
  while (!rows.empty() && (rows.size() > rows_per_suite || rows.back().priority == 4)) rows.pop_back();
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.order < b.order; });
  return rows;
}

std::string parameter(const CaseData& c, const char* name) {
  const auto it = c.parameters.find(name);
  return it != c.parameters.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// What its suite calls the case. A file of an earlier version has only the name.
std::string title_of(const CaseData& c) {
  std::string title = parameter(c, "title");
  if (!title.empty()) return title;
  title = c.name;
  std::replace(title.begin(), title.end(), '-', ' ');
  return title;
}

std::string percent_words(double fraction) {
  return fmt::format("{:.{}f} %", 100 * fraction, std::abs(fraction) < 0.0995 ? 1 : 0);
}

/// "efficiency of FMA peak" and the metric of that name: ", 82 % of FMA peak".
std::string share_words(const Results& results, const CaseData& c) {
  const std::string share = parameter(c, "share");
  const auto space = share.find(' ');
  if (space == std::string::npos) return "";
  for (const auto& m : c.metrics) {
    if (m.name != share.substr(0, space)) continue;
    const double median = summarize(results, c, m).median;
    // Beyond its peak by more than noise: the peak was taken while others used the cores.
    constexpr double most = 1.05;
    return !(median <= most) ? "" : ", " + percent_words(median) + share.substr(space);
  }
  return "";
}

/// The entity that is furthest behind, where that is worth a word.
std::string worst_words(const Results& results, const MetricSummary& d) {
  if (d.entities < 2 || !(d.worst_deficit > worst_told)) return "";
  const std::string first = ", worst " + short_link(d.worst) + " -" + percent_words(d.worst_deficit);
  const double again = deficit_again(results, d);
  if (std::isnan(again) || again > d.worst_deficit / 2) return first;
  return first + " at first, " +
         (again > worst_told ? "-" + percent_words(again) + " when measured again"
                             : "normal when measured again");
}

/// Of a case that counts errors: how many there were of whom; empty where none was counted.
std::string errors_words(const Results& results, const CaseData& c, const results::Metric& m) {
  const std::size_t width = m.per_sample ? c.samples() : 1;
  const auto values = m.values.held();
  double all = 0;
  std::string whom;
  std::size_t parts = 0;
  for (std::size_t row = 0; row < c.entity.size(); ++row) {
    double own = 0;
    for (std::size_t s = row * width; s < std::min((row + 1) * width, values.size()); ++s)
      if (values[s] > 0) own += values[s];
    if (own == 0) continue;
    all += own;
    if (parts++ < nodes_shown) whom += (whom.empty() ? "" : ", ") + short_link(entity_name(results, c, row));
  }
  if (parts == 0) return "";
  if (parts > nodes_shown) whom += fmt::format(" and {} more", parts - nodes_shown);
  return fmt::format("{:.15g} wrong {}, on {}", all, all == 1 ? "value" : "values", whom);
}

/// One case in a line: "fp32 GEMM n=1024, all cores: 128 GFLOP/s, spread 1.0 %, 82 % of FMA peak".
std::string case_line(const Results& results, const CaseData& c, std::size_t width) {
  const std::string title = title_of(c) + ": ";
  const auto line = [&](const std::string& text) { return "  " + wrap(text, width - 2, 6); };
  const auto* m = headline(c);
  const bool measured = c.state == results::CaseState::pass || c.state == results::CaseState::fail;
  if (m == nullptr || !measured)
    return line(title + std::string(results::to_string(c.state)) + (c.reason.empty() ? "" : ": " + c.reason));
  const auto d = summarize(results, c, *m);
  if (m->name == "errors" && c.state == results::CaseState::pass && d.median == 0)
    return line(title + "exact");
  if (m->name == "errors")
    if (const std::string wrong = errors_words(results, c, *m); !wrong.empty()) return line(title + wrong);
  std::string text = title + format_quantity(d.median, m->unit);
  if (!std::isnan(d.spread)) text += ", spread " + percent_words(d.spread);
  const std::string reduced = reduced_words(c, *m);
  return line(text + share_words(results, c) + worst_words(results, d) +
              (reduced.empty() ? "" : "; " + reduced));
}

std::string suites_text(const Results& results, const VerdictData& verdict, const std::string& file,
                        std::size_t width) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const CaseData*>> by_suite;
  std::map<std::string, std::size_t> retests;
  for (const auto& c : results.cases) {
    if (results::is_retest(c.name)) {
      ++retests[c.suite];
      continue;
    }
    if (results::is_unfinished_name(c.name)) continue;
    auto& list = by_suite[c.suite];
    if (list.empty()) order.push_back(c.suite);
    list.push_back(&c);
  }
  std::set<std::string> named;
  for (const auto& f : verdict.findings) {
    if (f.severity != "INFO") named.insert(f.metric.substr(0, f.metric.rfind(':')));
  }
  std::string out;
  for (const auto& suite : order) {
    const auto& cases = by_suite[suite];
    std::size_t passed = 0;
    for (const auto* c : cases) passed += c->state == results::CaseState::pass ? 1 : 0;
    out += fmt::format("{}  {} of {} passed", suite, passed, plural(cases.size(), "case"));
    if (const std::size_t again = retests[suite]; again > 0)
      out += fmt::format(", {} measured again for parts in doubt", again);
    out += "\n";
    const auto rows = pick_rows(cases, named);
    for (const auto& row : rows) out += case_line(results, *row.data, width);
    if (rows.size() < cases.size() && !rows.empty()) {
      out += fmt::format("  +{} more: assay inspect {}\n", cases.size() - rows.size(), file);
    }
  }
  return out;
}

/// `file`: where more is to be read; empty: all of it is printed here.
std::string findings_text(const VerdictData& verdict, std::size_t width, const Style& style,
                          const std::string& file) {
  const std::size_t most = file.empty() ? verdict.findings.size() : findings_shown;
  std::string out;
  const auto told = told_findings(verdict.findings);
  for (std::size_t i = 0; i < std::min(told.size(), most); ++i) {
    const auto& f = *told[i].finding;
    const std::string action = f.action.empty() ? "" : " [" + f.action + "]";
    const std::string text = wrap(f.severity + "  " + told[i].text + action, width, 6);
    out += paint(f.severity, f.severity, style) + text.substr(f.severity.size());
  }
  if (told.size() > most) out += fmt::format("      +{} more: assay verdict {}\n", told.size() - most, file);
  const auto notes =
      static_cast<std::size_t>(std::ranges::count(verdict.findings, "INFO", &results::Finding::severity));
  if (notes > 0 && !file.empty())
    out += fmt::format("INFO  {}: assay verdict {}\n", plural(notes, "note"), file);
  return out;
}

std::string reasons_text(const VerdictData& verdict, std::size_t width, std::size_t most) {
  std::set<std::string> told;
  for (const auto& f : verdict.findings) told.insert(f.text);
  std::string out;
  std::size_t shown = 0, above = 0;
  for (const auto& reason : verdict.reasons) {
    if (told.contains(reason)) {
      ++above;
      continue;
    }
    if (shown++ < most) out += wrap("INCONCLUSIVE  " + reason, width, 6);
  }
  if (shown > most) out += fmt::format("      +{} more\n", shown - most);
  if (shown == 0 && above > 0 && verdict.state == "INCONCLUSIVE")
    out += wrap(fmt::format("INCONCLUSIVE  evidence is missing: see {} above", plural(above, "warning")),
                width, 6);
  return out;
}

/// Of a run, or of the files that were judged together: "at most 2.4 % over 4 files".
std::string wrong_fail_words(const VerdictData& verdict) {
  const double percent = 100 * verdict.false_alarm_rate;
  // Two digits of it, without an exponent.
  const std::string rate = percent < 99.5 ? fmt::format("{:.2g}", percent) : "100";
  const auto files = verdict.inputs.find("files");
  return fmt::format("at most {} % {}", rate,
                     files != verdict.inputs.end() ? "over " + plural(files->size(), "file") : "per run");
}

std::string coverage_text(const VerdictData& verdict, std::size_t width) {
  const auto& a = verdict.accounting;
  std::string out =
      wrap(fmt::format("planned={} passed={} failed={} skipped={} error={} incomplete={} (not applicable {})",
                       a.planned, a.passed, a.failed, a.skipped, a.error, a.incomplete, a.not_applicable),
           width, 2);
  out += wrap("values compared with: " + verdict.basis, width, 2);
  if (verdict.false_alarm_rate > 0)
    out += wrap(fmt::format("chance of a wrong FAIL on healthy hardware: {} (calculated, of comparisons with "
                            "peers; limits are not counted)",
                            wrong_fail_words(verdict)),
                width, 2);
  return out;
}

/// What was planned and not measured, by its reason.
std::string skipped_line(const Results& results, const std::string& file, std::size_t width) {
  std::map<std::string, std::size_t> reasons;
  for (const auto& c : results.cases)
    if (c.state == results::CaseState::skip)
      ++reasons[c.reason.starts_with("budget") ? "no time was left at this level" : c.reason];
  std::string text;
  for (const auto& [reason, n] : reasons)
    text += fmt::format("{}{} ({})", text.empty() ? "skipped: " : ", ", plural(n, "case"), reason);
  return text.empty() ? "" : wrap(text + ": assay inspect " + file, width, 2);
}

std::string nodes_line(const Results& results, const VerdictData& verdict, std::size_t width) {
  std::map<std::string, std::vector<std::string>> by_state;
  for (const auto& e : verdict.entities) {
    if (e.entity < 0 || static_cast<std::size_t>(e.entity) >= results.entities.size()) continue;
    const auto& entity = results.entities[static_cast<std::size_t>(e.entity)];
    if (entity.kind == "node") by_state[e.state].push_back(entity.name);
  }
  std::set<std::string> lost;
  for (const auto& e : results.events)
    if (const auto node = results::node_above(results.entities, e.entity); node >= 0 && results::loss_of(e))
      lost.insert(results.entities[static_cast<std::size_t>(node)].name);
  const LinkEnds ends = link_ends(results, verdict);
  std::string text = "nodes:";
  for (const char* state : {"FAIL", "INCONCLUSIVE", "WARN", "NOT_TESTED", "PASS"}) {
    const auto it = by_state.find(state);
    if (it == by_state.end()) continue;
    text += fmt::format(" {} {}", it->second.size(), state);
    if (std::string(state) == "PASS") continue;
    auto& names = it->second;
    const auto others =
        std::ranges::stable_partition(names, [&](const std::string& name) { return lost.contains(name); });
    const std::size_t gone = names.size() - others.size();
    text += others.empty() || gone == 0 ? " (" : fmt::format(" ({} lost: ", gone);
    for (std::size_t i = 0; i < std::min(names.size(), nodes_shown); ++i)
      text += (i == 0 ? "" : i == gone ? "; " : ", ") + names[i];
    text += names.size() > nodes_shown ? fmt::format(" and {} more)", names.size() - nodes_shown) : ")";
  }
  if (ends.nodes > 0)
    text += fmt::format("; {}, {} only as their ends", links_words(ends), plural(ends.nodes, "node"));
  return by_state.empty() ? "" : wrap(text, width, 2);
}

/// FAILs of parts that belong to no node: switches, and links where no node FAILs for them alone.
std::string other_parts_line(const Results& results, const VerdictData& verdict, std::size_t width) {
  const LinkEnds ends = link_ends(results, verdict);
  std::map<std::string, std::set<std::string>> parts;
  for (const auto& f : verdict.findings)
    if (f.severity == "FAIL" &&
        (f.level == "switch" || f.level == "rack" || (f.level == "link" && ends.nodes == 0)))
      parts[f.level].insert(
          short_link(f.name.substr(f.name.starts_with(f.level + ":") ? f.level.size() + 1 : 0)));
  std::string text;
  for (const auto& [level, names] : parts) {
    const std::string what = names.size() == 1 ? level : level == "switch" ? "switches" : level + "s";
    text += fmt::format("{}{} {} FAIL (", text.empty() ? "other parts: " : ", ", names.size(), what);
    std::size_t shown = 0;
    for (const std::string& name : names)
      if (shown++ < nodes_shown) text += (shown == 1 ? "" : ", ") + name;
    text += shown > nodes_shown ? fmt::format(" and {} more)", shown - nodes_shown) : ")";
  }
  return text.empty() ? "" : wrap(text, width, 2);
}

/// Notes one by one, less those of noise: on a busy machine there is one for nearly every metric.
std::string notes_text(const VerdictData& verdict, std::size_t width) {
  constexpr std::size_t few = 2;
  const auto noisy = [](const results::Finding& f) { return f.severity == "INFO" && f.kind == "noisy"; };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(verdict.findings, noisy));
  std::string out, worst;
  double most = -1;
  for (const auto& f : verdict.findings) {
    if (f.severity != "INFO") continue;
    if (count <= few || !noisy(f)) {
      out += wrap("INFO  " + f.text, width, 6);
      continue;
    }
    if (f.uncertainty.value_or(0) <= most) continue;
    most = f.uncertainty.value_or(0);
    worst = f.text;
  }
  if (worst.empty()) return out;
  return out + wrap(fmt::format("INFO  medians of {} metrics are uncertain (--json: each); the worst: {}",
                                count, worst),
                    width, 6);
}

}  // namespace

std::string summary(const Results& results, const VerdictData& verdict, const std::string& file,
                    const Style& style) {
  const std::size_t width = width_of(style);
  // A hint that does not fit a line names no file; the last line does.
  constexpr std::size_t fits = 40;
  const std::string shown = file.size() <= fits ? file : "FILE";
  const std::string rule(width, '-');
  std::string out = wrap(heading(results), width, 2) + rule + "\n";
  if (const std::string suites = suites_text(results, verdict, shown, width); !suites.empty())
    out += suites + rule + "\n";
  const std::string found =
      findings_text(verdict, width, style, shown) + reasons_text(verdict, width, reasons_shown);
  if (!found.empty()) out += found + rule + "\n";
  if (const std::string links = coverage_line(results); !links.empty()) out += wrap(links, width, 2);
  out += coverage_text(verdict, width) + skipped_line(results, shown, width) +
         nodes_line(results, verdict, width) + other_parts_line(results, verdict, width);
  out += paint(verdict.state, verdict.state, style) + fmt::format(" (exit {})\n", verdict.exit_code);
  // A path is copied with the mouse: it is never broken.
  return out + "file: " + file + "\n";
}

std::string time_line(double ran_s, double budget_s) {
  return fmt::format("ran {:.1f} s of {:.0f} s\n", ran_s, budget_s);
}

std::string verdict_text(const VerdictData& verdict, const Style& style) {
  const std::size_t width = width_of(style), all = verdict.findings.size() + verdict.reasons.size() + 1;
  std::string out = findings_text(verdict, width, style, "");
  out += notes_text(verdict, width);
  out += reasons_text(verdict, width, all) + coverage_text(verdict, width);
  return out + paint(verdict.state, verdict.state, style) + fmt::format(" (exit {})\n", verdict.exit_code);
}

}  // namespace assay::report
