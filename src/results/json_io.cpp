// SPDX-License-Identifier: Apache-2.0
#include "results/json_io.hpp"

#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "results/rows.hpp"
#include "results/schema_model.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

// JSON has no NaN and no infinity: NaN becomes null, infinities become the words.
Json number_to_json(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}
double number_from_json(const Json& json) {
  if (json.is_null()) return not_taken;
  if (json.is_string()) return json == "inf" ? HUGE_VAL : -HUGE_VAL;
  return json.get<double>();
}

template <class T>
Json member_to_json(const T& value) {
  if constexpr (std::is_same_v<T, double>) {
    return number_to_json(value);
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    return value ? number_to_json(*value) : Json(nullptr);
  } else if constexpr (std::is_same_v<T, std::optional<std::int64_t>>) {
    return value ? Json(*value) : Json(nullptr);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return clean_text(value);
  } else {
    return value;
  }
}

/// A whole number that T can hold: the conversion of the library is undefined for all others.
template <class T>
T whole_from_json(const Json& json) {
  if (json.is_number_unsigned() && std::in_range<T>(json.get<std::uint64_t>()))
    return static_cast<T>(json.get<std::uint64_t>());
  if (json.is_number_integer() && !json.is_number_unsigned() && std::in_range<T>(json.get<std::int64_t>()))
    return static_cast<T>(json.get<std::int64_t>());
  throw Error(ErrorKind::data, "holds " + dump(json).substr(0, 40) + " instead of a whole number");
}

template <class T>
void member_from_json(const Json& json, T& value) {
  if constexpr (std::is_same_v<T, double>) {
    value = number_from_json(json);
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    value = json.is_null() ? T() : T(number_from_json(json));
  } else if constexpr (std::is_same_v<T, std::optional<std::int64_t>>) {
    value = json.is_null() ? T() : T(whole_from_json<std::int64_t>(json));
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    value = whole_from_json<T>(json);
  } else {
    value = json.get<T>();
  }
}

template <class Row>
Json to_object(const Row& row) {
  Json out = Json::object();
  describe(Of<Row>{}, [&](const char* name, auto member) { out[name] = member_to_json(row.*member); });
  return out;
}

template <class Row>
void from_object(const Json& json, Row& row) {
  describe(Of<Row>{}, [&](const char* name, auto member) {
    // From an earlier version: the row keeps what it is made with.
    const char* table = std::is_same_v<Row, PlanRow>    ? "/plan"
                        : std::is_same_v<Row, EventRow> ? "/events"
                        : std::is_same_v<Row, Finding>  ? "/verdict/findings"
                                                        : "";
    if (*table != 0 && json.is_object() && !json.contains(name) &&
        !Schema::get().table(table).column(name).required)
      return;
    member_from_json(json.at(name), row.*member);
  });
}

template <class Row>
Json to_list(const std::vector<Row>& rows) {
  Json out = Json::array();
  for (const Row& row : rows) out.push_back(to_object(row));
  return out;
}

template <class Row>
std::vector<Row> from_list(const Json& json) {
  std::vector<Row> rows(json.size());
  for (std::size_t i = 0; i < rows.size(); ++i) from_object(json.at(i), rows[i]);
  return rows;
}

Json inventory_to_json(const InventoryTable& table) {
  Json out{{"entity", table.entity},
           {"text", Json::object()},
           {"number", Json::object()},
           {"unit", Json::object()}};
  for (const auto& [name, values] : table.text) {
    Json list = Json::array();
    for (const std::string& value : values) list.push_back(clean_text(value));
    out["text"][name] = std::move(list);
  }
  for (const auto& [name, values] : table.number) {
    Json list = Json::array();
    for (const double value : values) list.push_back(number_to_json(value));
    out["number"][name] = std::move(list);
  }
  for (const auto& [name, unit] : table.unit) out["unit"][name] = unit;
  return out;
}

InventoryTable inventory_from_json(const Json& json) {
  InventoryTable table;
  for (const Json& row : json.at("entity")) table.entity.push_back(whole_from_json<std::int32_t>(row));
  for (const auto& [name, list] : json.at("text").items())
    table.text[name] = list.get<std::vector<std::string>>();
  for (const auto& [name, list] : json.at("number").items()) {
    for (const Json& value : list) table.number[name].push_back(number_from_json(value));
    table.number[name];
  }
  for (const auto& [name, unit] : json.at("unit").items()) table.unit[name] = unit;
  return table;
}

/// Of `text` followed by `end`.
std::string checksum_of(std::string_view text, std::string_view end = {}) {
  char hex[20];
  std::snprintf(
      hex, sizeof hex, "%016llx",
      static_cast<unsigned long long>(mix64(hash_text(end, hash_text(text)), text.size() + end.size())));
  return hex;
}

/// The end of a sealed object.
std::string checksum_member(const std::string& checksum) { return "\"checksum\":\"" + checksum + "\"}"; }

/// Whether a JSON object ends in the checksum of the text before it, as dump_sealed writes it.
bool sealed_as_written(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const std::size_t length = checksum_member(checksum_of("")).size();
  if (text.size() <= length) return false;
  std::string_view before = text.substr(0, text.size() - length);
  if (before.ends_with(',')) before.remove_suffix(1);
  return text.ends_with(checksum_member(checksum_of(before, "}")));
}

}  // namespace

Json verdict_to_json(const VerdictData& v) {
  Json out;
  out["state"] = v.state;
  out["exit_code"] = v.exit_code;
  out["basis"] = v.basis;
  out["false_alarm_rate"] = number_to_json(v.false_alarm_rate);
  out["reasons"] = v.reasons;
  out["accounting"] = to_object(v.accounting);
  out["findings"] = to_list(v.findings);
  out["entities"] = to_list(v.entities);
  out["inputs"] = v.inputs;
  return out;
}

VerdictData verdict_from_json(const Json& json) {
  VerdictData v;
  v.state = json.at("state");
  v.exit_code = whole_from_json<int>(json.at("exit_code"));
  v.basis = json.at("basis");
  v.false_alarm_rate = number_from_json(json.at("false_alarm_rate"));
  v.reasons = json.at("reasons").get<std::vector<std::string>>();
  from_object(json.at("accounting"), v.accounting);
  v.findings = from_list<Finding>(json.at("findings"));
  v.entities = from_list<EntityState>(json.at("entities"));
  v.inputs = json.at("inputs");
  if (!v.inputs.is_object()) throw Error(ErrorKind::data, "the inputs of the verdict are no JSON object");
  return v;
}

Json event_to_json(const EventRow& event) { return to_object(event); }
EventRow event_from_json(const Json& json) {
  EventRow event;
  from_object(json, event);
  return event;
}

Json start_to_json(const Writer::Start& start) {
  Json out;
  out["info"] = to_object(start.info);
  out["config"] = start.config;
  out["plan"] = to_list(start.plan);
  out["environment"] = to_list(start.environment);
  out["entities"] = to_list(start.entities);
  out["inventory"] = Json::object();
  for (const auto& [kind, table] : start.inventory) out["inventory"][kind] = inventory_to_json(table);
  return out;
}

Writer::Start start_from_json(const Json& json) {
  Writer::Start start;
  from_object(json.at("info"), start.info);
  start.config = json.at("config");
  start.plan = from_list<PlanRow>(json.at("plan"));
  start.environment = from_list<EnvironmentRow>(json.at("environment"));
  start.entities = from_list<Entity>(json.at("entities"));
  for (const auto& [kind, table] : json.at("inventory").items())
    start.inventory[kind] = inventory_from_json(table);
  return start;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json parse(const std::string& text) {
  constexpr int deepest = 200;
  int depth = 0;
  bool quoted = false, escaped = false;
  for (const char c : text) {
    if (quoted) {
      if (!escaped && c == '"') quoted = false;
      escaped = !escaped && c == '\\';
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > deepest) throw Error(ErrorKind::data, "is JSON nested too deeply");
  }
  try {
    return Json::parse(text);
  } catch (const Json::exception&) {
    throw Error(ErrorKind::data, "is no JSON");
  }
}

std::string dump_sealed(const Json& object) {
  std::string text = dump(object);
  const std::string member = checksum_member(checksum_of(text));
  text.back() = ',';
  if (object.empty()) text.pop_back();
  return text + member;
}

Json parse_sealed(const std::string& text) {
  Json json = parse(text);
  try {
    const std::string checksum = json.at("checksum");
    json.erase("checksum");
    // Another program may have written the same object in other words.
    if (sealed_as_written(text) || checksum_of(dump(json)) == checksum) return json;
  } catch (const Json::exception&) {
    throw Error(ErrorKind::data, "has no checksum");
  }
  throw Error(ErrorKind::data, "does not fit its checksum");
}

}  // namespace assay::results
