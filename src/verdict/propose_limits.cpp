// SPDX-License-Identifier: Apache-2.0
#include "verdict/propose_limits.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "results/described.hpp"
#include "verdict/constants.hpp"
#include "verdict/judgement.hpp"
#include "verdict/reference_scores.hpp"

namespace assay::verdict {
namespace {

/// Room under the worst part of a good run: the next run is not the same to the last digit.
constexpr double slack = 0.01;

std::unordered_map<std::int32_t, std::string> models_of_parts(const Judgement& j) {
  std::unordered_map<std::int32_t, std::string> models;
  for (const char* kind : {"node", "device"}) {
    const auto it = j.results.inventory.find(kind);
    if (it == j.results.inventory.end()) continue;
    const auto* text = text_column(it->second, {"cpu_model", "model"});
    for (std::size_t i = 0; text != nullptr && i < text->size(); ++i)
      models[it->second.entity[i]] = (*text)[i];
  }
  return models;
}

/// The model of a row's device, or of its node; "*" where nothing is recorded. Characters that a glob takes
/// for its own stand for themselves.
std::string pattern_of(const Judgement& j, const std::unordered_map<std::int32_t, std::string>& models,
                       const SeriesRow& row) {
  const std::int32_t own = row.source >= 0 ? row.source : row.entity;
  for (const auto candidate : {own, j.entities.node(own)}) {
    const auto it = models.find(candidate);
    if (it == models.end() || it->second.empty()) continue;
    std::string pattern;
    for (const char c : it->second) {
      if (c == '*' || c == '?' || c == '[' || c == '\\') pattern += '\\';
      pattern += c;
    }
    return pattern;
  }
  return "*";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

/// The bound as it is written: four digits, on the right side of `keeps`.
std::string bound_text(double bound, double keeps, bool is_min, const std::string& unit) {
  for (int i = 0; i < 20; ++i) {
    const std::string text = format_quantity(bound, unit) + (unit == "1" ? " 1" : "");
    std::string read_unit;
    const double read = parse_quantity(text, read_unit);
    if (is_min ? read <= keeps : read >= keeps) return text;
    bound *= is_min ? 0.999 : 1.001;
  }
  return format_quantity(bound, unit) + (unit == "1" ? " 1" : "");
}

/// Why the medians of these parts say little of what the next run will measure; empty if they do.
std::string doubt_of(const Series& s, const std::vector<const SeriesRow*>& parts) {
  if (!s.per_sample) return parts.size() < constants::interval_min_samples ? "of one value per part" : "";
  std::int32_t least = parts.front()->n;
  double widest = 0;
  for (const auto* row : parts) {
    least = std::min(least, row->n);
    const double uncertainty = constants::noise_z * row->standard_error / row->median;
    if (!std::isnan(uncertainty)) widest = std::max(widest, uncertainty);
  }
  if (static_cast<std::size_t>(least) < constants::interval_min_samples)
    return "of " + std::to_string(least) + (least == 1 ? " sample" : " samples") + " per part";
  return widest > std::min(s.judging.fault_threshold, constants::noise_limit)
             ? "medians are uncertain by " + percent(widest)
             : "";
}

std::string limit_text(const Series& s, const std::string& pattern, std::vector<double> values,
                       const std::string& doubt) {
  const bool higher = s.better == results::Better::higher;
  const double middle = median(values), keep = 1 - s.judging.fault_threshold;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double worst = higher ? *low : *high;
  const double bound =
      higher ? std::min(middle * keep, worst * (1 - slack)) : std::max(middle / keep, worst / (1 - slack));
  return "# median " + format_quantity(middle, s.unit) + ", worst " + format_quantity(worst, s.unit) + ", " +
         std::to_string(values.size()) + (values.size() == 1 ? " part\n" : " parts\n") +
         (doubt.empty() ? "" : "# uncertain: " + doubt + "\n") + "[[limit]]\nmetric = " + quoted(s.full()) +
         "\ndevice = " + quoted(pattern) + "\n" + (higher ? "min = " : "max = ") +
         quoted(bound_text(bound, worst, higher, s.unit)) + "\n\n";
}

}  // namespace

ProposedLimits propose_limits(const results::Results& results, const std::string& file,
                              const std::string& state) {
  const Options none;
  Judgement j(results, none);
  collect_series(j);
  const auto models = models_of_parts(j);
  ProposedLimits out;
  out.text = "# Limits proposed by assay verdict --write-limits from " + file + " (" + results.info.started +
             ", level " + results.info.level + ", " + state + ", " +
             std::to_string(j.entities.nodes().size()) +
             (j.entities.nodes().size() == 1 ? " node" : " nodes") +
             ").\n# Every part of that run meets them. Check them before use as a contract.\n\n";
  for (const auto& s : j.series) {
    if (!s.judged || !results::is_measurement(s.suite, s.stage)) continue;
    std::map<std::string, std::vector<const SeriesRow*>> by_model;
    for (const auto& row : s.rows)
      if (row.median > 0) by_model[pattern_of(j, models, row)].push_back(&row);
    for (const auto& [pattern, parts] : by_model) {
      std::vector<double> values;
      for (const auto* row : parts) values.push_back(row->median);
      const std::string doubt = doubt_of(s, parts);
      out.text += limit_text(s, pattern, std::move(values), doubt);
      ++out.count;
      if (!doubt.empty()) out.uncertain.push_back(s.full() + " (" + doubt + ")");
    }
  }
  return out;
}

}  // namespace assay::verdict
