// SPDX-License-Identifier: Apache-2.0
#include "verdict/propose_limits.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
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

/// The model of a device, or of its node; "*" where nothing is recorded. Characters that a glob takes for its
/// own stand for themselves.
std::string pattern_of(const Judgement& j, const std::unordered_map<std::int32_t, std::string>& models,
                       std::int32_t own) {
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

/// How far single pairs lie below their usual rate, of the logarithm: they meet traffic, others in each run.
class PairSpread {
 public:
  /// Of one model in one case.
  void add(const Series& s, const std::vector<double>& values) {
    const double usual = std::log(median(values)), sign = s.better == results::Better::higher ? 1 : -1;
    for (const double v : values) below_.push_back(sign * (usual - std::log(v)));
  }

  bool tells() const { return below_.size() >= 4 * least_tail; }
  std::size_t size() const { return below_.size(); }

  /// What the worst of `pairs` exceeds in one run of a hundred. The worst twentieth is taken as an
  /// exponential tail, whose mean is known from so many values only.
  double reach(std::size_t pairs) const {
    constexpr double alpha = 0.01;
    const std::size_t tail = std::max(least_tail, below_.size() / 20);
    std::vector<double> worst = below_;
    std::partial_sort(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(tail) + 1, worst.end(),
                      std::greater<>());
    const double from = worst[tail], k = static_cast<double>(tail);
    const double sum =
        std::accumulate(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(tail), -k * from);
    const double expected = k * static_cast<double>(pairs) / static_cast<double>(below_.size());
    return from + sum * std::max(0.0, std::pow(expected / alpha, 1 / k) - 1);
  }

 private:
  static constexpr std::size_t least_tail = 5;
  std::vector<double> below_;
};

/// A proposed limit: what it is for, the medians of its parts, how far single pairs reach below them, and
/// what makes it uncertain.
struct Proposal {
  const Series* series = nullptr;
  std::string pattern;
  std::vector<double> values;
  double usual = 0;  ///< their median; of links that of the slowest kind
  std::string doubt;
  PairSpread* spread = nullptr;  ///< of links
};

std::string limit_text(const Proposal& p) {
  const Series& s = *p.series;
  const bool higher = s.better == results::Better::higher;
  const auto [low, high] = std::minmax_element(p.values.begin(), p.values.end());
  const double worst = higher ? *low : *high;
  double keep = 1 - s.judging.fault_threshold;
  std::string pairs;
  if (p.spread != nullptr && p.spread->tells()) {
    const double reach = std::exp(-p.spread->reach(p.values.size())) * (1 - slack);
    keep = std::min(keep, reach);
    pairs = "# from the spread of pairs (other traffic): in 1 of 100 runs the worst is " +
            percent(1 - reach) + " low\n";
  }
  const double bound =
      higher ? std::min(p.usual * keep, worst * (1 - slack)) : std::max(p.usual / keep, worst / (1 - slack));
  return "# median " + format_quantity(median(p.values), s.unit) + ", worst " +
         format_quantity(worst, s.unit) + ", " + std::to_string(p.values.size()) +
         (p.values.size() == 1 ? " part\n" : " parts\n") + pairs +
         (p.doubt.empty() ? "" : "# uncertain: " + p.doubt + "\n") +
         "[[limit]]\nmetric = " + quoted(s.full()) + "\ndevice = " + quoted(p.pattern) + "\n" +
         (higher ? "min = " : "max = ") + quoted(bound_text(bound, worst, higher, s.unit)) + "\n\n";
}

using Spreads = std::map<std::pair<std::string, bool>, PairSpread>;  ///< by suite and whether across nodes

/// Of one series by the model of the parts. A limit is held against every link that has an end of its model,
/// so a link between two models is one of both; what links of two kinds differ by is no spread of pairs.
void propose(const Judgement& j, const std::unordered_map<std::int32_t, std::string>& models, const Series& s,
             Spreads& spreads, std::vector<Proposal>& proposals) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> kinds;  // by the models of both ends
  std::map<std::string, std::vector<const SeriesRow*>> by_model;
  for (const auto& row : s.rows) {
    if (!(row.median > 0)) continue;
    const std::string one = pattern_of(j, models, row.source >= 0 ? row.source : row.entity),
                      other = row.source >= 0 ? pattern_of(j, models, row.destination) : one;
    kinds[{one, other}].push_back(row.median);
    by_model[one].push_back(&row);
    if (other != one) by_model[other].push_back(&row);
  }
  if (by_model.empty()) return;
  const auto& first = *by_model.begin()->second.front();
  PairSpread* spread = nullptr;
  if (first.source >= 0) {
    spread = &spreads[{s.suite, j.entities.node(first.source) != j.entities.node(first.destination)}];
    for (const auto& [ends, values] : kinds) spread->add(s, values);
  }
  for (const auto& [pattern, parts] : by_model) {
    Proposal p{&s, pattern, {}, 0, doubt_of(s, parts), spread};
    for (const auto* row : parts) p.values.push_back(row->median);
    for (const auto& [ends, values] : kinds) {
      if (ends.first != pattern && ends.second != pattern) continue;
      const double usual = median(values);
      if (p.usual == 0 || (s.better == results::Better::higher ? usual < p.usual : usual > p.usual))
        p.usual = usual;
    }
    proposals.push_back(std::move(p));
  }
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
  Spreads spreads;
  std::vector<Proposal> proposals;
  for (const auto& s : j.series)
    if (s.judged && results::is_measurement(s.suite, s.stage)) propose(j, models, s, spreads, proposals);
  for (auto& p : proposals) {
    if (p.doubt.empty() && p.spread != nullptr && !p.spread->tells())
      p.doubt = std::to_string(p.spread->size()) + " pairs are too few to show effects of other traffic";
    out.text += limit_text(p);
    ++out.count;
    if (!p.doubt.empty()) out.uncertain.push_back(p.series->full() + " (" + p.doubt + ")");
  }
  return out;
}

}  // namespace assay::verdict
