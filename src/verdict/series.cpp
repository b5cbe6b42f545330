// SPDX-License-Identifier: Apache-2.0
// From raw samples to one median with its standard error per entity and metric.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/judgement.hpp"
#include "verdict/strata.hpp"

namespace assay::verdict {
namespace {

using results::CaseData;
using results::CaseState;
using results::Metric;

/// A row of one of the joined cases.
struct Occurrence {
  std::int32_t entity, source, destination;
  std::size_t pass, row;
  auto key() const { return std::tuple(entity, source, destination); }
};

std::int32_t end_at(const std::vector<std::int32_t>& values, std::size_t i) {
  return i < values.size() ? values[i] : -1;
}

/// Passes are this far apart in the numbers of their blocks, of which a pass has fewer.
constexpr std::int32_t pass_step = 1000;

/// Appends the samples of one entity that were taken, with a block number that differs between passes.
void append(const CaseData& c, bool per_sample, const results::Held<double>& all, std::size_t row,
            std::size_t pass, std::vector<double>& values, std::vector<std::int32_t>& blocks) {
  if (!per_sample) {
    if (row < all.size() && !std::isnan(all[row])) {
      values.push_back(bounded(all[row]));
      blocks.push_back(static_cast<std::int32_t>(pass) * pass_step);
    }
    return;
  }
  const std::size_t width = c.samples();
  const std::size_t taken =
      row < c.count.size() ? static_cast<std::size_t>(std::max(0, c.count[row])) : width;
  for (std::size_t s = 0; s < std::min(taken, width); ++s) {
    const std::size_t i = row * width + s;
    if (i >= all.size() || std::isnan(all[i])) continue;
    values.push_back(bounded(all[i]));
    blocks.push_back(static_cast<std::int32_t>(pass) * pass_step + (s < c.block.size() ? c.block[s] : 0));
  }
}

/// Reduces the samples of one entity. Its buffers are kept: there are millions of entities times metrics.
class Reducer {
 public:
  std::vector<double> values;
  std::vector<std::int32_t> blocks;
  bool blocks_apart = false;  ///< time passes between the blocks of a pass, as it does between passes

  void clear() {
    values.clear();
    blocks.clear();
  }

  void into(SeriesRow& row, results::Better better) {
    row.n = static_cast<std::int32_t>(values.size());
    centre_into(row);
    row.half = half_difference();
    count_dips(row, row.median, better);
  }

  /// The median, its errors and the range.
  void centre_into(SeriesRow& row) {
    work_ = values;
    row.median = median_of(work_);
    row.standard_error = standard_error(row.median);
    const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
    row.lowest = *lowest;
    row.highest = *highest;
    row.claim_error = claim_error(row);
  }

  void add_dips_to(SeriesRow& row, results::Better better) {
    work_ = values;
    count_dips(row, median_of(work_), better);
  }

 private:
  void count_dips(SeriesRow& row, double median, results::Better better) {
    row.dips_of += static_cast<std::int32_t>(values.size());
    // Of a rate that cannot be, nothing is a dip.
    if (!(median > 0)) return;
    const bool lower = better == results::Better::lower;
    const double usual = better_quartile(lower);
    const auto is_below = [&](double v, double share) {
      return lower ? share * v > usual : v < share * usual;
    };
    std::int32_t lasts = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!is_below(values[i], constants::dip_ends) || (i > 0 && is_apart(i))) lasts = 0;
      if (!is_below(values[i], constants::dip)) continue;
      row.dips += 1;
      row.episodes += lasts == 0 ? 1 : 0;
      row.longest = std::max(row.longest, ++lasts);
    }
  }

  bool is_apart(std::size_t sample) const {
    const std::int32_t before = blocks[sample - 1], now = blocks[sample];
    return blocks_apart ? before != now : before / pass_step != now / pass_step;
  }

  static double median_of(std::vector<double>& v) {
    const std::size_t n = v.size();
    const auto middle = v.begin() + static_cast<std::ptrdiff_t>(n / 2);
    std::nth_element(v.begin(), middle, v.end());
    return n % 2 == 1 ? *middle : 0.5 * (*middle + *std::max_element(v.begin(), middle));
  }

  /// What a part does that is slow in more than half of its samples and as fast as others in the rest.
  double better_quartile(bool lower) {
    work_ = values;
    const auto at = static_cast<std::ptrdiff_t>((work_.size() - 1) / 4);
    const auto quartile = lower ? work_.begin() + at : work_.end() - 1 - at;
    std::nth_element(work_.begin(), quartile, work_.end());
    return *quartile;
  }

  /// 1.2533 sigma / sqrt(n) with the sigma of the median absolute deviation; `v` is used up.
  static double median_error(std::vector<double>& v, double centre) {
    for (double& x : v) x = std::abs(x - centre);
    return normal_median_error * 1.4826 * median_of(v) / std::sqrt(static_cast<double>(v.size()));
  }

  /// Where more than half of the values are nearly equal and the others far away, the deviation tells nothing
  /// of these: at least a standard error from the interval of the median by order statistics (ranks n/2 -+
  /// 1.96 sqrt(n)/2).
  double claim_error(const SeriesRow& row) {
    const auto n = static_cast<double>(values.size());
    constexpr double far = 8;  // deviations; 100 normal values span 5
    if (!(row.highest - row.lowest > far / normal_median_error * std::sqrt(n) * row.standard_error))
      return row.standard_error;
    work_ = values;
    const double half = constants::interval_z * std::sqrt(n) / 2;
    const auto ranked = [&](double rank) {
      const auto at = work_.begin() + static_cast<std::ptrdiff_t>(std::clamp(rank, 0.0, n - 1));
      std::nth_element(work_.begin(), at, work_.end());
      return *at;
    };
    const double low = ranked(std::floor(n / 2 - half)), high = ranked(std::ceil(n / 2 + half) - 1);
    return std::max(row.standard_error, (high - low) / (2 * constants::interval_z));
  }

  /// The larger of the standard error over samples and over block medians: samples of one block may move
  /// together.
  double standard_error(double centre) {
    if (values.size() < constants::interval_min_samples) return results::not_taken;
    work_ = values;
    const double se = median_error(work_, centre);
    block_medians_.clear();
    work_.clear();
    for (std::size_t i = 0; i < values.size(); ++i) {
      work_.push_back(values[i]);
      if (i + 1 == values.size() || blocks[i + 1] != blocks[i]) {
        block_medians_.push_back(median_of(work_));
        work_.clear();
      }
    }
    if (block_medians_.size() < 3 || block_medians_.size() >= values.size()) return se;
    work_ = block_medians_;
    const double centre_of_blocks = median_of(work_);
    return std::max(se, median_error(block_medians_, centre_of_blocks));
  }

  /// How far the odd samples' median lies from the even ones', as a fraction: twice the error of the median
  /// of all, whatever the shape of the noise. NaN with fewer than four samples.
  double half_difference() {
    if (values.size() < 4) return results::not_taken;
    double medians[2];
    for (const std::size_t side : {0U, 1U}) {
      work_.clear();
      for (std::size_t i = side; i < values.size(); i += 2) work_.push_back(values[i]);
      medians[side] = median_of(work_);
    }
    return 2 * (medians[1] - medians[0]) / (medians[1] + medians[0]);
  }

  std::vector<double> work_, block_medians_;
};

/// Cases that are repeats of one another, in the order of the file.
struct Joined {
  std::string name;
  std::vector<const CaseData*> passes;
};

std::vector<Joined> join_repeats(const results::Results& results) {
  std::vector<Joined> joined;
  std::map<std::string, std::size_t> known;
  for (const auto& c : results.cases) {
    if (c.state != results::CaseState::pass && c.state != results::CaseState::fail) continue;
    if (retest_number(c.name) > 0) continue;  // only suspects and controls: no population
    const std::string base = base_name(c.name);
    const auto [it, fresh] = known.try_emplace(c.suite + "/" + base + "#" + c.case_key, joined.size());
    if (fresh) joined.push_back({base, {}});
    joined[it->second].passes.push_back(&c);
  }
  return joined;
}

std::vector<Occurrence> occurrences_of(const Joined& joined) {
  std::vector<Occurrence> all;
  for (std::size_t p = 0; p < joined.passes.size(); ++p) {
    const auto& c = *joined.passes[p];
    for (std::size_t r = 0; r < c.entity.size(); ++r) {
      all.push_back({c.entity[r], end_at(c.source, r), end_at(c.destination, r), p, r});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.key() < b.key(); });
  return all;
}

Series describe(const Joined& joined, const Metric& m) {
  const auto& c = *joined.passes.front();
  Series s;
  s.suite = c.suite;
  s.name = joined.name;
  s.metric = m.name;
  s.unit = m.unit;
  s.kind = c.kind;
  s.stage = c.stage;
  s.judging = results::judging_of(c, m);
  s.takes_turns = results::traits_of(c).takes_turns;
  s.path = "/cases/" + c.suite + "/" + c.name + "/" + m.name;
  s.better = m.better;
  s.required = m.required && c.required;
  // Counts are judged by what they count, and a ratio to the device's own peak explains a rate without
  // judging it.
  s.judged = m.role == results::Role::metric && m.better != results::Better::none && m.unit != "count" &&
             m.name != "efficiency";
  s.per_sample = m.per_sample;
  s.first = &c;
  return s;
}

std::vector<const CaseData*> measured_retests(const Judgement& j) {
  std::vector<const CaseData*> out;
  for (const auto& c : j.results.cases)
    if ((c.state == CaseState::pass || c.state == CaseState::fail) && retest_number(c.name) > 0)
      out.push_back(&c);
  return out;
}

/// Retests are no population, but what dips there dips.
void add_dips_of_retests(const std::vector<const CaseData*>& retests, Series& s, Reducer& samples) {
  if (s.kind == "link" || !s.judged || s.first == nullptr) return;
  samples.blocks_apart = true;  // a block of a retest is a visit
  for (const CaseData* retest : retests) {
    const CaseData& c = *retest;
    if (c.suite != s.suite || c.case_key != s.first->case_key || base_name(c.name) != s.name) continue;
    const Metric* m = c.find(s.metric);
    if (m == nullptr) continue;
    const auto all = m->values.held();
    for (std::size_t r = 0; r < c.entity.size(); ++r) {
      const auto row = std::lower_bound(s.rows.begin(), s.rows.end(), c.entity[r],
                                        [](const SeriesRow& of, std::int32_t e) { return of.entity < e; });
      if (row == s.rows.end() || row->entity != c.entity[r]) continue;
      samples.clear();
      append(c, m->per_sample, all, r, 0, samples.values, samples.blocks);
      if (!samples.values.empty()) samples.add_dips_to(*row, s.better);
    }
  }
}

/// Dead links are the slowest of all, and not left out.
void stand_in_for_dead(Series& s) {
  if (s.kind != "link" || !is_rate_or_time(s.unit) || s.better == results::Better::none) return;
  const auto possible = [](double v) { return v > 0 && std::isfinite(v); };
  std::vector<double> usual;
  for (const auto& row : s.rows)
    if (possible(row.median)) usual.push_back(row.median);
  if (usual.empty() || usual.size() == s.rows.size()) return;
  const double value = s.dead_value = dead_link_value(median(usual), s.better);
  for (auto& row : s.rows) {
    if (possible(row.median)) continue;
    row.median = value;
    for (double* end : {&row.lowest, &row.highest})
      if (!possible(*end)) *end = value;
    row.standard_error = row.claim_error = 0;
    row.half = results::not_taken;
  }
}

/// Whether any rule may read a metric.
bool is_read(const Judgement& j, const CaseData& c, const Metric& m) {
  const bool beside = c.kind == "link" && m.role == results::Role::covariate && !m.per_sample;
  return !beside || m.name == covariate::link_rate || m.name == covariate::bound_share ||
         !j.options.limits_text.empty() || !j.options.require.empty();
}

}  // namespace

double claim_error_of(std::vector<double> values, std::vector<std::int32_t> blocks) {
  if (values.empty()) return results::not_taken;
  Reducer samples;
  samples.values = std::move(values);
  samples.blocks = std::move(blocks);
  SeriesRow row;
  samples.centre_into(row);
  return row.claim_error;
}

void collect_series(Judgement& j, bool every_number) {
  const Strata strata(j);
  const auto retests = measured_retests(j);
  Reducer samples;
  for (const auto& joined : join_repeats(j.results)) {
    const auto occurrences = occurrences_of(joined);
    for (const auto& m : joined.passes.front()->metrics) {
      if (!every_number && !is_read(j, *joined.passes.front(), m)) continue;
      Series s = describe(joined, m);
      std::unordered_map<std::string, std::int32_t> known;
      std::unordered_map<std::int32_t, std::int32_t>
          known_rows;  // by representative: no text per entity and metric
      auto stratum_of = [&](const SeriesRow& row) {
        if (s.kind != "link") {
          if (const auto it = known_rows.find(strata.representative(row.entity)); it != known_rows.end())
            return it->second;
        }
        const auto [it, fresh] =
            known.try_emplace(strata.of(row, s.kind), static_cast<std::int32_t>(known.size()));
        if (fresh) s.strata.push_back(it->first);
        if (s.kind != "link") known_rows[strata.representative(row.entity)] = it->second;
        return it->second;
      };
      samples.blocks_apart = s.is_imported();  // a case of a run is sampled without a break
      std::vector<const Metric*> metric_of;
      std::vector<results::Held<double>> values_of;
      for (const auto* pass : joined.passes) {
        metric_of.push_back(pass->find(m.name));
        values_of.push_back((metric_of.back() != nullptr ? *metric_of.back() : m).values.held());
      }
      for (std::size_t i = 0; i < occurrences.size();) {
        samples.clear();
        SeriesRow row;
        std::tie(row.entity, row.source, row.destination) = occurrences[i].key();
        for (const auto key = occurrences[i].key(); i < occurrences.size() && occurrences[i].key() == key;
             ++i) {
          const auto& o = occurrences[i];
          if (metric_of[o.pass] != nullptr)
            append(*joined.passes[o.pass], metric_of[o.pass]->per_sample, values_of[o.pass], o.row, o.pass,
                   samples.values, samples.blocks);
        }
        if (samples.values.empty()) continue;
        samples.into(row, s.better);
        row.stratum = stratum_of(row);
        s.rows.push_back(row);
      }
      stand_in_for_dead(s);
      add_dips_of_retests(retests, s, samples);
      s.rows.shrink_to_fit();  // of many links and numbers beside their rates
      j.series.push_back(std::move(s));
    }
  }
}

}  // namespace assay::verdict
