// SPDX-License-Identifier: Apache-2.0
// What the retest cases measured of entities beyond a bound, and of parts against a reference.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "measure/statistics.hpp"
#include "verdict/reference_scores.hpp"
#include "verdict/retest/result.hpp"
#include "verdict/retest/samples.hpp"

namespace assay::verdict {
namespace {

using RowKey =
    std::tuple<std::int32_t, std::int32_t, std::int32_t>;  ///< entity (-1 of links), source, destination
RowKey key_of(std::int32_t entity, std::int32_t source, std::int32_t destination) {
  return {source < 0 ? entity : -1, source, destination};
}

bool is_possible(double value) { return value > 0 && std::isfinite(value); }

/// What stands for impossible values of links that are measured again; NaN of other parts.
double dead_value_of(const Series& s) {
  if (s.kind != "link" || !is_rate_or_time(s.unit) || !std::isnan(s.dead_value)) return s.dead_value;
  std::vector<double> usual;
  for (const auto& row : s.rows)
    if (is_possible(row.median)) usual.push_back(row.median);
  return usual.empty() ? results::not_taken : dead_link_value(median(usual), s.better);
}

/// Samples of one row, in the order in which they are added, with numbers of their blocks.
class BlockedSamples {
 public:
  void add(double value, std::size_t number_of_case, std::int32_t block) {
    const std::pair at(number_of_case, block);
    if (values_.empty() || at != last_) ++block_;
    last_ = at;
    values_.push_back(value);
    blocks_.push_back(block_);
  }
  const std::vector<double>& values() const { return values_; }
  /// As of a screened part: blocks may differ, and samples may have two states.
  double error() const { return claim_error_of(values_, blocks_); }

 private:
  std::vector<double> values_;
  std::vector<std::int32_t> blocks_;
  std::pair<std::size_t, std::int32_t> last_{0, 0};
  std::int32_t block_ = 0;
};

/// The samples of all retest cases of a series, by row.
std::map<RowKey, BlockedSamples> retest_samples(const Judgement& j, const Series& s, double dead) {
  std::map<RowKey, BlockedSamples> samples;
  for (std::size_t i = 0; i < j.results.cases.size(); ++i) {
    const auto& c = j.results.cases[i];
    if (!is_retest_of(c, s)) continue;
    const auto* m = c.find(s.metric);
    for (std::size_t r = 0; m != nullptr && m->per_sample && r < c.entity.size(); ++r) {
      const bool link = r < c.source.size() && r < c.destination.size();
      auto& own = samples[key_of(c.entity[r], link ? c.source[r] : -1, link ? c.destination[r] : -1)];
      for (const auto& sample : samples_of(c, *m, r))
        own.add(is_possible(sample.value) || std::isnan(dead) ? sample.value : dead, i, sample.block);
    }
  }
  return samples;
}

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
  BlockedSamples all;
  std::vector<double> row_rates;  ///< medians of the rows
  std::map<std::pair<std::size_t, std::size_t>, std::vector<SampleBlock>>
      blocks;  ///< of each row, by case and number
};

/// Of a node the links that touch it: as in `scores_of`, the slow ends of some are not its own.
double rate_of(const std::vector<double>& of_rows) {
  return of_rows.size() > 1 ? quantile(of_rows, 0.75) : of_rows.front();
}

SampleBlock joined(const std::vector<SampleBlock>& of_rows) {
  SampleBlock all = of_rows.front();
  std::vector<double> rates;
  for (const SampleBlock& block : of_rows) {
    rates.push_back(block.median);
    all.first_t = std::fmin(all.first_t, block.first_t);
    all.last_t = std::fmax(all.last_t, block.last_t);
  }
  all.median = rate_of(rates);
  return all;
}

void gather(const results::CaseData& c, std::size_t number_of_case, const results::Metric& m, std::size_t row,
            bool higher, Samples& out) {
  std::vector<TakenSample> own;
  for (TakenSample sample : samples_of(c, m, row)) {
    if (!is_possible(sample.value)) continue;
    sample.value = higher ? std::log(sample.value) : -std::log(sample.value);
    out.all.add(sample.value, number_of_case, sample.block);
    own.push_back(sample);
  }
  if (own.empty()) return;
  out.row_rates.push_back(median(values_of(own)));
  std::size_t number = 0;
  for (const SampleBlock& block : blocks_of(own)) out.blocks[{number_of_case, number++}].push_back(block);
}

}  // namespace

void take_retests(const Judgement& j, const Series& s, std::vector<Below>& below) {
  std::erase_if(below, [&](const Below& b) { return died_in_retest(j, s.suite, b.entity); });
  const double dead = dead_value_of(s);
  for (auto& b : below) b.dead = b.value == s.dead_value;
  const auto samples = below.empty() ? std::map<RowKey, BlockedSamples>{} : retest_samples(j, s, dead);
  if (samples.empty()) return;
  for (auto& b : below) {
    // A link is itself; anything else is the sum over its parts.
    std::vector<RowKey> keys;
    if (b.row != nullptr && b.row->source >= 0)
      keys.push_back(key_of(-1, b.row->source, b.row->destination));
    else
      for (const auto row : b.rows) keys.push_back(key_of(row, -1, -1));
    Below retest = b;
    retest.retested = !keys.empty();
    retest.first = b.dead ? results::not_taken : b.value;
    retest.value = retest.standard_error = 0;
    retest.n = 0;
    for (const auto& key : keys) {
      const auto at = samples.find(key);
      retest.retested = retest.retested && at != samples.end() &&
                        at->second.values().size() >= constants::interval_min_samples &&
                        (!is_rate_or_time(s.unit) || is_possible(median(at->second.values())));
      if (!retest.retested) break;
      const std::vector<double>& values = at->second.values();
      // The highest reading of a counter is what it is.
      const bool count = s.unit == "count" && !b.higher_is_better;
      retest.value += count ? *std::ranges::max_element(values) : median(values);
      retest.standard_error = count ? 0 : std::hypot(retest.standard_error, at->second.error());
      retest.n += static_cast<std::int64_t>(values.size());
    }
    if (!retest.retested) continue;
    retest.dead = keys.size() == 1 && retest.value == dead;
    // What the retest does not confirm by itself may have lasted in the screening.
    retest.lasting = cleared(retest) && keys.size() == 1 && b.row != nullptr && b.row->source < 0 &&
                     lasting_of(j, s, b.row->entity, [&](double value) {
                       return deficit_of(value, b.reference, b.higher_is_better) > 0;
                     }).enough();
    b = retest;
  }
}

std::string RetestRate::lasting(double reference, double delta) const {
  Lasting low;
  for (const SampleBlock& block : blocks) low.add(block, reference - block.median > delta);
  const double share =
      static_cast<double>(low.blocks) / static_cast<double>(std::max<std::size_t>(1, low.of));
  if (low.enough() && share >= constants::lasting_share) return "blocks";
  return before ? "runs" : "";
}

RetestRate retest_rate(const Judgement& j, const Series& s, const Part& part, const Score& score) {
  Samples retest, screened;
  for (std::size_t i = 0; i < j.results.cases.size(); ++i) {
    const auto& c = j.results.cases[i];
    const bool of_retest = is_retest_of(c, s);
    const bool own = c.suite == s.suite && base_name(c.name) == s.name && !of_retest;
    const auto* m = of_retest || own ? c.find(s.metric) : nullptr;
    if (m == nullptr) continue;
    for (std::size_t r = 0; r < c.entity.size(); ++r)
      if (tells_of(j, c, r, part))
        gather(c, i, *m, r, s.better == results::Better::higher, of_retest ? retest : screened);
  }
  RetestRate out;
  out.log_rate = score.log_rate;
  out.standard_error = score.standard_error;
  out.n = score.n;
  for (const auto& [number, rows] : screened.blocks) out.blocks.push_back(joined(rows));
  const std::vector<double>& values = retest.all.values();
  if (values.size() < 3) return out;
  out.measured = true;
  out.log_rate = retest.row_rates.size() > 1 ? rate_of(retest.row_rates) : median(values);
  // Links differ, whatever their samples do: that is no state of the node.
  const bool of_links = s.kind == "link" && part.kind != "link";
  out.standard_error = of_links ? median_standard_error(values) : retest.all.error();
  out.n = static_cast<std::int64_t>(values.size());
  return out;
}

}  // namespace assay::verdict
