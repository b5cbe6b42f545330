// SPDX-License-Identifier: Apache-2.0
#include "verdict/peer_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/units.hpp"
#include "verdict/constants.hpp"

namespace assay::verdict {
namespace {

std::string p_text(double p) {
  if (p < 1e-9) return "p < 1e-9";
  char text[32];
  std::snprintf(text, sizeof text, "p = %.2g", p);
  return text;
}

std::string range(double low, double high) {
  const std::string from = percent(fraction(low));
  return from.substr(0, from.size() - 2) + " to " + percent(fraction(high));
}

/// 1010 and not 1.01e+03.
std::string times(double factor) {
  return factor < 100 ? fmt::format("{:.3g}", factor) : fmt::format("{:.0f}", factor);
}

struct Shown {
  double deficit = 0, low = 0, high = 0;
  std::int64_t samples = 0, controls = 0;
  bool retest = false;
};

/// Those of the retest where they say something about what is claimed, else those of the screening with their
/// 95 % interval.
Shown shown(const PeerFinding& f) {
  const auto& p = *f.population;
  if (f.retest.measured && !f.intermittent && !f.retest.earlier_confirmed)
    return {f.retest.deficit, f.retest.low, f.retest.high, f.retest.samples, f.retest.controls, true};
  const double half = constants::interval_z * (std::isnan(p.se) ? 0 : p.se);
  return {f.suspect.deficit,
          f.suspect.deficit - half,
          f.suspect.deficit + half,
          p.members[f.member].row->n,
          static_cast<std::int64_t>(f.suspect.siblings > 0 ? f.suspect.siblings : p.size() - 1),
          false};
}

/// What confirms it, as a finding has it; empty if nothing does.
std::string confirmation_of(const PeerFinding& f) {
  if (!f.fail) return "";
  if (f.retest.confirmed) return "retest";
  return f.throttle_counted && f.lasting_s < constants::lasting_s ? "counter" : "blocks";
}

/// Why it is a fault, or why not yet.
std::string standing(const PeerFinding& f) {
  const auto& p = *f.population;
  const std::string delta = percent(f.suspect.delta), by = confirmation_of(f);
  if (by == "retest")
    return "confirmed by " + count(f.retest.samples, "retest sample", "retest samples") + " against " +
           count(f.retest.controls, "control", "controls") + ", the whole interval beyond " + delta;
  char lasted[96];
  std::snprintf(lasted, sizeof lasted, "in %zu blocks over %.0f s", f.lasting_blocks, f.lasting_s);
  if (by == "counter") return "beyond " + delta + " while its throttle counter rose";
  if (by == "blocks") return std::string("beyond ") + delta + " " + lasted;
  if (f.intermittent)
    return "not in " + count(f.retest.samples, "retest sample", "retest samples") + " (" +
           percent(fraction(f.retest.deficit)) + ")";
  const char *chance = f.suspect.deficit > log_deficit(constants::kind_gross_deficit)
                           ? "no proof of a fault: the others are too few or differ too much"
                           : "no proof of a fault: with heavy tails healthy parts can be as slow",
             *kind = "a share this large may be another kind of part: compare it with a limit or a baseline";
  if (f.coarse) return "smoke FAILs only deficits over " + percent(constants::coarse_deficit);
  if (f.retest.earlier_confirmed)
    return "confirmed by a retest and not in the last one (" + percent(fraction(f.retest.deficit)) + ")";
  if (f.retest.confirmed)
    return "in " + count(f.retest.samples, "retest sample", "retest samples") + " too; " +
           (f.suspect.spared ? kind : chance);
  if (f.retest.measured && f.retest.needed > 0)
    return "AMBIGUOUS against " + delta + ": " + std::to_string(f.retest.needed) + " samples would decide";
  if (f.retest.measured) return "retested, not beyond " + delta;
  if (f.suspect.candidate && f.retest.samples > 0)
    return "not confirmed: " + count(f.retest.samples, "retest sample", "retest samples") +
           ", too few samples or healthy controls";
  if (f.suspect.candidate) return "not confirmed: not measured again";
  if (f.suspect.spared) return kind;
  if (f.suspect.siblings > 0)
    return "no outlier among all " + count(static_cast<std::int64_t>(p.size()), "part", "parts") +
           ": nodes differ more";
  if (!p.noise_known) return "too few samples for a decision at " + delta;
  if (!p.eligible()) return "not judged to " + delta + ": the resolution is " + percent(p.effective_delta());
  if (fraction(f.suspect.deficit) < f.suspect.delta) return "below the FAIL threshold of " + delta;
  return chance;
}

std::string kind_text(const PeerFinding& f) {
  if (f.suspect.kind == "throttled") {
    const auto& p = *f.population;
    const double left = p.residual_deficit(f.member);
    if (left <= log_deficit(p.delta) || left <= constants::interval_z * p.se_of(f.member))
      return "throttled: explained by its clock";
    return "throttled: its clock explains a part, at equal clock it is " + percent(fraction(left)) + " slow";
  }
  if (f.suspect.kind == "slow_at_clock") return "slow at equal clock";
  return "slow";
}

}  // namespace

bool is_note(const PeerFinding& f) {
  // The retest decides: what it does not show is a note, and under six parts what it does not confirm.
  return !f.fail &&
         (f.intermittent || f.suspect.note ||
          (!f.suspect.warn && !f.retest.confirmed && f.population->size() < constants::peers_min_population));
}

results::Finding about_peers(const Judgement& j, const Population& p, std::int32_t row,
                             const std::string& severity, const std::string& claim, const std::string& kind) {
  const Series& s = *p.series;
  auto f = j.about(s, row, severity, claim, kind);
  f.reference_kind = "peers";
  f.stratum = s.strata[static_cast<std::size_t>(p.stratum)];
  if (s.first != nullptr) f.since = s.first->started;
  return f;
}

namespace {

results::Finding fill(const Judgement& j, const PeerFinding& f, std::int32_t subject) {
  const auto& p = *f.population;
  const auto& s = *p.series;
  const Shown v = shown(f);
  const char* otherwise = is_note(f) ? "INFO" : "WARN";
  auto out = about_peers(j, p, subject, f.fail ? "FAIL" : otherwise, f.fail ? "magnitude" : "abnormality",
                         f.intermittent ? "intermittent" : f.suspect.kind);
  const double centre = f.suspect.at_clock || f.suspect.siblings > 0
                            ? p.members[f.member].rate + f.suspect.deficit
                            : p.reference(f.member);
  out.reference = from_log_rate(centre, s.better);
  out.value = from_log_rate(centre - v.deficit, s.better);
  out.deficit = fraction(v.deficit);
  out.ci_low = fraction(v.low);
  out.ci_high = fraction(v.high);
  out.samples = v.samples;
  out.controls = v.controls;
  out.confirm(confirmation_of(f));
  out.p_adjusted = f.p;
  out.action = f.fail ? "TRIAGE" : "MONITOR";
  return out;
}

std::string compared_with(const PeerFinding& f) {
  if (f.suspect.siblings > 0) return "the " + std::to_string(f.suspect.siblings) + " other parts of its node";
  return "its " + count(static_cast<std::int64_t>(f.population->size()) - 1, "peer", "peers");
}

std::string sentence(const PeerFinding& f, const results::Finding& out) {
  const auto& s = *f.population->series;
  const Shown v = shown(f);
  const bool lower = s.better == results::Better::lower;
  const char* than = lower ? ") slower than " : ") below ";
  // "50 % slower" reads as one and a half times as long, and means twice.
  const std::string distance = lower && *out.deficit > 1.0 / 3
                                   ? times(1 / (1 - *out.deficit)) + " times "
                                   : percent(*out.deficit) + " (" + range(v.low, v.high) + than;
  std::string text = s.full() + " " + format_quantity(*out.value, s.unit) + ", " + distance +
                     format_quantity(*out.reference, s.unit) + " of " + compared_with(f) + ", " +
                     kind_text(f) + ", " + standing(f) + ", n=" + std::to_string(v.samples) + ", " +
                     p_text(f.p);
  if (f.suspect.combined) text += " by all metrics of the suite together";
  if (f.metrics > 1)
    text += ", and so in " +
            count(static_cast<std::int64_t>(f.metrics) - 1, "other metric", "other metrics") + " of " +
            s.suite;
  return text;
}

std::string next_step(const PeerFinding& f) {
  if (!f.fail) return "";
  if (f.suspect.kind == "throttled") return "; next: power and cooling of this part";
  if (f.suspect.kind == "slow_at_clock") return "; next: memory, links and other users of this part";
  return "; next: remove it and test it alone";
}

}  // namespace

std::string count(std::int64_t n, const char* one, const char* many) {
  return std::to_string(n) + " " + (n == 1 ? one : many);
}

void add_peer_finding(Judgement& j, const PeerFinding& f) {
  const auto& row = *f.population->members[f.member].row;
  auto out = fill(j, f, row.entity);
  out.text = out.name + ": " + sentence(f, out) + next_step(f);
  j.add(std::move(out), rows_of(row));
}

namespace {

/// Nodes all of whose parts, two or more, are among these, as "; all parts of ..."; else empty.
std::string whole_nodes(const Judgement& j, const Population& p, const std::vector<std::int32_t>& rows) {
  std::map<std::int32_t, std::size_t> missing, parts;
  for (const auto& m : p.members) ++parts[j.entities.node(m.row->entity)];
  missing = parts;
  for (const auto row : rows) --missing[j.entities.node(row)];
  std::vector<std::string> names;
  for (const auto& [node, left] : missing)
    if (node >= 0 && left == 0 && parts[node] > 1) names.push_back(j.entities.name(node));
  return names.empty() ? "" : "; all parts of " + first_of(names);
}

}  // namespace

void add_group_finding(Judgement& j, const std::vector<PeerFinding>& parts) {
  const auto worst = std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return shown(a).deficit < shown(b).deficit;
  });
  const auto& p = *worst->population;
  auto out = fill(j, *worst, -1);
  out.kind = "split";
  std::vector<std::int32_t> rows;
  std::int64_t n = 0;
  double least = shown(*worst).deficit;
  for (const auto& f : parts) {
    const auto entity = f.population->members[f.member].row->entity;
    out.members.push_back(j.entities.name(entity));
    rows.push_back(entity);
    n += shown(f).samples;
    least = std::min(least, shown(f).deficit);
    out.ci_low = std::min(*out.ci_low, fraction(shown(f).low));
    out.ci_high = std::max(*out.ci_high, fraction(shown(f).high));
  }
  out.samples = n;
  const bool grouped = p.split.found && !p.split.apart;
  out.text = "cluster: " + p.series->full() + ": " + std::to_string(parts.size()) + " of " +
             std::to_string(p.size()) +
             (worst->suspect.siblings > 0 ? " are slow for their nodes by " : " are slow by ") +
             range(least, shown(*worst).deficit) + (grouped ? place_in_common(j, p, rows) : "") +
             (worst->fail ? ", each of them " : ", ") + standing(*worst) + whole_nodes(j, p, rows) +
             "; members " + first_of(out.members) + next_step(*worst);
  j.add(std::move(out), rows);
}

void add_control_finding(Judgement& j, const Population& p, const SlowControl& c) {
  const Series& s = *p.series;
  const Member& m = p.members[c.member];
  auto f = about_peers(j, p, m.row->entity, p.eligible() ? "WARN" : "INFO", "abnormality", "intermittent");
  f.reference = from_log_rate(m.rate, s.better);
  f.value = from_log_rate(c.rate, s.better);
  f.deficit = fraction(c.deficit);
  f.samples = c.samples;
  f.action = "MONITOR";
  f.text = f.name + ": " + s.full() + " " + format_quantity(*f.value, s.unit) + " in " +
           count(c.samples, "retest sample", "retest samples") + " as a control, " + percent(*f.deficit) +
           " slower than the " + format_quantity(*f.reference, s.unit) + " of its first measurement";
  j.add(std::move(f), rows_of(*m.row));
}

void add_node_finding(Judgement& j, std::int32_t node, const std::vector<PeerFinding>& parts) {
  const auto worst = std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return std::pair(a.fail, shown(a).deficit) < std::pair(b.fail, shown(b).deficit);
  });
  auto out = fill(j, *worst, node);
  std::vector<std::int32_t> rows = {node};
  std::size_t failed = 0;
  for (const auto& f : parts) {
    const auto entity = f.population->members[f.member].row->entity;
    out.members.push_back(j.entities.name(entity));
    rows.push_back(entity);
    failed += f.fail ? 1 : 0;
  }
  out.text = out.name + ": all of its " + std::to_string(parts.size()) + " parts are slow (" +
             std::to_string(failed) + " confirmed); worst " +
             j.entities.name(worst->population->members[worst->member].row->entity) + ": " +
             sentence(*worst, out) + next_step(*worst);
  j.add(std::move(out), rows);
}

}  // namespace assay::verdict
