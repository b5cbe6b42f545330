// SPDX-License-Identifier: Apache-2.0
#include "verdict/reference_scores.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/units.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"

namespace assay::verdict {
namespace {

struct Partners {
  std::vector<double> rates;
  std::int64_t n = 0;
};

/// The links of one node by their stratum.
using NodeLinks = std::map<std::int32_t, Partners>;

/// "across A > A".
bool has_equal_ends(const std::string& stratum) {
  constexpr std::string_view across = "across ", to = " > ";
  if (!stratum.starts_with(across)) return false;
  const std::string_view ends = std::string_view(stratum).substr(across.size());
  const std::size_t end = ends.size() / 2 - 1;  // as long as the other one
  return ends.size() % 2 == 1 && ends.size() >= to.size() && ends.substr(end, to.size()) == to &&
         ends.substr(0, end) == ends.substr(end + to.size());
}

/// A link is as fast as its slower end. So those to nodes of the same model stand for a node; without any,
/// those of one stratum, which is the same one in every run that drew some.
const NodeLinks::value_type& links_for_node(const NodeLinks& all, const std::vector<std::string>& strata) {
  const auto name = [&](std::int32_t stratum) -> const std::string& {
    static const std::string none;
    return static_cast<std::size_t>(stratum) < strata.size() ? strata[static_cast<std::size_t>(stratum)]
                                                             : none;
  };
  const auto key = [&](const NodeLinks::value_type& links) {
    const std::string& text = name(links.first);
    return std::tuple(has_equal_ends(text), links.second.rates.size() >= 3, text);
  };
  return *std::ranges::max_element(all, {}, key);
}

}  // namespace

std::vector<Score> scores_of(const Snapshot& run, const SnapshotSeries& s) {
  std::vector<Score> scores;
  if (s.shared) return scores;
  std::map<std::int32_t, NodeLinks> nodes;
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
      auto& p = nodes[node][stratum];
      p.rates.push_back(s.log_rate[i]);
      p.n += n;
    }
  }
  for (const auto& [node, links] : nodes) {
    const auto& [stratum, p] = links_for_node(links, s.strata);
    const double m = static_cast<double>(p.rates.size());
    const double se =
        p.rates.size() < 3 ? results::not_taken : normal_median_error * mad_sigma(p.rates) / std::sqrt(m);
    scores.push_back({node, stratum, quantile(p.rates, 0.75), se, p.n, nan});
  }
  return scores;
}

Claim claim_of(double deficit, double error, std::int64_t n) {
  const double half = constants::interval_z * error;  // NaN where it is unknown
  Claim c;
  c.deficit = deficit;
  c.low = deficit - half;
  c.high = deficit + half;
  c.n = n;
  return c;
}

Claim settle_claim(const Judgement& j, const Score& score, double deficit, double error, double delta,
                   const RetestRate& retest, double retest_deficit, double retest_error,
                   std::size_t candidates) {
  const double t =
      t_quantile(1 - constants::alpha_retest / static_cast<double>(std::max<std::size_t>(candidates, 1)),
                 constants::retest_degrees);
  const bool retested = retest.measured;
  const double best = retested ? retest_deficit : deficit, se = retested ? retest_error : error;
  Claim c = claim_of(best, se, retested ? retest.n : score.n);
  const double coarse = log_deficit(constants::coarse_deficit);
  // One or two samples may be a neighbour on the machine, however low they are: measured again they say more.
  const bool large = best > coarse && !std::isnan(se) && best - t * se > delta;
  const bool sure = !std::isnan(se) && best - t * se > delta;
  const bool smoke = j.results.info.level == "smoke";
  if (sure && retested && (!smoke || best > coarse))
    c.confirmed_by = "retest";
  else if (sure && !retested && !smoke)
    c.confirmed_by = retest.lasting(score.log_rate + deficit, delta);
  if (c.confirmed_by.empty() && large) c.confirmed_by = "size";
  // What lasted was so, whatever the retest measured; of the run before the retest knows more.
  if (c.confirmed_by.empty() && retested && !smoke && deficit - t * error > delta &&
      retest.lasting(score.log_rate + deficit, delta) == "blocks") {
    c = claim_of(deficit, error, score.n);
    c.confirmed_by = "blocks";
    c.only_screened = true;
  }
  c.fault = !c.confirmed_by.empty();
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
  f.confirm(claim.confirmed_by);
  f.action = claim.fault ? "TRIAGE" : "MONITOR";
  f.evidence = series.path;
  f.text = f.name + ": " + s.full() + " " + format_quantity(*f.value, s.unit) + ", " + what + " " +
           format_quantity(*f.reference, s.unit) + ", deficit " + percent(*f.deficit);
  if (f.ci_low && f.ci_high) f.text += " (" + percent(*f.ci_low) + " to " + percent(*f.ci_high) + ")";
  f.text += ", n=" + std::to_string(claim.n) + (f.confirmed ? "" : ", not confirmed");
  if (claim.only_screened) f.text += ", not confirmed by the retest, but by 3 blocks over 60 s";
  return f;
}

void note_cleared(results::Finding& f, const SnapshotSeries& s, const Score& score) {
  f.severity = "INFO";
  f.kind = "intermittent";
  f.text +=
      " by the retest (screening: " + format_quantity(value_of(score.log_rate, s.higher_is_better), s.unit) +
      ")";
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
