// SPDX-License-Identifier: Apache-2.0
#include "verdict/snapshot.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <unordered_map>

#include "base/random.hpp"
#include "results/described.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

bool is_clock(const Series& s) { return s.metric == "clock" && s.unit == "Hz"; }

/// Rows of /entities become parts on their first use.
class Parts {
 public:
  Parts(const results::Results& results, const EntityIndex& entities, std::vector<Part>& parts)
      : results_(results), entities_(entities), parts_(parts) {}

  std::int32_t of(const SeriesRow& row) {
    if (row.source < 0 || row.destination < 0) return of_entity(row.entity);
    const std::pair ends(row.source, row.destination);
    const auto known = links_.find(ends);
    if (known != links_.end()) return known->second;
    const std::int32_t node = of_entity(entities_.node(row.source)),
                       far = of_entity(entities_.node(row.destination));
    if (node < 0 || far < 0) return -1;
    const auto at = [&](std::int32_t r) -> const results::Entity& {
      return results_.entities[static_cast<std::size_t>(r)];
    };
    parts_.push_back({"link", at(row.source).id + ">" + at(row.destination).id,
                      at(row.source).name + ">" + at(row.destination).name, node, far, rows_of(row)});
    return links_[ends] = static_cast<std::int32_t>(parts_.size()) - 1;
  }

 private:
  std::int32_t of_entity(std::int32_t entity) {
    if (!entities_.valid(entity)) return -1;
    const auto known = rows_.find(entity);
    if (known != rows_.end()) return known->second;
    const std::int32_t above = entities_.node(entity);
    const std::int32_t node = above == entity || above < 0 ? -1 : of_entity(above);
    const auto& e = results_.entities[static_cast<std::size_t>(entity)];
    const auto row = static_cast<std::int32_t>(parts_.size());
    parts_.push_back(
        {e.kind, unique(e.kind, e.id.empty() ? e.name : e.id), e.name, node < 0 ? row : node, -1, {entity}});
    return rows_[entity] = row;
  }
  /// Two parts of one run never share an identity, whatever the file says.
  std::string unique(const std::string& kind, const std::string& id) {
    const int earlier = taken_[kind + '\n' + id]++;
    return earlier == 0 ? id : id + "#" + std::to_string(earlier + 1);
  }

  const results::Results& results_;
  const EntityIndex& entities_;
  std::vector<Part>& parts_;
  std::unordered_map<std::int32_t, std::int32_t> rows_;
  std::unordered_map<std::string, int> taken_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> links_;
};

/// ln of the clock by part, of the covariate `clock` of the same case.
std::unordered_map<std::int32_t, float> clocks_of(const Judgement& j, const Series& s, Parts& parts) {
  std::unordered_map<std::int32_t, float> clocks;
  for (const auto& other : j.series) {
    if (!is_clock(other) || other.suite != s.suite || other.name != s.name || other.first != s.first)
      continue;
    for (const auto& row : other.rows)
      if (row.median > 0) clocks[parts.of(row)] = static_cast<float>(std::log(row.median));
  }
  return clocks;
}

/// Rates and times are more than nothing; ratios may be nothing.
bool cannot_be(const SeriesRow& row, const std::string& unit) {
  return unit != "1" && !(row.median > 0 && std::isfinite(row.median));
}

/// Whether the metric is a rate or a time of a part. A ratio of a suite says how much was tested, unless a
/// collective has it for the rate beside that alone; what those of other tools say is not known.
bool is_of_machine(const Series& s) {
  return s.judged && (s.unit != "1" || s.is_shared() || s.is_imported());
}

SnapshotSeries reduce(const Judgement& j, const Series& s, Parts& parts, std::vector<std::string>& left_out) {
  SnapshotSeries out;
  out.suite = s.suite;
  out.name = s.name;
  out.metric = s.metric;
  out.unit = s.unit;
  out.kind = s.kind;
  out.stage = s.stage;
  out.shared = s.is_shared();
  out.by_node = s.judging.shared_by == results::SharedBy::node;
  out.fault_threshold = s.judging.fault_threshold;
  out.case_key = s.first->case_key;
  out.higher_is_better = s.better == results::Better::higher;
  out.strata = s.strata;
  auto rows = std::make_shared<PartRows>();
  const auto clocks = clocks_of(j, s, parts);
  for (const auto& row : s.rows) {
    const double log_value = std::log(row.median);
    const std::int32_t part = parts.of(row);
    if (cannot_be(row, s.unit)) left_out.push_back(j.entities.name(row.entity) + " in " + s.full());
    if (!(row.median > 0) || !std::isfinite(log_value) || part < 0) continue;
    rows->part.push_back(part);
    rows->stratum.push_back(row.stratum);
    out.log_rate.push_back(static_cast<float>(out.higher_is_better ? log_value : -log_value));
    out.samples += row.n;
    out.n.push_back(row.n);
    out.standard_error.push_back(static_cast<float>(row.claim_error / row.median));
    if (clocks.empty()) continue;
    const auto clock = clocks.find(part);
    out.log_clock.push_back(clock == clocks.end() ? static_cast<float>(results::not_taken) : clock->second);
  }
  out.rows = std::move(rows);
  return out;
}

/// The cases of a run mostly look at the same parts: their rows are kept once.
void share_rows(std::vector<SnapshotSeries>& series) {
  std::map<std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>, std::shared_ptr<const PartRows>>
      known;
  for (auto& s : series) s.rows = known.try_emplace({s.rows->part, s.rows->stratum}, s.rows).first->second;
}

class Hash {
 public:
  void text(const std::string& t) noexcept { sum_ = mix64(sum_, hash_text(t)); }
  void number(std::uint64_t n) noexcept { sum_ = mix64(sum_, n); }
  void real(float f) noexcept {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &f, sizeof bits);
    number(bits);
  }
  std::string hex() const {
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(sum_));
    return text;
  }

 private:
  std::uint64_t sum_ = 1;
};

}  // namespace

double value_of(double log_rate, bool higher_is_better) noexcept {
  return std::exp(higher_is_better ? log_rate : -log_rate);
}

Snapshot snapshot_of(const results::Results& results, const std::string& file) {
  const Options none;
  Judgement j(results, none);
  collect_series(j);
  return snapshot_of(j, file);
}

Snapshot snapshot_of(const Judgement& j, const std::string& file) {
  const auto& info = j.results.info;
  Snapshot out;
  out.source = {file, info.run_id, info.started, ""};
  out.level = info.level;
  out.injected = info.injected;
  Parts parts(j.results, j.entities, out.parts);
  for (std::size_t i = 0; i < j.series.size(); ++i) {
    const Series& s = j.series[i];
    if (!is_of_machine(s) || !results::is_measurement(s.suite, s.stage) || results::is_retest(s.name))
      continue;
    SnapshotSeries reduced = reduce(j, s, parts, out.left_out);
    reduced.origin = i;
    if (!reduced.log_rate.empty()) out.series.push_back(std::move(reduced));
  }
  share_rows(out.series);
  out.source.hash = hash_of(out);
  return out;
}

std::string hash_of(const Snapshot& snapshot) {
  Hash hash;
  for (const std::string* text : {&snapshot.source.run_id, &snapshot.source.started, &snapshot.level})
    hash.text(*text);
  for (const auto& p : snapshot.parts) {
    hash.text(p.kind);
    hash.text(p.id);
  }
  for (const auto& s : snapshot.series) {
    for (const std::string* text : {&s.suite, &s.name, &s.metric, &s.unit, &s.case_key}) hash.text(*text);
    for (const auto& stratum : s.strata) hash.text(stratum);
    for (std::size_t i = 0; i < s.log_rate.size(); ++i) {
      hash.number(static_cast<std::uint64_t>(s.rows->part[i]));
      hash.number(static_cast<std::uint64_t>(s.rows->stratum[i]));
      hash.real(s.log_rate[i]);
    }
    for (const float clock : s.log_clock) hash.real(clock);
  }
  return hash.hex();
}

}  // namespace assay::verdict
