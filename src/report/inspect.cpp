// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/units.hpp"
#include "report/layout.hpp"
#include "report/report.hpp"
#include "report/summary_data.hpp"
#include "results/case_name.hpp"

namespace assay::report {
namespace {

using results::Results;

std::string info_text(const Results& r, const std::string& file) {
  const auto& i = r.info;
  std::string out =
      fmt::format("file           {}\nrun            {}\nstate          {}\n", file, i.run_id, i.state);
  out += fmt::format("started        {}\nended          {}\nversion        {}\n", i.started, i.ended,
                     i.assay_version);
  out +=
      fmt::format("level          {}\nseed           {}\nplan           {}\n", i.level, i.seed, i.plan_hash);
  out += fmt::format("command        {}\ninjected       {}\nverdict        {}\n", i.command_line,
                     i.injected ? "yes" : "no",
                     r.verdict           ? r.verdict->state
                     : i.verdict.empty() ? "none stored"
                                         : i.verdict);
  return out;
}

std::string counts_text(const Results& r) {
  std::map<std::string, std::size_t> kinds;
  for (const auto& e : r.entities) ++kinds[e.kind];
  std::string out = "entities      ";
  for (const auto& [kind, n] : kinds) out += fmt::format(" {} {}", n, kind);
  std::size_t changed = 0, unreadable = 0, unsupported = 0, planned = 0;
  for (const auto& c : r.counters) {
    const bool before = !std::isnan(c.before), after = !std::isnan(c.after);
    unsupported += !before && !after ? 1 : 0;
    unreadable += before != after ? 1 : 0;
    changed += before && after && c.after != c.before ? 1 : 0;
  }
  for (const auto& p : r.plan) planned += p.state == "not_applicable" ? 0 : 1;
  const auto retests = static_cast<std::size_t>(std::ranges::count_if(
      r.cases, [](const results::CaseData& c) { return results::retest_number(c.name) > 0; }));
  out += fmt::format("\ncases          {} of {} planned, {} not applicable, {} measured again\n",
                     r.cases.size() - retests, planned, r.plan.size() - planned, retests);
  out += fmt::format("wrong values   {}\n", r.errors.size());
  out += fmt::format("counters       {} rows, {} changed, {} unreadable, {} unsupported\n", r.counters.size(),
                     changed, unreadable, unsupported);
  const auto& sampled = r.telemetry.entity;
  if (!sampled.empty())
    out += fmt::format("telemetry      {} series, {} samples, {} flags\n",
                       std::set<std::int32_t>(sampled.begin(), sampled.end()).size(), sampled.size(),
                       r.flags.size());
  out += fmt::format("events         {}\n", r.events.size());
  for (const auto& [checker, s] : selftest_sums(r))
    out += fmt::format("selftest       {}: injected {} caught {} located {} counted {}\n", checker,
                       s.injected, s.caught, s.located, s.counted);
  return out;
}

/// Counters that this machine does not offer, or not to this user.
std::string unsupported_text(const Results& r, std::size_t width) {
  std::set<std::string> names;
  for (const auto& c : r.counters)
    if (std::isnan(c.before) && std::isnan(c.after)) names.insert(c.counter);
  return names.empty() ? "" : wrap(fmt::format("unsupported    {}", fmt::join(names, ", ")), width, 15);
}

constexpr std::size_t fixed_width = 62;  ///< of a line of a metric, up to its worst entity

std::string metric_line(const Results& r, const results::CaseData& c, const results::Metric& m,
                        std::size_t width) {
  const auto d = summarize(r, c, m);
  const std::string samples = d.n == 0 ? "no samples" : fmt::format("n={}", d.n);
  const std::string worst = m.better == results::Better::none ? "" : short_link(d.worst);
  std::string out = "  " + left(m.name, 24) + right(format_quantity(d.median, m.unit), 15) +
                    right(percent_text(d.spread), 8) + "  " + left(samples, 11) +
                    fit(worst, width - fixed_width) + "\n";
  if (d.infinite > 0)
    out += "    " + wrap(fmt::format("infinite values: {}{}", d.first_infinite,
                                     d.infinite > 1 ? fmt::format(" and {} more", d.infinite - 1) : ""),
                         width - 4, 6);
  return out;
}

}  // namespace

std::string inspect_text(const Results& r, const std::string& file, const Style& style) {
  const auto width = static_cast<std::size_t>(std::max(style.width, 80));
  std::string out = info_text(r, file) + counts_text(r) + unsupported_text(r, width) + "\n";
  out += "  " + left("metric", 24) + right("median", 15) + right("spread", 8) + "  " + left("samples", 11) +
         "worst entity\n";
  for (const auto& c : r.cases) {
    const std::string state = results::to_string(c.state);
    const std::string word = state == "pass" ? "PASS" : state == "fail" ? "FAIL" : "WARN";
    std::string head = fmt::format("{}: {}{}, {} {} rows, {} samples, timed {} of {}", c.path(), state,
                                   c.required ? ", required" : "", c.entities(), c.kind, c.samples(),
                                   format_seconds(c.shares.timed_s), format_seconds(c.shares.wall_s));
    if (!c.reason.empty()) head += ": " + c.reason;
    const auto* known = headline(c);
    const std::string reduced = known == nullptr ? "" : reduced_words(c, *known);
    if (!reduced.empty()) head += "; " + reduced;
    std::string text = wrap(head, width, 4);
    const auto at = text.find(": " + state);
    if (at != std::string::npos) text.replace(at + 2, state.size(), paint(word, state, style));
    out += text;
    for (const auto& m : c.metrics) out += metric_line(r, c, m, width);
    for (const auto& a : c.arrays) out += fmt::format("  {} ({} integers)\n", a.name, a.values.size());
  }
  if (!r.events.empty()) out += "\n";
  for (const auto& e : r.events)
    out += wrap(fmt::format("event {:.1f} s {} {}: {}", e.t, entity_name(r, e.entity), e.kind, e.text), width,
                4);
  return out;
}

}  // namespace assay::report
