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

ContractRow row_of(const LimitMatch& match, const Judgement& j, const Limit& limit, const Series& s,
                   bool is_min) {
  ContractRow out;
  out.metric = s.full();
  out.unit = s.unit;
  out.bound = is_min ? limit.min : limit.max;
  std::vector<double> medians;
  for (const auto& row : s.rows) {
    if (!match.row(limit, row)) continue;
    const double value = LimitMatch::held(s, row, is_min);
    medians.push_back(value);
    const double margin = -deficit_of(value, out.bound, is_min);
    out.beyond += margin < 0 ? 1 : 0;
    if (!std::isnan(out.margin) && margin >= out.margin) continue;
    out.margin = margin;
    out.worst_value = value;
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

std::vector<ContractRow> contract_of(const Judgement& j) {
  std::vector<ContractRow> rows;
  if (j.options.limits_text.empty()) return rows;
  const LimitMatch match(j);
  // By itself: other findings may have taken the place of those that break a bound.
  Judgement alone(j.results, j.options);
  alone.series = j.series;
  const MetBounds met = judge_bounds(alone);
  const std::string file = j.options.limits_name.empty() ? "limits" : j.options.limits_name;
  const auto limits = parse_limits(j.options.limits_text, j.options.limits_name);
  for (std::size_t l = 0; l < limits.size(); ++l) {
    const Limit& limit = limits[l];
    const std::string where = file + ":" + std::to_string(limit.line),
                      whom = limit.device == "*" ? "" : " on " + limit.device;
    bool matched = false;
    for (std::size_t i = 0; i < j.series.size(); ++i) {
      const Series& s = j.series[i];
      if (!match.series(limit, s)) continue;
      for (const bool is_min : {true, false}) {
        if (is_min ? !limit.has_min : !limit.has_max) continue;
        ContractRow row = row_of(match, j, limit, s, is_min);
        if (row.parts == 0) continue;
        matched = true;
        row.promised = (is_min ? "min " + limit.min_text : "max " + limit.max_text) + whom;
        row.where = where;
        row.is_min = is_min;
        row.of_all = limit.device == "*";
        row.met = met.at({l, i, is_min});
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
