// SPDX-License-Identifier: Apache-2.0
#include "run/assemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/random.hpp"

namespace assay {
namespace {

using results::CaseData;
using results::CaseState;

using Rows = std::vector<CaseRecord::Row*>;

/// Of what two ranks declare of one metric.
bool same_metric(const CaseRecord::MetricSpec& a, const CaseRecord::MetricSpec& b) {
  return a.name == b.name && a.unit == b.unit && a.better == b.better && a.required == b.required;
}

/// The record that declares what the case's rows mean.
const CaseRecord* declaring(const Case& c, const std::vector<CaseRecord>& records) {
  const CaseRecord* first = nullptr;
  for (const CaseRecord& record : records) {
    if (record.rows_.empty()) continue;
    if (first == nullptr) first = &record;
    if (!record.metrics_.empty() && !std::ranges::equal(first->metrics_, record.metrics_, same_metric))
      throw Error(ErrorKind::internal, "ranks declare different metrics for " + c.path());
  }
  return first;
}

/// Whole units of 2^-30 s, less than the nanosecond of the clock: what is below is noise that cannot be
/// packed.
double to_the_clock(double seconds) { return std::round(std::ldexp(seconds, 30)) * 0x1p-30; }

/// What comes from a time, to 33 bits: of samples up to 8 s that is the clock's nanosecond.
double to_the_clock(double value, const std::string& unit) {
  if (unit != "s" && !unit.ends_with("/s")) return value;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::round(std::ldexp(fraction, 33)), exponent - 33);
}

/// An assignment of {} would keep the memory.
template <class T>
void drop(std::vector<T>& values) {
  values = std::vector<T>();
}

void place_rows(const Rows& rows, EntityTable& entities, CaseData& data) {
  std::size_t samples = 0;
  const CaseRecord::Row* longest = nullptr;
  for (const CaseRecord::Row* row : rows)
    if (longest == nullptr || row->t.size() > samples) {
      samples = row->t.size();
      longest = row;
    }
  data.t.assign(rows.size() * samples, results::not_taken);
  for (std::size_t i = 0; i < samples; ++i) {
    data.sample.push_back(static_cast<std::int32_t>(i));
    data.block.push_back(i < longest->block.size() ? longest->block[i] : 0);
  }
  for (std::size_t e = 0; e < rows.size(); ++e) {
    CaseRecord::Row& row = *rows[e];
    const bool link = row.source >= 0;
    if (!row.server.empty()) row.destination = entities.server(row.server);
    data.entity.push_back(link ? entities.link(row.source, row.destination) : row.entity);
    if (link) {
      data.source.push_back(row.source);
      data.destination.push_back(row.destination);
    }
    data.count.push_back(static_cast<std::int32_t>(row.t.size()));
    std::transform(row.t.begin(), row.t.end(),
                   data.t.own().begin() + static_cast<std::ptrdiff_t>(e * samples),
                   [](double t) { return to_the_clock(t); });
    drop(row.t);
  }
}

void place_metric(const CaseRecord::MetricSpec& spec, const Rows& rows, const EntityTable& entities,
                  CaseData& data) {
  results::Metric metric{spec.name,       spec.unit, spec.better,  spec.required, spec.role,
                         spec.per_sample, {},        spec.judging, spec.title};
  const std::size_t width = spec.per_sample ? data.samples() : 1;
  metric.values.assign(rows.size() * width, results::not_taken);
  for (std::size_t e = 0; e < rows.size(); ++e) {
    const auto found = rows[e]->values.find(spec.name);
    if (found == rows[e]->values.end()) continue;
    if (found->second.size() > width)
      throw Error(ErrorKind::internal, fmt::format("{}: {} values of {} for {} samples", data.path(),
                                                   found->second.size(), spec.name, width));
    for (std::size_t i = 0; i < found->second.size(); ++i) {
      const double v = found->second[i];
      metric.values[e * width + i] = spec.per_sample ? to_the_clock(v, spec.unit) : v;
      if (!std::isfinite(v) && spec.role == results::Role::metric && spec.required &&
          data.state < CaseState::error) {
        data.state = CaseState::error;
        data.reason = fmt::format("measured {} in {} of {}", v, spec.name, entities.name(data.entity[e]));
      }
    }
    drop(found->second);
  }
  data.metrics.push_back(std::move(metric));
}

void place_array(const CaseRecord::ArraySpec& spec, const Rows& rows, CaseData& data) {
  results::IntegerArray array{spec.name, {"entity"}, {rows.size()}, {}};
  std::size_t width = 1;
  for (std::size_t d = 0; d < spec.dims.size(); ++d) {
    const std::size_t extent = spec.dims[d] == "sample" ? data.samples() : spec.shape[d];
    array.dims.push_back(spec.dims[d]);
    array.shape.push_back(extent);
    width *= extent;
  }
  array.values.assign(rows.size() * width, 0);
  for (std::size_t e = 0; e < rows.size(); ++e) {
    const auto found = rows[e]->integers.find(spec.name);
    if (found == rows[e]->integers.end()) continue;
    const std::size_t n = std::min(width, found->second.size());
    std::copy_n(found->second.begin(), n,
                array.values.own().begin() + static_cast<std::ptrdiff_t>(e * width));
    drop(found->second);
  }
  data.arrays.push_back(std::move(array));
}

/// Core shares of the ranks by entity: of a rank's device its own, of another part the least on its node, of
/// a link the lesser of its ends.
void place_core_share(const std::vector<CaseRecord>& records, const EntityTable& entities, CaseData& data) {
  const auto explains = [](const results::Metric& m) {
    using enum results::MetricClass;
    return m.judging && m.judging->of != other && m.judging->of != storage;
  };
  if (std::none_of(data.metrics.begin(), data.metrics.end(), explains)) return;
  std::map<std::int32_t, double> shares;
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    const double share = records[rank].core_share_;
    if (std::isnan(share)) continue;
    const auto device = entities.device_of_rank(static_cast<int>(rank));
    shares[device] = share;
    double& of_node = shares.try_emplace(entities.node_of(device), share).first->second;
    of_node = std::min(of_node, share);
  }
  if (shares.empty()) return;
  const auto of = [&](std::int32_t entity) {
    auto at = shares.find(entity);
    if (at == shares.end()) at = shares.find(entities.node_of(entity));
    return at == shares.end() ? results::not_taken : at->second;
  };
  results::Metric metric{
      results::core_share, "1", results::Better::higher, false, results::Role::covariate, false, {}};
  metric.title = "share of the time in which its threads were ready to run that they ran";
  for (std::size_t e = 0; e < data.entity.size(); ++e)
    metric.values.push_back(data.source.empty() ? of(data.entity[e])
                                                : std::fmin(of(data.source[e]), of(data.destination[e])));
  data.metrics.push_back(std::move(metric));
}

/// State, times and error records over all ranks.
void join_outcome(const std::vector<CaseRecord>& records, results::CaseBundle& bundle) {
  CaseData& data = bundle.data;
  std::uint64_t miscompares = 0;
  const auto measured =
      std::count_if(records.begin(), records.end(), [](const CaseRecord& r) { return r.wall_s_ > 0; });
  const auto n = static_cast<double>(std::max<std::ptrdiff_t>(measured, 1));
  for (const CaseRecord& record : records) {
    if (record.state_ > data.state) {
      data.state = record.state_;
      data.reason = record.reason_;
    }
    miscompares += record.miscompares_;
    data.shares.wall_s += record.wall_s_ / n;
    data.shares.warmup_s += record.warmup_s_ / n;
    data.shares.timed_s += record.timed_s_ / n;
    data.shares.verify_s += record.verify_s_ / n;
    for (results::Miscompare m : record.records_) {
      m.case_path = data.path();
      bundle.errors.push_back(std::move(m));
    }
    bundle.selftest.insert(bundle.selftest.end(), record.selftest_.begin(), record.selftest_.end());
  }
  if (miscompares == 0) return;
  data.parameters["miscompares"] = miscompares;
  if (data.state == CaseState::fail)
    data.reason = fmt::format("{} wrong value{}", miscompares, miscompares == 1 ? "" : "s");
}

}  // namespace

std::string case_key(const Case& c, const std::string& identity) {
  return fmt::format("{:016x}", hash_text(c.base_path() + ";" + c.parameters.dump() + ";" + identity));
}

results::CaseBundle assemble(const Case& c, std::vector<CaseRecord> records, EntityTable& entities,
                             const std::string& identity) {
  results::CaseBundle bundle;
  CaseData& data = bundle.data;
  data.suite = c.suite;
  data.name = c.name;
  data.required = c.required;
  data.stage = to_string(c.stage);
  data.kind = c.entity_kind;
  data.traits = results::CaseTraits{c.operation, c.serial, c.addresses};
  data.case_key = case_key(c, identity);
  data.parameters = c.parameters;
  if (!c.title.empty()) data.parameters["title"] = c.title;
  if (!c.share.empty()) data.parameters["share"] = c.share;
  for (auto record = records.rbegin(); record != records.rend(); ++record)
    for (const auto& [key, value] : record->parameters_.items()) data.parameters[key] = value;
  const std::size_t known = entities.size();
  join_outcome(records, bundle);
  if (const CaseRecord* first = declaring(c, records)) {
    Rows rows;
    for (CaseRecord& record : records)
      for (auto& row : record.rows_) rows.push_back(&row);
    place_rows(rows, entities, data);
    for (const auto& spec : first->metrics_) place_metric(spec, rows, entities, data);
    place_core_share(records, entities, data);
    for (const auto& spec : first->arrays_) place_array(spec, rows, data);
  }
  bundle.new_entities = entities.rows(known);
  return bundle;
}

}  // namespace assay
