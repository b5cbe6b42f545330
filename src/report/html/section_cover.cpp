// SPDX-License-Identifier: Apache-2.0
// What is signed: the state, the contract, and what was left open.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "base/units.hpp"
#include "report/decision.hpp"
#include "report/html/markup.hpp"
#include "report/html/sections.hpp"
#include "report/layout.hpp"
#include "report/link_ends.hpp"
#include "report/report.hpp"
#include "report/words.hpp"
#include "results/case_name.hpp"
#include "results/resume.hpp"

namespace assay::report {
namespace {

struct Tally {
  std::map<std::string, std::size_t> nodes, parts;
  LinkEnds ends;
  std::size_t nodes_at_ends = 0, parts_at_ends = 0;  ///< that FAIL for this alone; not in `nodes` and `parts`
};

Tally tally_of(const Page& page) {
  Tally tally;
  tally.ends = link_ends(page.in.results, page.in.verdict);
  for (const auto& s : page.in.verdict.entities) {
    if (s.entity < 0 || static_cast<std::size_t>(s.entity) >= page.in.results.entities.size()) continue;
    const auto& kind = page.in.results.entities[static_cast<std::size_t>(s.entity)].kind;
    if (tally.ends.only.contains(s.entity))
      ++(kind == "node" ? tally.nodes_at_ends : tally.parts_at_ends);
    else if (kind != "link" || tally.ends.links == 0)
      ++(kind == "node" ? tally.nodes : tally.parts)[s.state];
  }
  return tally;
}

/// "2 links FAIL; 4 nodes and 4 parts at their ends"
std::string link_tile(const Tally& t) {
  if (t.ends.links == 0) return "";
  const bool one = t.ends.links == 1;
  std::string ends;
  if (t.nodes_at_ends + t.parts_at_ends > 0)
    ends = fmt::format("; {} and {} at {} ends", plural(t.nodes_at_ends, "node"),
                       plural(t.parts_at_ends, "part"), one ? "its" : "their");
  return fmt::format("<li class=\"tile fail\"><strong>{}</strong><span>link{} FAIL{}</span></li>",
                     t.ends.links, one ? "" : "s", ends);
}

std::string tiles(const std::map<std::string, std::size_t>& counts, const char* what) {
  std::string out;
  for (const char* state : {"FAIL", "INCONCLUSIVE", "WARN", "NOT_TESTED", "PASS"}) {
    const auto it = counts.find(state);
    if (it == counts.end()) continue;
    out += fmt::format("<li class=\"tile {}\"><strong>{}</strong><span>{}{} {}</span></li>",
                       state_class(state), it->second, what, it->second == 1 ? "" : "s",
                       state == std::string("NOT_TESTED") ? "not tested" : state);
  }
  return out;
}

std::string facts(const std::vector<std::pair<const char*, std::string>>& rows) {
  std::string out = "<dl class=\"facts\">";
  for (const auto& [name, html] : rows)
    if (!html.empty()) out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, html);
  return out + "</dl>\n";
}

std::string code(const std::string& text) { return text.empty() ? "" : "<code>" + escaped(text) + "</code>"; }

std::string sentence_of(const Page& page) {
  if (page.in.verdict.state == "PASS") return pass_words(page.in.judgement);
  return decision_words(page.in.results, page.in.verdict);
}

std::string signature_block() {
  std::string out = "<div class=\"signature\" aria-label=\"Signatures\">";
  for (const char* who : {"Measured by", "Accepted by"})
    out += fmt::format(
        "<div><span class=\"rule\"></span><span>{}: name, signature</span></div><div><span "
        "class=\"rule\"></span><span>date</span></div>",
        who);
  return out + "</div>\n";
}

std::string used_references(const Page& page) {
  const auto& o = page.in.judgement.options;
  std::string text;
  const auto add = [&](const char* what, const std::string& name) {
    if (!name.empty()) text += (text.empty() ? "" : "; ") + std::string(what) + " " + name;
  };
  add("contract", o.limits_name);
  add("baseline", o.baseline_name);
  add("history", o.history_name);
  return text.empty() ? "none given: no contract, no baseline, no history" : text;
}

/// What --expect-* asked for; empty without.
std::string expected_words(const Page& page) {
  std::string text;
  for (const char* what : {"nodes", "ranks", "devices"}) {
    const auto it = page.in.results.config.find(std::string("expect-") + what);
    if (it == page.in.results.config.end() || !it->is_number_integer()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", it->get<std::int64_t>(), what);
  }
  return text.empty() ? "nothing: no --expect-nodes, --expect-ranks or --expect-devices" : text;
}

std::vector<std::string> names_of(const Page& page, const char* kind) {
  std::vector<std::string> names;
  for (const auto& e : page.in.results.entities)
    if (e.kind == kind) names.push_back(e.name);
  return names;
}

std::string node_names(const Page& page) {
  const auto names = names_of(page, "node");
  if (names.empty()) return "";
  std::string out =
      "<details class=\"more\"><summary>Names of the " + plural(names.size(), "node") + "</summary><p>";
  for (std::size_t i = 0; i < names.size(); ++i) out += (i == 0 ? "" : ", ") + part_link(names[i]);
  return out + "</p></details>\n";
}

std::string command_of(const Page& page) {
  const std::string& line = page.in.results.info.command_line;
  return line.empty() ? "" : "<pre class=\"command\">" + escaped(line) + "</pre>\n";
}

std::vector<std::pair<const char*, std::string>> facts_of(const Page& page) {
  const auto& v = page.in.verdict;
  const auto& i = page.in.results.info;
  const auto& a = v.accounting;
  const std::string meaning = level_words(i.level);
  return {{"Results file", code(page.in.file)},
          {"SHA-256", page.in.sha256.empty() ? "none: not one results file" : code(page.in.sha256)},
          {"Run", code(i.run_id)},
          {"Plan hash", code(i.plan_hash)},
          {"Started", escaped(i.started)},
          {"Ended", escaped(i.ended.empty() ? "unknown" : i.ended)},
          {"Level", escaped(i.level + (meaning.empty() ? "" : ": " + meaning))},
          {"Found", plural(names_of(page, "node").size(), "node") + ", " +
                        plural(names_of(page, "device").size(), "device") + ", " +
                        plural(names_of(page, "nic").size(), "NIC")},
          {"Expected", escaped(expected_words(page))},
          {"References", escaped(used_references(page))},
          {"Values compared with", escaped(v.basis)},
          {"Cases",
           escaped(fmt::format(
               "planned {}, passed {}, failed {}, skipped {}, error {}, incomplete {} (not applicable {})",
               a.planned, a.passed, a.failed, a.skipped, a.error, a.incomplete, a.not_applicable))},
          {"Chance of a wrong FAIL",
           v.false_alarm_rate > 0
               ? escaped(fmt::format("on healthy hardware at most {:.2g} % per run (calculated), {}",
                                     100 * v.false_alarm_rate, false_alarm_scope))
               : ""},
          {"assay", escaped(i.assay_version)}};
}

}  // namespace

std::string cover_section(const Page& page) {
  const auto& v = page.in.verdict;
  const auto& i = page.in.results.info;
  const Tally tally = tally_of(page);
  std::string out = fmt::format(
      "<div class=\"banner {}\"><p class=\"state\">{}</p><p>{}</p><p class=\"exit\">exit code {}</p></div>\n",
      state_class(v.state), escaped(v.state), escaped(sentence_of(page)), v.exit_code);
  if (page.in.results.config.contains("simulated"))
    out += "<p class=\"notice\">Simulated: synthetic data, no machine was measured.</p>\n";
  if (i.injected) out += "<p class=\"notice\">Faults were injected: this run cannot be PASS.</p>\n";
  if (i.state == "running")
    out += "<p class=\"notice\">The run has not ended: this is what it had measured so far.</p>\n";
  else if (i.state != "complete")
    out += fmt::format("<p class=\"notice\">The run is {}: it was cut short or recovered.</p>\n",
                       escaped(i.state));
  out += "<ul class=\"tiles\">" + link_tile(tally) + tiles(tally.nodes, "node") + "</ul>\n";
  if (!tally.parts.empty()) out += "<ul class=\"tiles small\">" + tiles(tally.parts, "part") + "</ul>\n";
  const auto& given = page.in.judgement.options;
  if (const std::string text = unpromised_words(given.limits_name, given.baseline_name); !text.empty())
    out += "<p class=\"notice\">" + escaped(text) + "</p>\n";
  out += signature_block();
  out += facts(facts_of(page)) + node_names(page) + command_of(page);
  if (v.reasons.empty()) return out + joint_block(page);
  out += "<h3>Reasons for " + escaped(v.state) + "</h3><ol class=\"reasons\">";
  constexpr std::size_t shown = 8;
  for (std::size_t r = 0; r < std::min(shown, v.reasons.size()); ++r)
    out += "<li>" + escaped(v.reasons[r]) + "</li>";
  out += "</ol>";
  if (v.reasons.size() > shown) {
    out += fmt::format(
        "<details class=\"more\"><summary>{} more reasons</summary><ol class=\"reasons\" start=\"{}\">",
        v.reasons.size() - shown, shown + 1);
    for (std::size_t r = shown; r < v.reasons.size(); ++r) out += "<li>" + escaped(v.reasons[r]) + "</li>";
    out += "</ol></details>";
  }
  return out + "\n" + joint_block(page);
}

namespace {

/// Its blanks are no place to break a line at.
std::string unbroken(std::string text) {
  for (auto at = text.find(' '); at != std::string::npos; at = text.find(' ', at))
    text.replace(at, 1, "\u00A0");
  return text;
}

/// What a run without a contract leaves open.
const char* without_contract(const verdict::Compared& c) {
  if (c.with_something() == 0)
    return " No rate was compared: the run tells right from wrong, and not fast from slow.";
  if (c.peers > 0) return " What was compared with peers only is alike, which does not mean that it is good.";
  return "";
}

}  // namespace

std::string contract_section(const Page& page) {
  if (page.contract.empty())
    return none("No contract was given (--limits FILE). Values were compared with: " + page.in.verdict.basis +
                "." + without_contract(verdict::compared_of(page.in.judgement)));
  const std::string& file = page.contract.front().where;
  std::vector<std::vector<Cell>> rows;
  std::size_t met = 0;
  for (const auto& r : page.contract) {
    met += r.met == "yes" ? 1 : 0;
    const std::string interval =
        std::isnan(r.low) ? "-"
                          : unbroken(quantity(r.low, r.unit)) + " to " + unbroken(quantity(r.high, r.unit));
    rows.push_back(
        {markup_cell(state_chip(r.met), "nowrap"), cell(r.metric.empty() ? r.promised : r.metric, "wide"),
         number_cell(r.metric.empty() ? "-" : r.promised), number_cell(quantity(r.median, r.unit)),
         cell(interval, "num wrap"), number_cell(signed_percent(r.margin)),
         markup_cell(r.worst.empty()
                         ? "nothing was measured"
                         : part_link(r.worst) + " " + escaped(unbroken(quantity(r.worst_value, r.unit))),
                     "any"),
         number_cell(r.parts == 0 ? "-" : fmt::format("{} of {}", r.parts - r.beyond, r.parts)),
         number_cell(r.where.substr(r.where.rfind(':') + 1))});
  }
  return fmt::format(
             "<p>{} of {} bounds are met. Lines are those of {}. Margin is that of the worst part, as a "
             "fraction of the rate: below "
             "zero it is beyond the bound. "
             "Open: beyond the bound and not confirmed, or not measured everywhere.</p>\n",
             met, page.contract.size(), escaped(file.substr(0, file.rfind(':')))) +
         table("Limits by margin, the least first",
               {{"met"},
                {"metric", "wide"},
                {"promised", "num"},
                {"median", "num"},
                {"95 % interval", "num"},
                {"margin", "num"},
                {"worst part"},
                {"parts within", "num"},
                {"line", "num"}},
               rows);
}

namespace {

std::string skipped_cases(const Page& page) {
  std::vector<std::vector<Cell>> rows;
  std::set<std::string> ran;
  for (const auto& c : page.in.results.cases) {
    ran.insert(c.path());
    if (results::is_unfinished_name(c.name) || results::is_final(c)) continue;
    const std::string unfinished = results::unfinished_text(c);
    rows.push_back({cell(c.path(), "wide"), cell(results::to_string(c.state)),
                    cell(c.required ? "required" : ""),
                    cell(unfinished.empty() ? c.reason : unfinished, "wide")});
  }
  for (const auto& p : page.in.results.plan) {
    const std::string path = p.suite + "/" + p.name;
    const bool applies = p.state != "not_applicable";
    if (applies && ran.contains(path)) continue;
    rows.push_back({cell(path, "wide"), cell(applies ? "incomplete" : "not applicable"),
                    cell(p.required ? "required" : ""), cell(applies ? "never ran" : p.reason, "wide")});
  }
  if (rows.empty()) return "<p>Every planned case ran to its end.</p>\n";
  return table("Cases without a result", {{"case", "wide"}, {"state"}, {""}, {"why", "wide"}}, rows, 12);
}

std::string untested_parts(const Page& page) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& s : page.in.verdict.entities) {
    if (s.state != "NOT_TESTED" && s.state != "INCONCLUSIVE") continue;
    const auto& e = page.in.results.entities[static_cast<std::size_t>(s.entity)];
    rows.push_back({markup_cell(part_link(e.name)), cell(e.kind), markup_cell(state_chip(s.state), "nowrap"),
                    cell(s.reason, "wide")});
  }
  if (rows.empty()) return "<p>Every part of the inventory has data of its own.</p>\n";
  return table("Parts without enough evidence", {{"part"}, {"kind"}, {"state"}, {"why", "wide"}}, rows, 12);
}

}  // namespace

namespace {

/// What a slowdown would have been held against, and where no number says how large it had to be, why.
std::string visible_words(const verdict::Sensitivity& s) {
  if (!std::isnan(s.visible)) return fmt::format("{:.1f} %", 100 * s.visible);
  if (s.basis == "none") return "not compared";
  if (s.basis == "limit") return "once beyond its limit";
  if (s.basis == "physical") return "once below its hardware rate";
  return "no number";
}

std::string basis_words(const verdict::Sensitivity& s) {
  return s.basis == "none" ? "nothing" : s.basis == "physical" ? "hardware rate" : s.basis;
}

}  // namespace

std::string untested_section(const Page& page) {
  std::string out = skipped_cases(page) + untested_parts(page);
  if (!page.links.empty()) out += "<p>" + escaped(page.links) + ".</p>\n";
  out += "<h3>How small a slowdown this run could have seen</h3>\n";
  if (page.sensitivity.empty()) return out + none("Nothing was measured that a slowdown could show in.");
  std::vector<std::vector<Cell>> rows;
  for (const auto& s : page.sensitivity)
    rows.push_back({cell(s.metric, "wide"), number_cell(visible_words(s)), cell(basis_words(s)),
                    number_cell(std::to_string(s.parts)), number_cell(std::to_string(s.samples)),
                    number_cell(std::isnan(s.spread) ? "-" : fmt::format("{:.2f} %", 100 * s.spread)),
                    number_cell(std::isnan(s.error) ? "-" : fmt::format("{:.2f} %", 100 * s.error)),
                    cell(group_words(s.stratum), "dim")});
  return out +
         "<p>One part that is slower by this much in this metric alone is named (WARN or FAIL) in at least "
         "95 "
         "of 100 such runs, with the samples, the noise and the spread between parts that this run had; "
         "simulated fleets of 3 to 256 nodes, with spreads of 0.5 and 1.7 %, gave 97 to 100. A part that is "
         "slow in several metrics is named for less. A FAIL needs more: a retest in which the part is slow "
         "beyond doubt.</p>\n<p>Once beyond its limit, once below its hardware rate: a part is named only "
         "when "
         "it crosses that bound, however much speed it loses above it. Not compared: no slowdown is named. "
         "No "
         "number: links and "
         "collectives, which are compared with one another as groups. Spread: robust standard deviation "
         "between parts. Error: standard error of the median of one part.</p>\n" +
         table("Smallest visible slowdown",
               {{"metric", "wide"},
                {"visible from", "num"},
                {"compared with"},
                {"parts", "num"},
                {"samples", "num"},
                {"spread", "num"},
                {"error", "num"},
                {"group"}},
               rows, 12);
}

}  // namespace assay::report
