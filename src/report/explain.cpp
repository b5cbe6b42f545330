// SPDX-License-Identifier: Apache-2.0
#include "report/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "report/layout.hpp"
#include "report/words.hpp"

namespace assay::report {
namespace {

using verdict::MetricEvidence;

constexpr std::size_t metrics_shown = 200, rows_shown = 50;

void line(std::string& out, const std::string& text, std::size_t width, std::size_t indent = 2) {
  out += std::string(indent, ' ') + wrap(text, width - indent, indent + 2);
}

std::string finding_facts(const results::Finding& f) {
  std::string text = fmt::format("claim {}, level {}", f.claim, f.level);
  if (f.value) text += ", value " + format_quantity(*f.value, f.unit);
  if (f.reference) text += fmt::format(", {} {}", f.reference_kind, format_quantity(*f.reference, f.unit));
  if (f.deficit) text += ", deficit " + percent_text(*f.deficit);
  if (f.ci_low && f.ci_high)
    text += fmt::format(" ({} to {})", percent_text(*f.ci_low), percent_text(*f.ci_high));
  if (f.samples) text += fmt::format(", n={}", *f.samples);
  if (f.controls) text += fmt::format(", controls {}", *f.controls);
  constexpr double least_p = 1e-9;  // smaller ones rest on the tails of the model
  if (f.p_adjusted) text += *f.p_adjusted < least_p ? ", p < 1e-9" : fmt::format(", p {:.2g}", *f.p_adjusted);
  if (!f.stratum.empty()) text += ", stratum " + group_words(f.stratum);
  const std::string confirmation = confirmation_words(f);
  text += f.confirmed ? ", confirmed" + (confirmation.empty() ? "" : " (" + confirmation + ")")
                      : ", not confirmed";
  if (f.uncertainty) text += ", uncertain by " + percent_text(*f.uncertainty);
  if (!f.since.empty()) text += ", since " + f.since;
  if (!f.evidence.empty()) text += ", evidence " + f.evidence;
  return text;
}

void add_findings(std::string& out, const verdict::Explanation& e, std::size_t width) {
  if (e.findings.empty()) out += "no finding names it\n";
  for (const auto& f : e.findings) {
    out += wrap(f.severity + "  " + f.text + (f.action.empty() ? "" : " [" + f.action + "]"), width, 6);
    line(out, finding_facts(f), width, 6);
  }
}

std::string metric_facts(const MetricEvidence& m) {
  std::string text = format_quantity(m.value, m.unit);
  if (!std::isnan(m.low))
    text += fmt::format(" ({} to {})", format_quantity(m.low, m.unit), format_quantity(m.high, m.unit));
  text += fmt::format(", n={}", m.n);
  if (!std::isnan(m.peers_deficit))
    text += fmt::format("; {} {}, deficit {}, {} of {} from the slow end", plural(m.of - 1, "peer"),
                        format_quantity(m.peers, m.unit), percent_text(m.peers_deficit), m.rank, m.of);
  if (!std::isnan(m.baseline))
    text += fmt::format("; baseline {}, deficit {}", format_quantity(m.baseline, m.unit),
                        percent_text(m.baseline_deficit));
  if (!std::isnan(m.history))
    text += fmt::format("; own history {}, deficit {} before the fleet's drift is taken out",
                        format_quantity(m.history, m.unit), percent_text(m.history_deficit)) +
            (std::isnan(m.history_threshold) ? "" : ", alert beyond " + percent_text(m.history_threshold));
  for (const auto& limit : m.limits) text += "; limit " + limit;
  for (const auto& f : m.retests)
    text += fmt::format("; again in {}: {}, n={}", f.name, format_quantity(f.value, m.unit), f.n);
  if (!m.stratum.empty()) text += "; stratum " + group_words(m.stratum);
  return text;
}

void add_metrics(std::string& out, const verdict::Explanation& e, std::size_t width) {
  if (!e.metrics.empty()) out += "\nmetrics, the slowest against its peers first\n";
  for (std::size_t i = 0; i < std::min(metrics_shown, e.metrics.size()); ++i) {
    const auto& m = e.metrics[i];
    line(out, m.metric + (m.part == e.entity.name ? "" : " of " + m.part), width);
    line(out, metric_facts(m), width, 4);
  }
  if (e.metrics.size() > metrics_shown)
    out += fmt::format("  +{} more: assay export FILE --csv\n", e.metrics.size() - metrics_shown);
}

template <class Rows, class Text>
void add_rows(std::string& out, const char* title, const Rows& rows, std::size_t width, const Text& text) {
  if (rows.empty()) return;
  out += std::string("\n") + title + "\n";
  for (std::size_t i = 0; i < std::min(rows_shown, rows.size()); ++i) line(out, text(rows[i]), width);
  if (rows.size() > rows_shown)
    out += fmt::format("  +{} more: assay inspect FILE\n", rows.size() - rows_shown);
}

std::string reading(double value) { return std::isnan(value) ? "unreadable" : fmt::format("{:.15g}", value); }

}  // namespace

std::string explain_text(const verdict::Explanation& e, const Style& style) {
  const auto width = static_cast<std::size_t>(std::max(style.width, 60));
  const std::string state = e.state.empty() ? "not judged separately" : e.state;
  const std::string prefix = e.entity.kind + ":";
  const std::string name = e.entity.name.substr(e.entity.name.starts_with(prefix) ? prefix.size() : 0);
  std::string out = fmt::format("{} {}: ", e.entity.kind, name) + paint(state, state, style) + "\n";
  if (!e.reason.empty()) line(out, "because " + e.reason, width);
  line(out,
       "id " + e.entity.id + " (" + e.entity.id_source + ")" +
           (e.node.empty() || e.node == e.entity.name ? "" : ", in " + e.node),
       width);
  out += "\n";
  add_findings(out, e, width);
  add_metrics(out, e, width);
  add_rows(out, "counters that changed", e.counters, width, [](const results::CounterRow& c) {
    return fmt::format("{}: {} -> {} ({})", c.counter.str(), reading(c.before), reading(c.after),
                       c.case_path.str());
  });
  add_rows(out, "events", e.events, width,
           [](const results::EventRow& v) { return fmt::format("{:.1f} s {}: {}", v.t, v.kind, v.text); });
  add_rows(out, "wrong values", e.errors, width, [](const results::Miscompare& m) {
    return fmt::format("{} at {}: expected {:#x}, actual {:#x}, read again {:#x}{}", m.case_path, m.index,
                       m.expected, m.actual, m.reread,
                       m.sm < 0 ? "" : fmt::format(", seen by SM {} warp {} lane {}", m.sm, m.warp, m.lane));
  });
  return out + "\n";
}

}  // namespace assay::report
