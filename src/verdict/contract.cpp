// SPDX-License-Identifier: Apache-2.0
#include "verdict/contract.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/limit_match.hpp"

namespace assay::verdict {
namespace {

/// "no" where a finding of this bound failed, "open" where one warned or a part is without samples.
std::string met_of(const results::VerdictData& verdict, const Series& s, double bound, bool is_min) {
  bool warned = false;
  for (const auto& f : verdict.findings) {
    if (f.reference_kind != "limit" || f.metric != s.full() || f.better != (is_min ? "higher" : "lower"))
      continue;
    if (f.reference && *f.reference != bound) continue;
    if (f.severity == "FAIL") return "no";
    warned = warned || f.severity == "WARN";
  }
  return warned ? "open" : "yes";
}

ContractRow row_of(const LimitMatch& match, const Judgement& j, const Limit& limit, const Series& s,
                   bool is_min) {
  ContractRow out;
  out.metric = s.full();
  out.unit = s.unit;
  out.bound = is_min ? limit.min : limit.max;
  std::vector<double> medians;
  for (const auto& row : s.rows) {
    if (!match.row(limit, row)) continue;
    medians.push_back(row.median);
    const double margin = -deficit_of(row.median, out.bound, is_min);
    out.beyond += margin < 0 ? 1 : 0;
    if (!std::isnan(out.margin) && margin >= out.margin) continue;
    out.margin = margin;
    out.worst_value = row.median;
    out.worst = name_of(j, row);
  }
  out.parts = medians.size();
  if (medians.empty()) return out;
  out.median = median(medians);
  if (medians.size() >= constants::interval_min_samples) {
    const double half = constants::interval_z * median_standard_error(medians);
    out.low = out.median - half;
    out.high = out.median + half;
  }
  return out;
}

}  // namespace

std::vector<ContractRow> contract_of(const Judgement& j, const results::VerdictData& verdict) {
  std::vector<ContractRow> rows;
  if (j.options.limits_text.empty()) return rows;
  const LimitMatch match(j);
  const std::string file = j.options.limits_name.empty() ? "limits" : j.options.limits_name;
  for (const auto& limit : parse_limits(j.options.limits_text, j.options.limits_name)) {
    const std::string where = file + ":" + std::to_string(limit.line),
                      whom = limit.device == "*" ? "" : " on " + limit.device;
    bool matched = false;
    for (const auto& s : j.series) {
      if (!match.series(limit, s)) continue;
      for (const bool is_min : {true, false}) {
        if (is_min ? !limit.has_min : !limit.has_max) continue;
        ContractRow row = row_of(match, j, limit, s, is_min);
        if (row.parts == 0) continue;
        matched = true;
        row.promised = (is_min ? "min " + limit.min_text : "max " + limit.max_text) + whom;
        row.where = where;
        row.met = met_of(verdict, s, row.bound, is_min);
        if (row.met == "yes" && row.parts < s.first->entity.size() && limit.device == "*") row.met = "open";
        rows.push_back(std::move(row));
      }
    }
    if (matched) continue;
    ContractRow row;
    row.promised = limit.full() + (limit.has_min ? " min " + limit.min_text : "") +
                   (limit.has_max ? " max " + limit.max_text : "") + whom;
    row.where = where;
    row.met = "absent";
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    const auto key = [](const ContractRow& r) {
      return std::tuple(r.met != "absent", std::isnan(r.margin) ? -1e300 : r.margin);
    };
    return key(a) < key(b);
  });
  return rows;
}

}  // namespace assay::verdict
