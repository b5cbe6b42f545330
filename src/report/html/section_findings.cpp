// SPDX-License-Identifier: Apache-2.0
// What the verdict found, each with the samples that it rests on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "report/html/confirmation.hpp"
#include "report/html/markup.hpp"
#include "report/html/sections.hpp"
#include "report/html/svg.hpp"
#include "report/link_ends.hpp"
#include "report/words.hpp"

namespace assay::report {
namespace {

constexpr double strip_width = 860, strip_left = 190, strip_right = 840, strip_height = 34, strip_top = 22;

/// Dots of one row, spread a little by rank so that equal values stay countable.
std::string strip(const std::vector<double>& values, const Scale& x, double y, const char* style) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i)
    out += svg_dot(x.at(values[i]), y + 7 * (static_cast<double>(i * 7 % 5) / 2 - 1), 3, style);
  return out;
}

struct Row {
  std::string title;
  const std::vector<double>* values;
  const char* style;
};

std::string picture_of(const Evidence& e, const results::Finding& f) {
  std::vector<Row> rows;
  if (!e.peers.empty())
    rows.push_back({fmt::format("{} peers, medians", e.peer_count), &e.peers, "dot peer"});
  if (!e.own.empty()) rows.push_back({e.again.empty() ? f.name : f.name + ", first", &e.own, "dot own"});
  if (!e.again.empty()) rows.push_back({f.name + ", again", &e.again, "dot again"});
  std::vector<double> all;
  for (const Row& r : rows) all.insert(all.end(), r.values->begin(), r.values->end());
  if (f.reference) all.push_back(*f.reference);
  const bool wide =
      !all.empty() && *std::min_element(all.begin(), all.end()) > 0 &&
      *std::max_element(all.begin(), all.end()) > 20 * *std::min_element(all.begin(), all.end());
  const Scale x = scale_of(all, strip_left, strip_right, wide);
  const double bottom = strip_top + strip_height * static_cast<double>(rows.size());
  std::string body = svg_axis(x, bottom, strip_top - 6, f.unit.empty() ? e.series->unit : f.unit);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double y = strip_top + strip_height * (static_cast<double>(i) + 0.5);
    body += svg_text(strip_left - 12, y + 4,
                     rows[i].title.size() > 27 ? "\u2026" + rows[i].title.substr(rows[i].title.size() - 24)
                                               : rows[i].title,
                     "label end") +
            strip(*rows[i].values, x, y, rows[i].style);
    const double middle = (*rows[i].values)[rows[i].values->size() / 2];
    body += svg_line(x.at(middle), y - 13, x.at(middle), y + 13, "median");
  }
  if (f.reference) {
    const double at = x.at(*f.reference);
    body += svg_line(at, strip_top - 8, at, bottom, "bound") +
            svg_text(at, 11,
                     (f.reference_kind.empty() ? "reference" : f.reference_kind) + " " +
                         format_quantity(*f.reference, f.unit),
                     at > (strip_left + strip_right) / 2 ? "tick end" : "tick");
  }
  return svg(strip_width, bottom + 24, body, f.name + ": samples beside those of its peers");
}

/// The same in numbers, for those who cannot see the picture.
std::string table_of(const Evidence& e, const results::Finding& f) {
  std::vector<std::vector<Cell>> rows;
  const auto add = [&](const std::string& who, std::size_t count, const std::vector<double>& values) {
    if (!values.empty())
      rows.push_back({cell(who), number_cell(std::to_string(count)),
                      number_cell(quantity(std::ranges::min(values), e.series->unit)),
                      number_cell(quantity(median(values), e.series->unit)),
                      number_cell(quantity(std::ranges::max(values), e.series->unit))});
  };
  add("peers, medians", e.peer_count, e.peers);
  add(e.again.empty() ? f.name : f.name + ", first", e.own.size(), e.own);
  add(f.name + ", again", e.again.size(), e.again);
  return "<details class=\"more\"><summary>As a table</summary>" +
         table("Samples of " + e.series->full() + ", thinned by rank",
               {{"of"}, {"values", "num"}, {"least", "num"}, {"median", "num"}, {"most", "num"}}, rows) +
         "</details>\n";
}

/// The samples when they were taken, with what else was seen of the part at the time.
std::string timeline_of(const Evidence& e, const results::Finding& f) {
  constexpr double left = 76, right = 840, top = 18, bottom = 150, lane = 16;
  std::vector<double> times, values;
  for (const auto* points : {&e.own_at, &e.again_at})
    for (const auto& [t, v] : *points) {
      times.push_back(t);
      values.push_back(v);
    }
  if (times.size() < 2 || *std::ranges::min_element(times) == *std::ranges::max_element(times)) return "";
  for (const TimeMark& m : e.marks) times.insert(times.end(), {m.from, m.to});
  if (f.reference) values.push_back(*f.reference);
  const Scale x = scale_of(times, left, right), y = scale_of(values, bottom, top);
  std::string body = svg_axis_left(y, left, right, f.unit.empty() ? e.series->unit : f.unit) +
                     svg_axis(x, bottom, bottom - 4, "s", 8);
  if (f.reference) body += svg_line(left, y.at(*f.reference), right, y.at(*f.reference), "bound");
  for (const auto& [t, v] : e.own_at) body += svg_dot(x.at(t), y.at(v), 2.6, "dot own");
  for (const auto& [t, v] : e.again_at) body += svg_dot(x.at(t), y.at(v), 2.6, "dot again");
  constexpr std::size_t most = 8;
  double at = bottom + 26;
  for (std::size_t i = 0; i < std::min(most, e.marks.size()); ++i, at += lane) {
    const TimeMark& m = e.marks[i];
    const double from = x.at(m.from), to = std::max(x.at(m.to), from + 3);
    body += svg_rect(from, at, to - from, 10,
                     m.kind == "flag"    ? "mark-flag"
                     : m.kind == "event" ? "mark-event"
                                         : "mark-counter");
    const bool after = to < (left + right) / 2;
    body += svg_text(after ? to + 5 : from - 5, at + 9, shortened(m.kind + ": " + m.text, 70),
                     after ? "tick" : "tick end");
  }
  return svg(right + 20, at + 4, body,
             f.name + ": samples over the time of the run, with counters, events and flags of the part");
}

std::string facts_of(const results::Finding& f, const Retests& retests) {
  std::string out = "<dl class=\"facts tight\">";
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, escaped(text));
  };
  add("measured", f.value ? format_quantity(*f.value, f.unit) : "");
  add("compared with", f.reference ? f.reference_kind + " " + format_quantity(*f.reference, f.unit) : "");
  std::string deficit = f.deficit ? signed_percent(-*f.deficit) : "";
  if (f.ci_low && f.ci_high)
    deficit += fmt::format(" ({} to {})", signed_percent(-*f.ci_high), signed_percent(-*f.ci_low));
  add("rate", deficit);
  add("samples", f.samples ? std::to_string(*f.samples) : "");
  add("controls", f.controls ? std::to_string(*f.controls) : "");
  add("confirmed", retests.confirmation_of(f));
  add("claim", f.claim + ", " + f.kind);
  add("part", f.part);
  add("group", group_words(f.stratum));
  add("since", f.since);
  add("id", f.id);
  add("in the file", f.evidence);
  return out + "</dl>";
}

/// What a counter, an event or a throttle flag says of the part, in order of time.
std::string circumstances(const Page& page, const results::Finding& f) {
  const auto name = [&](std::int32_t entity) { return cell(page.in.judgement.entities.name(entity)); };
  const Seen::Rows seen = page.seen.near(f.name);
  std::vector<std::vector<Cell>> rows;
  for (const auto* c : seen.counters | std::views::take(40))
    rows.push_back({cell(c->case_path.str()), name(c->entity), cell(c->counter.str()),
                    number_cell(fmt::format("{:.15g} \u2192 {:.15g}", c->before, c->after))});
  for (const auto* e : seen.events | std::views::take(20))
    rows.push_back(
        {cell(fmt::format("{:.1f} s", e->t)), name(e->entity), cell(e->kind), cell(e->text, "wide")});
  for (const auto* e : seen.flags | std::views::take(20))
    rows.push_back({cell(fmt::format("{:.1f} s", e->t)), name(e->entity), cell(e->flag),
                    cell(e->value != 0 ? "set" : "cleared")});
  if (rows.empty()) return "";
  return "<details class=\"more\"><summary>Counters, events and flags of this part</summary>" +
         table("What else was seen of it", {{"case or time"}, {"part"}, {"what"}, {"change", "num"}}, rows) +
         "</details>";
}

std::string timeline_figure(const Evidence& e, std::size_t index, const results::Finding& f) {
  const std::string picture = timeline_of(e, f);
  if (picture.empty()) return none("Its samples have no times: there is no picture over time.");
  const std::string seen =
      e.marks.empty() ? "no counter, event or flag of this part at a known time"
                      : fmt::format("{}{} counters, events and flags of this part",
                                    e.marks.size() == marks_shown ? "the first " : "", e.marks.size());
  return figure(picture,
                std::string("Over the time of the run: samples first") +
                    (e.again_at.empty() ? "" : " and again") + "; " + seen + ".",
                fmt::format("timeline/{}", index));
}

/// The node of a part, both of a link; empty where it has none, as a switch.
std::string node_links(const std::string& name, const std::set<std::string>& nodes) {
  std::string links;
  for (const auto& end : ends_of(name)) {
    const std::string node = node_of(end);
    if (nodes.contains(node) && links.find(part_link(node)) == std::string::npos)
      links += (links.empty() ? "<p class=\"links\">Node: " : ", ") + part_link(node);
  }
  return links.empty() ? "" : links + "</p>";
}

}  // namespace

std::string findings_section(const Page& page) {
  const auto& findings = page.in.verdict.findings;
  if (findings.empty()) return none("The verdict found nothing.");
  std::string out;
  std::size_t next = 0;
  const Retests retests(page.in.results);
  std::set<std::string> nodes;
  for (const auto row : page.in.judgement.entities.nodes())
    nodes.insert(page.in.judgement.entities.name(row));
  const auto open = [&](std::size_t i) { return i < 6 && findings[i].severity != "INFO"; };
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const auto& f = findings[i];
    while (next < page.evidence.size() && page.evidence[next].finding < i) ++next;
    out += fmt::format(
        "<details class=\"finding {}\" id=\"finding/{}\"{} data-name=\"{}\"><summary>{}<span "
        "class=\"who\">{}</span>"
        "<span class=\"what\">{}</span>{}</summary>\n",
        state_class(f.severity), i + 1, open(i) ? " open" : "", escaped(f.name), state_chip(f.severity),
        escaped(f.name), escaped(f.metric.empty() ? f.kind : f.metric),
        f.action.empty() ? "" : "<span class=\"action\">" + escaped(f.action) + "</span>");
    out += "<p class=\"words\">" + escaped(f.text) + "</p>\n";
    if (next < page.evidence.size() && page.evidence[next].finding == i)
      out += figure(picture_of(page.evidence[next], f), "Samples of " + f.metric + ", thinned by rank.",
                    fmt::format("evidence/{}", next)) +
             timeline_figure(page.evidence[next], next, f) + table_of(page.evidence[next], f);
    else
      out += none(f.metric.empty() ? "No samples belong to it: it is a fact, not a measurement."
                                   : "Samples of it are not in this page; see \u201cin the file\u201d.");
    out += facts_of(f, retests) + circumstances(page, f);
    out += node_links(f.name, nodes) + "</details>\n";
  }
  return out;
}

}  // namespace assay::report
