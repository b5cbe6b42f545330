// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "base/units.hpp"
#include "verdict/constants.hpp"
#include "verdict/peer_findings.hpp"

namespace assay::verdict {
namespace {

std::string of(std::size_t part, std::size_t all) { return std::to_string(part) + " of " + std::to_string(all); }

std::string explanation(const SplitFound& s) {
  if (s.attribute.empty()) return ", explained by nothing that was recorded";
  char p[32];
  std::snprintf(p, sizeof p, "p = %.2g", s.p);
  return ", explained by " + s.attribute + " = " + s.value + " (" + of(s.with_low, s.split.low) + " slow, " +
         of(s.with_high, s.split.high) + " others, " + p + ")";
}

std::string text_of(const Population& p, const Confirmation& fresh, const results::Finding& out, bool fail, bool fast,
                    std::size_t metrics) {
  const auto& split = p.split.split;
  char apart[64], sure[96];
  std::snprintf(apart, sizeof apart, ", two populations %.0f deviations apart", split.distance);
  std::snprintf(sure, sizeof sure, ", confirmed by fresh samples (%.1f to %.1f %%, n=%lld)", 100 * fraction(fresh.low),
                100 * fraction(fresh.high), static_cast<long long>(fresh.samples));
  std::string text = "cluster: " + p.series->full() + ": " + of(out.members.size(), p.size()) + " are " + percent(*out.deficit) +
                     (fast ? " faster" : " slower") + " than the others" + apart + explanation(p.split);
  if (fail) text += sure;
  const bool many = static_cast<double>(split.low) >= constants::split_minority * static_cast<double>(p.size());
  if (!fail && p.split.attribute.empty() && !fast && many)
    text += "; so many may as well be right: hold them against a limit or a baseline";
  if (metrics > 1) text += ", and so in " + std::to_string(metrics - 1) + " other metrics of " + p.series->suite;
  text += "; members " + out.members.front();
  for (std::size_t i = 1; i < std::min<std::size_t>(out.members.size(), 8); ++i) text += ", " + out.members[i];
  if (out.members.size() > 8) text += " and " + std::to_string(out.members.size() - 8) + " more";
  return text;
}

}  // namespace

void add_split_finding(Judgement& j, const Population& p, const Confirmation& fresh, bool fail, std::size_t metrics) {
  const auto& s = *p.series;
  const bool explained = !p.split.attribute.empty(), fast = p.split.split.low > p.split.split.high;
  // Some being faster than the rest is worth knowing and nothing to mend.
  const char* severity = fail ? "FAIL" : fast && !explained ? "INFO" : "WARN";
  auto out = j.about(-1, severity, fail ? "magnitude" : "abnormality", explained ? "mismatch" : "split");
  const double deficit = fail ? fresh.deficit : p.split.deficit;
  out.suite = s.suite;
  out.metric = s.full();
  out.unit = s.unit;
  out.better = results::to_string(s.better);
  out.reference_kind = "peers";
  out.reference = from_log_rate(p.centre, s.better);
  out.value = from_log_rate(p.centre - deficit, s.better);
  out.deficit = fraction(deficit);
  if (fresh.measured) {
    out.ci_low = fraction(fresh.low);
    out.ci_high = fraction(fresh.high);
  }
  out.controls = static_cast<std::int64_t>(p.split.split.high);
  out.stratum = s.strata[static_cast<std::size_t>(p.stratum)];
  out.confirmed = fail;
  if (s.first != nullptr) out.since = s.first->started;
  out.action = explained ? "CONFIG" : fail ? "TRIAGE" : "MONITOR";
  out.evidence = s.path;
  std::vector<std::int32_t> rows;
  std::int64_t n = 0;
  for (const auto& m : p.members) {
    if (m.low == fast) continue;  // the smaller side is the one that is listed
    out.members.push_back(j.entities.name(m.row->entity));
    if (!fast) rows.push_back(m.row->entity);
    n += m.row->n;
  }
  out.samples = fresh.measured ? fresh.samples : n;
  out.text = text_of(p, fresh, out, fail, fast, metrics);
  j.add(std::move(out), rows);
}

}  // namespace assay::verdict
