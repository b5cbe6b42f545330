// SPDX-License-Identifier: Apache-2.0
#include "verdict/reference_scores.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/units.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/retest_result.hpp"

namespace assay::verdict {
namespace {

struct Partners {
  std::vector<double> rates;
  std::int32_t stratum = 0;
  std::int64_t n = 0;
};

/// Rows of a case that tell of a part: itself, or for a node the links that touch it.
bool tells_of(const Judgement& j, const results::CaseData& c, std::size_t row, const Part& part) {
  const std::int32_t own = part.entities.empty() ? -1 : part.entities.front();
  if (c.entity[row] == own && own >= 0) return true;
  if (row >= c.source.size() || row >= c.destination.size()) return false;
  if (part.kind == "link")
    return part.entities.size() > 1 && c.source[row] == part.entities[1] &&
           c.destination[row] == part.entities.back();
  const auto a = j.entities.node(c.source[row]), b = j.entities.node(c.destination[row]);
  return a != b && (a == own || b == own);
}

struct Samples {
  std::vector<double> values;
  std::vector<double> row_rates;  ///< medians of the rows
  std::set<std::int32_t> blocks;
  double first_s = HUGE_VAL, last_s = -HUGE_VAL;
};

void gather(const results::CaseData& c, const results::Metric& m, std::size_t row, bool higher,
            Samples& out) {
  const std::size_t width = m.per_sample ? c.samples() : 1;
  const std::size_t taken =
      row < c.count.size() && m.per_sample ? static_cast<std::size_t>(std::max(0, c.count[row])) : width;
  std::vector<double> own;
  for (std::size_t s = 0; s < std::min(taken, width); ++s) {
    const std::size_t i = row * width + s;
    if (i >= m.values.size() || !(m.values[i] > 0)) continue;
    own.push_back(higher ? std::log(m.values[i]) : -std::log(m.values[i]));
    if (s < c.block.size()) out.blocks.insert(c.block[s]);
    if (i >= c.t.size() || std::isnan(c.t[i])) continue;
    out.first_s = std::min(out.first_s, c.t[i]);
    out.last_s = std::max(out.last_s, c.t[i]);
  }
  if (own.empty()) return;
  out.row_rates.push_back(median(own));
  out.values.insert(out.values.end(), own.begin(), own.end());
}

}  // namespace

std::vector<Score> scores_of(const Snapshot& run, const SnapshotSeries& s) {
  std::vector<Score> scores;
  if (s.shared) return scores;
  std::map<std::int32_t, Partners> nodes;
  const auto nan = static_cast<float>(results::not_taken);
  for (std::size_t i = 0; i < s.log_rate.size(); ++i) {
    const std::int32_t row = s.rows->part[i], stratum = s.rows->stratum[i];
    const Part& part = run.part(row);
    const std::int64_t n = i < s.n.size() ? s.n[i] : 0;
    if (part.kind != "link" || part.node == part.far_node) {
      scores.push_back({row, stratum, s.log_rate[i],
                        i < s.standard_error.size() ? s.standard_error[i] : results::not_taken, n,
                        s.log_clock.empty() ? nan : s.log_clock[i]});
      continue;
    }
    for (const auto node : {part.node, part.far_node}) {
      auto& p = nodes[node];
      p.rates.push_back(s.log_rate[i]);
      p.stratum = stratum;
      p.n += n;
    }
  }
  for (auto& [node, p] : nodes) {
    const double m = static_cast<double>(p.rates.size());
    const double se = p.rates.size() < 3 ? results::not_taken : 1.2533 * mad_sigma(p.rates) / std::sqrt(m);
    scores.push_back({node, p.stratum, quantile(p.rates, 0.75), se, p.n, nan});
  }
  return scores;
}

RetestRate retest_rate(const Judgement& j, const Series& s, const Part& part, const Score& score) {
  Samples retest, screened;
  for (const auto& c : j.results.cases) {
    const bool of_retest = is_retest_of(c, s);
    const bool own = c.suite == s.suite && base_name(c.name) == s.name && !of_retest;
    const auto* m = of_retest || own ? c.find(s.metric) : nullptr;
    if (m == nullptr) continue;
    for (std::size_t r = 0; r < c.entity.size(); ++r)
      if (tells_of(j, c, r, part))
        gather(c, *m, r, s.better == results::Better::higher, of_retest ? retest : screened);
  }
  RetestRate out;
  out.log_rate = score.log_rate;
  out.standard_error = score.standard_error;
  out.n = score.n;
  out.lasting = screened.blocks.size() >= constants::lasting_blocks &&
                screened.last_s - screened.first_s >= constants::lasting_s;
  if (retest.values.size() < 3) return out;
  out.measured = true;
  out.log_rate = retest.row_rates.size() > 1 ? quantile(retest.row_rates, 0.75) : median(retest.values);
  out.standard_error = median_standard_error(retest.values);
  out.n = static_cast<std::int64_t>(retest.values.size());
  return out;
}

double log_deficit_of(double fraction) noexcept { return -std::log1p(-fraction); }

Claim settle_claim(const Judgement& j, const Score& score, double deficit, double error, double delta,
                   const RetestRate& retest, double retest_deficit, double retest_error,
                   std::size_t candidates) {
  Claim c;
  const double t =
      t_quantile(1 - constants::alpha_retest / static_cast<double>(std::max<std::size_t>(candidates, 1)),
                 constants::retest_degrees);
  const bool retested = retest.measured;
  const double best = retested ? retest_deficit : deficit, se = retested ? retest_error : error;
  c.deficit = best;
  c.low = best - constants::interval_z * se;
  c.high = best + constants::interval_z * se;
  c.n = retested ? retest.n : score.n;
  if (std::isnan(se)) c.low = c.high = results::not_taken;
  const double coarse = log_deficit_of(constants::coarse_deficit);
  // One or two samples may be a neighbour on the machine, however low they are: measured again they say more.
  const bool large = best > coarse && !std::isnan(se) && best - t * se > delta;
  const bool sure = !std::isnan(se) && best - t * se > delta;
  if (j.results.info.level == "smoke" && !retested) {
    c.fault = c.confirmed = large;
    return c;
  }
  c.confirmed = large || (sure && (retested || retest.lasting));
  c.fault = c.confirmed;
  return c;
}

results::Finding reference_finding(const Judgement& j, const SnapshotSeries& s, const Part& part,
                                   const Score& score, const Claim& claim, double reference_log,
                                   const std::string& kind, const std::string& what) {
  auto f = j.about(part.entities.empty() ? -1 : part.entities.front(), claim.fault ? "FAIL" : "WARN",
                   "magnitude", kind);
  const Series& series = j.series[s.origin];
  f.name = part.name;
  f.id = part.id;
  f.level = part.kind;
  f.suite = s.suite;
  f.metric = s.full();
  f.unit = s.unit;
  f.better = s.higher_is_better ? "higher" : "lower";
  f.value = value_of(reference_log - claim.deficit, s.higher_is_better);
  f.reference = value_of(reference_log, s.higher_is_better);
  f.deficit = -std::expm1(-claim.deficit);
  if (!std::isnan(claim.low)) f.ci_low = -std::expm1(-claim.low);
  if (!std::isnan(claim.high)) f.ci_high = -std::expm1(-claim.high);
  f.samples = claim.n;
  if (static_cast<std::size_t>(score.stratum) < s.strata.size())
    f.stratum = s.strata[static_cast<std::size_t>(score.stratum)];
  f.confirmed = claim.confirmed;
  f.action = claim.fault ? "TRIAGE" : "MONITOR";
  f.evidence = series.path;
  f.text = f.name + ": " + s.full() + " " + format_quantity(*f.value, s.unit) + ", " + what + " " +
           format_quantity(*f.reference, s.unit) + ", deficit " + percent(*f.deficit);
  if (f.ci_low && f.ci_high) f.text += " (" + percent(*f.ci_low) + " to " + percent(*f.ci_high) + ")";
  f.text += ", n=" + std::to_string(claim.n) + (claim.confirmed ? "" : ", not confirmed");
  return f;
}

void mark_references(Judgement& j, const SnapshotSeries& s, const std::vector<const Part*>& parts,
                     Reference strength) {
  std::set<std::int32_t> own;
  std::set<std::pair<std::int32_t, std::int32_t>> links;
  for (const auto* part : parts) {
    if (part->entities.empty()) continue;
    own.insert(part->entities.front());
    if (part->kind == "link") links.emplace(part->entities[part->entities.size() - 2], part->entities.back());
  }
  for (auto& row : j.series[s.origin].rows) {
    const bool held = row.source < 0 ? own.contains(row.entity)
                                     : links.contains({row.source, row.destination}) ||
                                           own.contains(j.entities.node(row.source)) ||
                                           own.contains(j.entities.node(row.destination));
    if (held) row.reference = std::max<std::uint8_t>(row.reference, strength);
  }
}

}  // namespace assay::verdict
