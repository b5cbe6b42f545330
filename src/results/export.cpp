// SPDX-License-Identifier: Apache-2.0
#include "results/export.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "base/error.hpp"
#include "results/entity_tree.hpp"
#include "results/json_io.hpp"

namespace assay::results {
namespace {

const Entity* entity_at(const Results& r, std::int32_t row) {
  return row >= 0 && static_cast<std::size_t>(row) < r.entities.size()
             ? &r.entities[static_cast<std::size_t>(row)]
             : nullptr;
}

/// The node of a part; a link belongs to the node that sends.
std::string node_of(const Results& r, std::int32_t row) {
  const Entity* node = entity_at(r, node_above(r.entities, row));
  return node == nullptr ? "" : node->name;
}

std::string name_of(const Results& r, const std::vector<std::int32_t>& rows, std::size_t i) {
  const Entity* entity = i < rows.size() ? entity_at(r, rows[i]) : nullptr;
  return entity == nullptr ? "" : entity->name;
}

/// A measured part: a device, a node or, with both ends, a link.
struct MeasuredPart {
  const Entity* entity;
  std::string node, source, destination;
};

/// One line per value, from three texts that are each made once: of a metric, of a part and of a sample.
class Lines {
 public:
  Lines(const Results& results, std::ostream& out) : results_(results), out_(out) {}
  virtual ~Lines() = default;

  void write(const CaseData& c) {
    for (const Metric& m : c.metrics) {
      const std::string head = of_metric(results_, c, m);
      const auto times = c.t.held(), values = m.values.held();
      for (std::size_t e = 0; e < c.entities(); ++e) {
        const std::string& part = part_text(c, e);
        const auto begin_line = [&] { text_.append(head).append(part); };
        if (!m.per_sample) {
          begin_line();
          add_value(text_, values[e]);
        }
        const auto taken =
            m.per_sample ? std::min(static_cast<std::size_t>(c.count[e]), c.samples()) : std::size_t{0};
        for (std::size_t i = 0; i < taken; ++i) {
          begin_line();
          add_sample(text_, c, i, times[e * c.samples() + i], values[e * c.samples() + i]);
        }
        if (text_.size() > chunk) flush();
      }
    }
    flush();
  }

 private:
  static constexpr std::size_t chunk = 1 << 16;
  virtual std::string of_metric(const Results& r, const CaseData& c, const Metric& m) const = 0;
  virtual std::string of_part(const MeasuredPart& part) const = 0;
  virtual void add_sample(std::string& text, const CaseData& c, std::size_t i, double t,
                          double value) const = 0;
  virtual void add_value(std::string& text, double value) const = 0;

  /// Parts other than links have the same text in every case.
  const std::string& part_text(const CaseData& c, std::size_t e) {
    const bool link = !c.source.empty() || !c.destination.empty();
    std::string& text = link ? link_ : parts_[c.entity[e]];
    if (link || text.empty())
      text = of_part({entity_at(results_, c.entity[e]),
                      node_of(results_, c.source.empty() ? c.entity[e] : c.source[e]),
                      name_of(results_, c.source, e), name_of(results_, c.destination, e)});
    return text;
  }
  void flush() {
    out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

  const Results& results_;
  std::ostream& out_;
  std::unordered_map<std::int32_t, std::string> parts_;
  std::string text_, link_;
};

void add_number(std::string& text, double value) {
  std::array<char, 40> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::general, 17).ptr;
  text.append(digits.data(), end);
}

/// As JSON has it: shortest, and with a point, so that readers see no whole number.
void add_json_number(std::string& text, double value) {
  if (!std::isfinite(value)) {
    text += std::isnan(value) ? "null" : value > 0 ? "\"inf\"" : "\"-inf\"";
    return;
  }
  std::array<char, 40> digits{};
  const std::string_view shortest(digits.data(),
                                  std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  text += shortest;
  if (shortest.find_first_of(".e") == std::string_view::npos) text += ".0";
}

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

void add_field(std::string& line, std::string_view field) { line.append(csv_field(field)).append(1, ','); }

class CsvLines : public Lines {
  using Lines::Lines;
  std::string of_metric(const Results& r, const CaseData& c, const Metric& m) const override {
    std::string text;
    for (const std::string_view field :
         {std::string_view(r.info.run_id), std::string_view(c.suite), std::string_view(c.name),
          std::string_view(to_string(c.state)), std::string_view(m.name), std::string_view(to_string(m.role)),
          std::string_view(m.unit), std::string_view(to_string(m.better))})
      add_field(text, field);
    return text;
  }
  std::string of_part(const MeasuredPart& part) const override {
    static const Entity none;
    const Entity& e = part.entity ? *part.entity : none;
    std::string text;
    for (const std::string& field :
         {e.kind, e.name, e.id, part.node, part.entity && e.rank >= 0 ? std::to_string(e.rank) : "",
          part.source, part.destination})
      add_field(text, field);
    return text;
  }
  void add_sample(std::string& text, const CaseData& c, std::size_t i, double t,
                  double value) const override {
    text.append(std::to_string(c.block[i])).append(1, ',');
    text.append(std::to_string(c.sample[i])).append(1, ',');
    add_number(text, t);
    text += ',';
    add_number(text, value);
    text += "\r\n";
  }
  void add_value(std::string& text, double value) const override {
    text += ",,,";
    add_number(text, value);
    text += "\r\n";
  }
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

class JsonLines : public Lines {
  using Lines::Lines;
  std::string of_metric(const Results& r, const CaseData& c, const Metric& m) const override {
    Json json{{"record", "sample"}, {"run_id", r.info.run_id}, {"suite", c.suite}, {"case", c.name}};
    json["metric"] = m.name;
    json["role"] = to_string(m.role);
    json["unit"] = m.unit;
    json["better"] = to_string(m.better);
    std::string text = dump(json);
    text.back() = ',';
    return text;
  }
  std::string of_part(const MeasuredPart& part) const override {
    Json json{{"entity_kind", part.entity ? part.entity->kind : ""},
              {"entity_name", part.entity ? part.entity->name : ""},
              {"entity_id", part.entity ? part.entity->id : ""},
              {"node", part.node},
              {"rank", part.entity && part.entity->rank >= 0 ? Json(part.entity->rank) : Json(nullptr)}};
    if (!part.source.empty()) json["source"] = part.source;
    if (!part.destination.empty()) json["destination"] = part.destination;
    std::string text = dump(json).substr(1);
    text.back() = ',';
    return text;
  }
  void add_sample(std::string& text, const CaseData& c, std::size_t i, double t,
                  double value) const override {
    text.append("\"block\":").append(std::to_string(c.block[i]));
    text.append(",\"sample\":").append(std::to_string(c.sample[i]));
    text += ",\"t\":";
    add_json_number(text, t);
    text += ',';
    add_value(text, value);
  }
  void add_value(std::string& text, double value) const override {
    text += "\"value\":";
    add_json_number(text, value);
    text += "}\n";
  }
};

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

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

void export_csv(const Results& r, std::ostream& out) {
  out << "run_id,suite,case,state,metric,role,unit,better,entity_kind,entity_name,entity_id,node,rank,source,"
         "destination,block,sample,t,value\r\n";
  CsvLines lines(r, out);
  for (const CaseData& c : r.cases) {
    lines.write(c);
    check_stream(out);
  }
  out.flush();
  check_stream(out);
}

void export_jsonl(const Results& r, std::ostream& out) {
  out << dump(run_json(r.info)) << '\n';
  if (r.verdict) {
    const Json verdict = verdict_to_json(*r.verdict);
    for (const Json& finding : verdict.at("findings")) {
      Json json{{"record", "finding"}, {"run_id", r.info.run_id}};
      json.update(finding);
      out << dump(json) << '\n';
    }
  }
  JsonLines lines(r, out);
  for (const CaseData& c : r.cases) {
    out << dump(case_json(c)) << '\n';
    lines.write(c);
    for (const IntegerArray& a : c.arrays) {
      Json json{{"record", "array"}, {"run_id", r.info.run_id}, {"suite", c.suite}, {"case", c.name}};
      json["array"] = a.name;
      json["dims"] = a.dims;
      json["shape"] = a.shape;
      const auto values = a.values.held();
      json["values"] = std::vector<std::uint64_t>(values.begin(), values.end());
      out << dump(json) << '\n';
    }
    check_stream(out);
  }
  out.flush();
  check_stream(out);
}

}  // namespace assay::results
