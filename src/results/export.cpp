// SPDX-License-Identifier: Apache-2.0
#include "results/export.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <functional>

#include "base/error.hpp"
#include "results/entity_tree.hpp"
#include "results/json_io.hpp"

namespace assay::results {
namespace {

/// One value with everything that says what it is.
struct Sample {
  const CaseData& data;
  const Metric& metric;
  const Entity* entity;
  std::string node, source, destination;
  bool scalar;
  std::int32_t block, number;
  double t, value;
};

const Entity* entity_at(const Results& r, std::int32_t row) {
  return row >= 0 && static_cast<std::size_t>(row) < r.entities.size()
             ? &r.entities[static_cast<std::size_t>(row)]
             : nullptr;
}

/// The node that a part sits in; a link belongs to the node that sends.
std::string node_of(const Results& r, std::int32_t row) {
  const Entity* node = entity_at(r, node_above(r.entities, row));
  return node == nullptr ? "" : node->name;
}

std::string name_of(const Results& r, const std::vector<std::int32_t>& rows, std::size_t i) {
  const Entity* entity = i < rows.size() ? entity_at(r, rows[i]) : nullptr;
  return entity == nullptr ? "" : entity->name;
}

void for_each_sample(const Results& r, const CaseData& c, const std::function<void(const Sample&)>& each) {
  for (const Metric& m : c.metrics) {
    for (std::size_t e = 0; e < c.entities(); ++e) {
      Sample s{c,
               m,
               entity_at(r, c.entity[e]),
               node_of(r, c.source.empty() ? c.entity[e] : c.source[e]),
               name_of(r, c.source, e),
               name_of(r, c.destination, e),
               !m.per_sample,
               -1,
               -1,
               not_taken,
               not_taken};
      if (!m.per_sample) {
        s.value = m.values[e];
        each(s);
        continue;
      }
      const auto taken = std::min(static_cast<std::size_t>(c.count[e]), c.samples());
      for (std::size_t i = 0; i < taken; ++i) {
        s.block = c.block[i];
        s.number = c.sample[i];
        s.t = c.t[e * c.samples() + i];
        s.value = m.values[e * c.samples() + i];
        each(s);
      }
    }
  }
}

std::string number_text(double value) {
  std::array<char, 40> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 17).ptr;
  return {text.data(), end};
}

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

class CsvLine {
 public:
  explicit CsvLine(std::ostream& out) : out_(out) {}
  void add(const std::string& field) {
    if (!first_) out_ << ',';
    first_ = false;
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
      out_ << field;
      return;
    }
    out_ << '"';
    for (const char c : field) out_ << (c == '"' ? "\"\"" : std::string(1, c));
    out_ << '"';
  }
  void end() {
    out_ << "\r\n";
    first_ = true;
  }

 private:
  std::ostream& out_;
  bool first_ = true;
};

void check_stream(const std::ostream& out) {
  if (!out) throw Error(ErrorKind::io, "cannot write the export: the output refuses more");
}

Json case_json(const CaseData& c) {
  Json json{{"record", "case"}, {"suite", c.suite}, {"case", c.name}, {"state", to_string(c.state)}};
  json["reason"] = c.reason;
  json["required"] = c.required;
  json["stage"] = c.stage;
  json["case_key"] = c.case_key;
  json["started"] = c.started;
  json["ended"] = c.ended;
  json["wall_s"] = number_json(c.shares.wall_s);
  json["warmup_s"] = number_json(c.shares.warmup_s);
  json["timed_s"] = number_json(c.shares.timed_s);
  json["verify_s"] = number_json(c.shares.verify_s);
  json["parameters"] = c.parameters;
  return json;
}

Json sample_json(const Results& r, const Sample& s) {
  Json json{{"record", "sample"}, {"run_id", r.info.run_id}, {"suite", s.data.suite}, {"case", s.data.name}};
  json["metric"] = s.metric.name;
  json["role"] = to_string(s.metric.role);
  json["unit"] = s.metric.unit;
  json["better"] = to_string(s.metric.better);
  json["entity_kind"] = s.entity ? s.entity->kind : "";
  json["entity_name"] = s.entity ? s.entity->name : "";
  json["entity_id"] = s.entity ? s.entity->id : "";
  json["node"] = s.node;
  json["rank"] = s.entity && s.entity->rank >= 0 ? Json(s.entity->rank) : Json(nullptr);
  if (!s.source.empty()) json["source"] = s.source;
  if (!s.destination.empty()) json["destination"] = s.destination;
  if (!s.scalar) {
    json["block"] = s.block;
    json["sample"] = s.number;
    json["t"] = number_json(s.t);
  }
  json["value"] = number_json(s.value);
  return json;
}

Json run_json(const RunInfo& info) {
  Json json{{"record", "run"}, {"run_id", info.run_id}, {"state", info.state}, {"started", info.started}};
  json["ended"] = info.ended;
  json["command_line"] = info.command_line;
  json["assay_version"] = info.assay_version;
  json["level"] = info.level;
  json["seed"] = info.seed;
  json["plan_hash"] = info.plan_hash;
  json["injected"] = info.injected;
  json["verdict"] = info.verdict;
  return json;
}

}  // namespace

void export_csv(const Results& r, std::ostream& out) {
  CsvLine line(out);
  for (const char* name :
       {"run_id", "suite", "case", "state", "metric", "role", "unit", "better", "entity_kind", "entity_name",
        "entity_id", "node", "rank", "source", "destination", "block", "sample", "t", "value"}) {
    line.add(name);
  }
  line.end();
  for (const CaseData& c : r.cases) {
    for_each_sample(r, c, [&](const Sample& s) {
      for (const std::string& text :
           {r.info.run_id, c.suite, c.name, std::string(to_string(c.state)), s.metric.name,
            std::string(to_string(s.metric.role)), s.metric.unit, std::string(to_string(s.metric.better))}) {
        line.add(text);
      }
      line.add(s.entity ? s.entity->kind : "");
      line.add(s.entity ? s.entity->name : "");
      line.add(s.entity ? s.entity->id : "");
      line.add(s.node);
      line.add(s.entity && s.entity->rank >= 0 ? std::to_string(s.entity->rank) : "");
      line.add(s.source);
      line.add(s.destination);
      line.add(s.scalar ? "" : std::to_string(s.block));
      line.add(s.scalar ? "" : std::to_string(s.number));
      line.add(s.scalar ? "" : number_text(s.t));
      line.add(number_text(s.value));
      line.end();
    });
    check_stream(out);
  }
  out.flush();
  check_stream(out);
}

void export_jsonl(const Results& r, std::ostream& out) {
  out << dump(run_json(r.info)) << '\n';
  for (const CaseData& c : r.cases) {
    out << dump(case_json(c)) << '\n';
    for_each_sample(r, c, [&](const Sample& s) { out << dump(sample_json(r, s)) << '\n'; });
    for (const IntegerArray& a : c.arrays) {
      Json json{{"record", "array"}, {"run_id", r.info.run_id}, {"suite", c.suite}, {"case", c.name}};
      json["array"] = a.name;
      json["dims"] = a.dims;
      json["shape"] = a.shape;
      json["values"] = a.values;
      out << dump(json) << '\n';
    }
    check_stream(out);
  }
  out.flush();
  check_stream(out);
}

}  // namespace assay::results
