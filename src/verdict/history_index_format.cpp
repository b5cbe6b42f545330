// SPDX-License-Identifier: Apache-2.0
// The bytes of an index: "assayidx", a checksum, CBOR. Parts are kept once for all runs, since the same fleet
// is in all.
#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>

#include "base/error.hpp"
#include "base/random.hpp"
#include "results/described.hpp"
#include "verdict/history_index.hpp"
#include "verdict/pack.hpp"

namespace assay::verdict {
namespace {

constexpr std::string_view magic = "assayidx";
constexpr int version = 2;  // 1: without values that cannot be

[[noreturn]] void broken() { throw Error(ErrorKind::data, "is no index of this version, or damaged"); }

std::uint64_t checksum(const char* data, std::size_t size) { return mix64(hash_text({data, size}), size); }

/// Parts of all runs by what is stored of them; nodes as positions in the same list.
class PartTable {
 public:
  std::int32_t row(const Snapshot& run, std::int32_t part) {
    const Part& p = run.part(part);
    const std::int32_t node = p.node == part ? -1 : row(run, p.node);
    const std::int32_t far = p.far_node < 0 ? -1 : row(run, p.far_node);
    std::string key =
        p.kind + '\n' + p.id + '\n' + p.name + '\n' + std::to_string(node) + ' ' + std::to_string(far);
    const auto [at, added] = rows_.try_emplace(std::move(key), static_cast<std::int32_t>(kinds_.size()));
    if (added) {
      kinds_.push_back(p.kind);
      ids_.push_back(p.id);
      names_.push_back(p.name);
      nodes_.push_back(node);
      far_.push_back(far);
    }
    return at->second;
  }
  Json json() const {
    return {{"kind", kinds_},
            {"id", ids_},
            {"name", names_},
            {"node", to_binary(nodes_)},
            {"far", to_binary(far_)}};
  }

 private:
  std::unordered_map<std::string, std::int32_t> rows_;
  std::vector<std::string> kinds_, ids_, names_;
  std::vector<std::int32_t> nodes_, far_;
};

Json series_json(const SnapshotSeries& s, std::size_t rows) {
  return {{"suite", s.suite},
          {"case", s.name},
          {"metric", s.metric},
          {"unit", s.unit},
          {"kind", s.kind},
          {"stage", s.stage},
          {"shared", s.shared},
          {"by_node", s.by_node},
          {"key", s.case_key},
          {"higher", s.higher_is_better},
          {"n", s.samples},
          {"strata", s.strata},
          {"rows", rows},
          {"rate", to_binary(s.log_rate)},
          {"clock", to_binary(s.log_clock)}};
}

Json run_json(const IndexedRun& indexed, PartTable& table) {
  const Snapshot& run = indexed.run;
  std::vector<std::int32_t> parts;
  for (std::size_t i = 0; i < run.parts.size(); ++i)
    parts.push_back(table.row(run, static_cast<std::int32_t>(i)));
  std::map<const PartRows*, std::size_t> known;
  Json rows = Json::array(), series = Json::array();
  for (const auto& s : run.series) {
    const auto [at, added] = known.try_emplace(s.rows.get(), rows.size());
    if (added) rows.push_back({{"part", to_binary(s.rows->part)}, {"stratum", to_binary(s.rows->stratum)}});
    series.push_back(series_json(s, at->second));
  }
  return {{"file", indexed.file},        {"bytes", indexed.bytes},        {"changed_ns", indexed.changed_ns},
          {"run_id", run.source.run_id}, {"started", run.source.started}, {"hash", run.source.hash},
          {"level", run.level},          {"injected", run.injected},      {"parts", to_binary(parts)},
          {"left_out", run.left_out},    {"rows", std::move(rows)},       {"series", std::move(series)}};
}

std::vector<Part> parts_of(const Json& table) {
  const Json &kind = table.at("kind"), &id = table.at("id"), &name = table.at("name");
  const auto node = from_binary<std::int32_t>(table.at("node")),
             far = from_binary<std::int32_t>(table.at("far"));
  std::vector<Part> parts;
  for (std::size_t i = 0; i < node.size(); ++i) {
    // A node stands before its parts.
    if (node[i] >= static_cast<std::int32_t>(i) || far.at(i) >= static_cast<std::int32_t>(i)) broken();
    parts.push_back({kind.at(i), id.at(i), name.at(i), node[i], far[i], {}});
  }
  return parts;
}

/// An index before metrics described themselves, or without `by_node`, does not say it.
results::SharedBy shared_before(const SnapshotSeries& s) {
  results::CaseData c;
  c.suite = s.suite;
  c.name = s.name;
  c.stage = s.stage;
  results::Metric m;
  m.name = s.metric;
  return results::judging_of(c, m).shared_by;
}

SnapshotSeries series_from(const Json& json, const std::vector<std::shared_ptr<const PartRows>>& rows) {
  SnapshotSeries s;
  s.suite = json.at("suite");
  s.name = json.at("case");
  s.metric = json.at("metric");
  s.unit = json.at("unit");
  s.kind = json.at("kind");
  s.stage = json.at("stage");
  s.shared =
      json.contains("shared") ? json.at("shared").get<bool>() : shared_before(s) != results::SharedBy::none;
  s.by_node =
      json.contains("by_node") ? json.at("by_node").get<bool>() : shared_before(s) == results::SharedBy::node;
  s.case_key = json.at("key");
  s.higher_is_better = json.at("higher");
  s.samples = json.at("n");
  s.strata = json.at("strata").get<std::vector<std::string>>();
  s.rows = rows.at(json.at("rows"));
  s.log_rate = from_binary<float>(json.at("rate"));
  s.log_clock = from_binary<float>(json.at("clock"));
  const std::size_t n = s.rows->part.size();
  if (s.log_rate.size() != n || (!s.log_clock.empty() && s.log_clock.size() != n)) broken();
  for (const auto stratum : s.rows->stratum)
    if (stratum < 0 || static_cast<std::size_t>(stratum) >= s.strata.size()) broken();
  for (const float rate : s.log_rate)
    if (!std::isfinite(rate)) broken();
  return s;
}

IndexedRun run_of(const Json& json, const std::vector<Part>& table) {
  IndexedRun out;
  out.file = json.at("file");
  out.bytes = json.at("bytes");
  out.changed_ns = json.at("changed_ns");
  Snapshot& run = out.run;
  run.source = {out.file, json.at("run_id"), json.at("started"), json.at("hash")};
  run.level = json.at("level");
  run.injected = json.at("injected");
  run.left_out = json.at("left_out").get<std::vector<std::string>>();
  std::unordered_map<std::int32_t, std::int32_t> here;
  for (const auto row : from_binary<std::int32_t>(json.at("parts"))) {
    Part part = table.at(static_cast<std::size_t>(row));
    const auto own = static_cast<std::int32_t>(run.parts.size());
    here.emplace(row, own);
    part.node = part.node < 0 ? own : here.at(part.node);
    if (part.far_node >= 0) part.far_node = here.at(part.far_node);
    run.parts.push_back(std::move(part));
  }
  std::vector<std::shared_ptr<const PartRows>> rows;
  for (const auto& list : json.at("rows")) {
    PartRows r{from_binary<std::int32_t>(list.at("part")), from_binary<std::int32_t>(list.at("stratum"))};
    if (r.part.size() != r.stratum.size()) broken();
    for (const auto part : r.part)
      if (part < 0 || static_cast<std::size_t>(part) >= run.parts.size()) broken();
    rows.push_back(std::make_shared<const PartRows>(std::move(r)));
  }
  for (const auto& s : json.at("series")) run.series.push_back(series_from(s, rows));
  return out;
}

}  // namespace

std::string index_bytes(const std::vector<IndexedRun>& runs) {
  PartTable table;
  Json list = Json::array();
  for (const auto& run : runs) list.push_back(run_json(run, table));
  std::string body;
  Json::to_cbor(Json{{"version", version}, {"parts", table.json()}, {"runs", std::move(list)}}, body);
  const std::uint64_t sum = checksum(body.data(), body.size());
  std::string out(magic);
  out.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return out + body;
}

std::vector<IndexedRun> parse_index(const std::string& bytes) {
  constexpr std::size_t head = magic.size() + sizeof(std::uint64_t);
  std::uint64_t sum = 0;
  if (bytes.size() < head || !bytes.starts_with(magic)) broken();
  std::memcpy(&sum, bytes.data() + magic.size(), sizeof sum);
  if (checksum(bytes.data() + head, bytes.size() - head) != sum) broken();
  try {
    const Json json = Json::from_cbor(bytes.begin() + static_cast<std::ptrdiff_t>(head), bytes.end());
    if (json.at("version") != version) broken();
    const auto parts = parts_of(json.at("parts"));
    std::vector<IndexedRun> runs;
    for (const auto& run : json.at("runs")) runs.push_back(run_of(run, parts));
    return runs;
  } catch (const Json::exception&) {
    broken();
  } catch (const std::out_of_range&) {
    broken();
  }
}

}  // namespace assay::verdict
