// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/peer_findings.hpp"

namespace assay::verdict {
namespace {

std::string of(std::size_t part, std::size_t all) {
  return std::to_string(part) + " of " + std::to_string(all);
}

/// "; their clocks are 31 % lower: compare their power and cooling"; "" where they are not, or not all are
/// known.
std::string clocks_of(const Population& p) {
  std::vector<double> listed, others;
  for (const auto& m : p.members) {
    if (std::isnan(m.clock)) return "";
    (m.low != p.split.fast() ? listed : others).push_back(m.clock);
  }
  const double apart = median(others) - median(listed);
  if (std::abs(apart) < constants::delta_warn) return "";
  return "; their clocks are " + percent(apart > 0 ? fraction(apart) : std::expm1(-apart)) +
         (apart > 0 ? " lower" : " higher") +
         (p.clocked && !p.split.by_clock ? ", and this is the difference at equal clock"
                                         : ": compare their power and cooling");
}

std::string text_of(const Population& p, const results::Finding& out, std::size_t metrics) {
  const auto& split = p.split.split;
  char apart[64];
  std::snprintf(apart, sizeof apart, ", two populations %.0f deviations apart", split.distance);
  const std::string common = in_common(p.split);
  std::string text = "cluster: " + p.series->full() + ": " + of(out.members.size(), p.size()) + " are " +
                     (p.split.fast() ? percent(std::expm1(p.split.deficit)) + " faster"
                                     : percent(*out.deficit) + " slower") +
                     " than the others" + apart +
                     (common.empty() ? ", explained by no recorded attribute" : common);
  text += clocks_of(p);
  if (!p.split.explained())
    text += "; peers do not show which side is right: compare with a limit or a baseline";
  if (metrics > 1)
    text += ", and so in " + count(static_cast<std::int64_t>(metrics) - 1, "other metric", "other metrics") +
            " of " + p.series->suite;
  return text + "; members " + first_of(out.members);
}

}  // namespace

std::string in_common(const SplitFound& s) {
  if (s.attribute.empty()) return {};
  std::string name = s.attribute;
  if (ends_with(name, "_info")) name.resize(name.size() - 5);
  char p[32];
  std::snprintf(p, sizeof p, "p = %.2g", s.p);
  return (s.place ? ", in one place: " : ", explained by ") + name + " = " + s.value + " (" +
         of(s.with_low, s.split.low) + " slow, " + of(s.with_high, s.split.high) + " others, " + p + ")";
}

void add_split_finding(Judgement& j, const Population& p, std::size_t metrics) {
  const auto& s = *p.series;
  const bool explained = p.split.explained(), fast = p.split.fast();
  // Some being faster than the rest by as much as kinds differ is a note without an action.
  const bool usual = p.split.deficit <= log_deficit(constants::kind_most_deficit);
  // Of parts of one model most may have slowed down, and a faster fifth is what they were.
  const bool open = too_far_for_kinds(p, p.split.deficit) &&
                    (!fast || may_be_all_that_is_sound(p.split.split.high, p.size()));
  const bool note = !explained && ((fast && usual) || is_noted_split(p));
  auto out = about_peers(j, p, -1, note ? "INFO" : "WARN", "abnormality", explained ? "mismatch" : "split");
  out.reference = from_log_rate(p.centre, s.better);
  out.value = from_log_rate(fast ? p.centre + p.split.deficit : p.centre - p.split.deficit, s.better);
  out.deficit = fraction(p.split.deficit);
  out.controls = static_cast<std::int64_t>(fast ? p.split.split.low : p.split.split.high);
  out.action = explained ? "CONFIG" : "MONITOR";
  std::vector<std::int32_t> rows;
  std::int64_t n = 0;
  for (const auto& m : p.members) {
    if (m.low && (!fast || open)) rows.push_back(m.row->entity);
    if (m.low == fast) continue;  // the smaller side is the one that is listed
    out.members.push_back(j.entities.name(m.row->entity));
    n += m.row->n;
  }
  out.samples = n;
  out.text = text_of(p, out, metrics);
  const bool shared = !explained && note_shared_cores(j, s, entities_of(p), out);
  j.add(std::move(out), rows, !shared && open);
}

}  // namespace assay::verdict
