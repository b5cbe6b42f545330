// SPDX-License-Identifier: Apache-2.0
// What workers tell the controller, as text. Both ends are one build of one program, so a shape that is not
// expected is an error of the program and not of a user.
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/units.hpp"
#include "run/controller.hpp"
#include "telemetry/telemetry.hpp"

namespace assay {

std::string to_text(const StartFacts& facts) {
  Json findings = Json::array();
  for (const LaunchFinding& f : facts.findings)
    findings.push_back({f.severity, f.kind, f.text, f.node, f.left_out});
  const Json json = {{"seed", facts.seed},
                     {"seed_given", facts.seed_given},
                     {"agreed_memory_bytes", facts.agreed_memory_bytes},
                     {"nodes", facts.nodes},
                     {"places", facts.places},
                     {"plan_hash", facts.plan_hash},
                     {"members", facts.members},
                     {"findings", findings},
                     {"environment", facts.environment}};
  return json.dump();
}

StartFacts start_facts_from(const std::string& text) {
  const Json json = Json::parse(text);
  StartFacts facts;
  facts.seed = json.at("seed");
  facts.seed_given = json.at("seed_given");
  facts.agreed_memory_bytes = json.at("agreed_memory_bytes");
  facts.nodes = json.at("nodes").get<std::vector<std::string>>();
  facts.places = json.at("places").get<std::vector<std::string>>();
  facts.plan_hash = json.at("plan_hash");
  facts.members = json.at("members").get<std::vector<int>>();
  for (const Json& f : json.at("findings"))
    facts.findings.push_back({f.at(0), f.at(1), f.at(2), f.at(3), f.at(4)});
  facts.environment = json.at("environment").get<std::vector<std::pair<std::string, std::string>>>();
  return facts;
}

std::string to_text(const ReadyFacts& facts) {
  return Json{
      {"run_start_s", facts.run_start_s}, {"elapsed_s", facts.elapsed_s}, {"identity", facts.identity}}
      .dump();
}

ReadyFacts ready_facts_from(const std::string& text) {
  const Json json = Json::parse(text);
  return {json.at("run_start_s"), json.at("elapsed_s"), json.at("identity")};
}

// The record is binary and by far the largest part: the others go first, after their length.
std::string to_text(const CaseReport& report) {
  const std::string head =
      Json{{"counters", report.counters}, {"telemetry", report.telemetry}, {"unfired", report.unfired}}
          .dump();
  return std::to_string(head.size()) + ":" + head + report.record;
}

std::string bounded_text(CaseReport report, const std::string& who, const std::string& what,
                         std::size_t most_bytes) {
  std::string text = to_text(report);
  if (text.size() <= most_bytes) return text;
  CaseRecord refused = CaseRecord::deserialize(report.record);
  refused.rows_.clear();
  const std::string why =
      fmt::format("{}: its samples of {} take {}, more than the {} that a rank may send of a case", who, what,
                  format_bytes(text.size()), format_bytes(most_bytes));
  if (refused.miscompares() == 0) refused.set_state(results::CaseState::error, why);  // FAIL stays FAIL
  report.record = refused.serialize();
  report.telemetry.clear();
  return to_text(report);
}

CaseReport case_report_from(const std::string& text) {
  const auto colon = text.find(':');
  const auto length = static_cast<std::size_t>(std::stoull(text));
  const Json head = Json::parse(text.substr(colon + 1, length));
  return {text.substr(colon + 1 + length), head.at("counters"), head.at("telemetry"),
          head.at("unfired").get<std::vector<std::string>>()};
}

void tell_counter(Json& told, const std::string& kind, const std::string& name, const std::string& counter,
                  double before, double after) {
  if (told.empty() || told.back()[0] != kind || told.back()[1] != name)
    told.push_back({kind, name, Json::array()});
  const auto number = [](double value) { return std::isnan(value) ? Json() : Json(value); };
  Json row = Json::array({counter});
  if (!std::isnan(before) || !std::isnan(after)) row.push_back(number(before));
  if (row.size() > 1 && before != after) row.push_back(number(after));
  told.back()[2].push_back(std::move(row));
}

void add_counters(const Json& told, const EntityTable& entities, results::CaseBundle& bundle) {
  const auto reading = [](const Json& value) {
    return value.is_null() ? results::not_taken : value.get<double>();
  };
  const Interned path(bundle.data.path());
  for (const Json& part : told) {
    const std::int32_t entity = entities.find(part.at(0), part.at(1));
    for (const Json& row : part.at(2)) {
      const double before = row.size() > 1 ? reading(row.at(1)) : results::not_taken;
      bundle.counters.push_back({path, entity, row.at(0).get_ref<const std::string&>(), before,
                                 row.size() > 2 ? reading(row.at(2)) : before});
    }
  }
}

void add_telemetry(const Json& told, const EntityTable& entities, results::CaseBundle& bundle) {
  for (const Json& series : told.at("series")) {
    results::TelemetryTable table;
    const std::int32_t entity = entities.find(series.at(0), series.at(1));
    if (entity < 0) continue;
    table.t = series.at(2).get<std::vector<double>>();
    table.entity.assign(table.t.size(), entity);
    for (const auto& [name, values] : series.at(3).items()) {
      auto& column = table.number[name];
      for (const Json& value : values)
        column.push_back(value.is_null() ? results::not_taken : value.get<double>());
      table.unit[name] = unit_of_quantity(name);
    }
    bundle.telemetry.append(std::move(table));
  }
  for (const Json& flag : told.at("flags"))
    bundle.flags.push_back({flag.at(0), entities.find(flag.at(1), flag.at(2)), flag.at(3), flag.at(4)});
}

}  // namespace assay
