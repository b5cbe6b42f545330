// SPDX-License-Identifier: Apache-2.0
#include "suite/record.hpp"

#include <bit>
#include <cstring>

#include "base/error.hpp"

namespace assay {
namespace {
constexpr std::size_t max_records = 1000;

// Numbers travel as their bytes, between processes of one build on machines of one kind: a text or a node of
// JSON for each takes ten times as long, and CBOR readers may fold payloads of NaN.
template <typename T>
Json to_bytes(const std::vector<T>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Json::binary(std::move(bytes));
}
template <typename T>
std::vector<T> from_bytes(const Json& json) {
  const auto& bytes = json.get_binary();
  if (bytes.size() % sizeof(T) != 0)
    throw Error(ErrorKind::internal, "part of a number in a rank's case record");
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Json row_to_json(const CaseRecord::Row& row) {
  Json values = Json::object();
  for (const auto& [name, v] : row.values) values[name] = to_bytes(v);
  Json integers = Json::object();
  for (const auto& [name, v] : row.integers) integers[name] = to_bytes(v);
  return {{"e", row.entity},      {"s", row.source},          {"d", row.destination}, {"to", row.server},
          {"t", to_bytes(row.t)}, {"b", to_bytes(row.block)}, {"v", values},          {"i", integers}};
}

CaseRecord::Row row_from_json(const Json& j) {
  CaseRecord::Row row;
  row.entity = j.at("e");
  row.source = j.at("s");
  row.destination = j.at("d");
  row.server = j.at("to");
  row.t = from_bytes<double>(j.at("t"));
  row.block = from_bytes<std::int32_t>(j.at("b"));
  for (const auto& [name, v] : j.at("v").items()) row.values[name] = from_bytes<double>(v);
  for (const auto& [name, v] : j.at("i").items()) row.integers[name] = from_bytes<std::uint64_t>(v);
  return row;
}

Json judging_to_json(const std::optional<results::Judging>& j) {
  if (!j) return nullptr;
  return {static_cast<int>(j->of),        j->fault_threshold, j->weight, static_cast<int>(j->floor),
          static_cast<int>(j->shared_by), j->in_step};
}

std::optional<results::Judging> judging_from_json(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return results::Judging{static_cast<results::MetricClass>(json[0].get<int>()),
                          json[1],
                          json[2],
                          static_cast<results::Floor>(json[3].get<int>()),
                          static_cast<results::SharedBy>(json[4].get<int>()),
                          json[5]};
}

Json state_to_json(const CaseRecord& r) {
  Json metrics = Json::array();
  for (const auto& m : r.metrics_)
    metrics.push_back({m.name, m.unit, static_cast<int>(m.better), m.required, static_cast<int>(m.role),
                       m.per_sample, m.title, judging_to_json(m.judging)});
  Json arrays = Json::array();
  for (const auto& a : r.arrays_) arrays.push_back({a.name, a.dims, a.shape});
  Json errors = Json::array();
  for (const auto& e : r.records_)
    errors.push_back({e.entity, e.index, e.expected, e.actual, e.reread, std::bit_cast<std::uint64_t>(e.t),
                      e.sm, e.warp, e.lane});
  Json selftest = Json::array();
  for (const auto& s : r.selftest_)
    selftest.push_back({s.checker, s.injected, s.caught, s.located, s.counted, s.entity});
  Json events = Json::array();
  for (const auto& e : r.events_)
    events.push_back({std::bit_cast<std::uint64_t>(e.t), e.entity, e.kind, e.text, e.finding});
  return {{"metrics", metrics},
          {"arrays", arrays},
          {"errors", errors},
          {"selftest", selftest},
          {"events", events},
          {"parameters", r.parameters_},
          {"miscompares", r.miscompares_},
          {"state", static_cast<int>(r.state_)},
          {"reason", r.reason_},
          {"times", to_bytes<double>({r.warmup_s_, r.timed_s_, r.verify_s_, r.wall_s_, r.core_share_})}};
}

void state_from_json(const Json& j, CaseRecord& r) {
  for (const auto& m : j.at("metrics"))
    r.metrics_.push_back({m[0], m[1], static_cast<results::Better>(m[2].get<int>()), m[3],
                          static_cast<results::Role>(m[4].get<int>()), m[5], m[6], judging_from_json(m[7])});
  for (const auto& a : j.at("arrays"))
    r.arrays_.push_back({a[0], a[1].get<std::vector<std::string>>(), a[2].get<std::vector<std::size_t>>()});
  for (const auto& e : j.at("errors"))
    r.records_.push_back({"", e[0], e[1], e[2], e[3], e[4], std::bit_cast<double>(e[5].get<std::uint64_t>()),
                          e[6], e[7], e[8]});
  for (const auto& s : j.at("selftest")) r.selftest_.push_back({s[0], s[1], s[2], s[3], s[4], s[5]});
  for (const auto& e : j.at("events"))
    r.events_.push_back({std::bit_cast<double>(e[0].get<std::uint64_t>()), e[1], e[2], e[3], e[4]});
  r.parameters_ = j.at("parameters");
  r.miscompares_ = j.at("miscompares");
  r.state_ = static_cast<results::CaseState>(j.at("state").get<int>());
  r.reason_ = j.at("reason");
  const auto times = from_bytes<double>(j.at("times"));
  r.warmup_s_ = times.at(0);
  r.timed_s_ = times.at(1);
  r.verify_s_ = times.at(2);
  r.wall_s_ = times.at(3);
  r.core_share_ = times.at(4);
}

}  // namespace

CaseRecord::MetricSpec& CaseRecord::declare(const MetricSpec& spec) { return metrics_.emplace_back(spec); }

void CaseRecord::declare_integers(const std::string& name, std::vector<std::string> dims,
                                  std::vector<std::size_t> shape) {
  arrays_.push_back({name, std::move(dims), std::move(shape)});
}

CaseRecord::Row& CaseRecord::add_row(int entity) {
  rows_.emplace_back().entity = entity;
  return rows_.back();
}

CaseRecord::Row& CaseRecord::add_link(int source, int destination) {
  Row& row = rows_.emplace_back();
  row.source = source;
  row.destination = destination;
  return row;
}

CaseRecord::Row& CaseRecord::add_link(int source, const std::string& server) {
  Row& row = rows_.emplace_back();
  row.source = source;
  row.server = server;
  return row;
}

void CaseRecord::miscompare(const results::Miscompare& record, std::uint64_t count) {
  miscompares_ += count;
  if (records_.size() < max_records) records_.push_back(record);
  set_state(results::CaseState::fail, "miscompare");
}

void CaseRecord::set_state(results::CaseState state, const std::string& reason) {
  if (state <= state_) return;
  state_ = state;
  reason_ = reason;
}

void CaseRecord::event(const std::string& kind, const std::string& text, int entity) {
  events_.push_back({0.0, entity, kind, text});
}

void CaseRecord::launch_event(const std::string& severity, const std::string& finding,
                              const std::string& text, int entity) {
  events_.push_back({0.0, entity, "launch-" + severity, text, finding});
}

void CaseRecord::add_time(double warmup_s, double timed_s, double verify_s) {
  warmup_s_ += warmup_s;
  timed_s_ += timed_s;
  verify_s_ += verify_s;
}

std::string CaseRecord::serialize() const {
  Json rows = Json::array();
  for (const auto& row : rows_) rows.push_back(row_to_json(row));
  Json all = state_to_json(*this);
  all["rows"] = std::move(rows);
  std::string out;
  Json::to_cbor(all, out);
  return out;
}

CaseRecord CaseRecord::deserialize(const std::string& text) {
  CaseRecord record;
  try {
    const Json all = Json::from_cbor(text);
    state_from_json(all, record);
    for (const auto& row : all.at("rows")) record.rows_.push_back(row_from_json(row));
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::internal, std::string("a rank's case record cannot be decoded: ") + e.what());
  }
  return record;
}

}  // namespace assay
