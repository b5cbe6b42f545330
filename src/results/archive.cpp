// SPDX-License-Identifier: Apache-2.0
#include "results/archive.hpp"

namespace assay::results {
namespace {

using Kind = Json::value_t;

constexpr int deepest_json = 250;  // json_io.cpp reads no deeper ones

[[noreturn]] void unequal(const std::string& what) {
  throw Error(ErrorKind::data, what + " has the wrong length");
}

}  // namespace

void check_lengths(const CaseData& data) {
  const std::size_t n = data.entity.size(), s = data.sample.size();
  for (const Metric& m : data.metrics)
    if (m.values.size() != n * (m.per_sample ? s : 1)) unequal("metric " + m.name);
  for (const IntegerArray& a : data.arrays) {
    std::size_t total = 1;
    for (const std::size_t length : a.shape)
      if (__builtin_mul_overflow(total, length, &total)) unequal("array " + a.name);
    if (a.dims.size() != a.shape.size() || a.values.size() != total) unequal("array " + a.name);
  }
}

void check_lengths(const TelemetryTable& table) {
  if (table.entity.size() != table.t.size()) unequal("telemetry entity");
  for (const auto& [name, values] : table.number)
    if (values.size() != table.t.size() || !table.unit.contains(name)) unequal("telemetry " + name);
}

void check_lengths(const InventoryTable& table) {
  for (const auto& [name, values] : table.text)
    if (values.size() != table.entity.size()) unequal("inventory column " + name);
  for (const auto& [name, values] : table.number)
    if (values.size() != table.entity.size() || !table.unit.contains(name))
      unequal("inventory column " + name);
}

void check_lengths(const Judging& judging) {
  if (!judging.is_sane()) throw Error(ErrorKind::data, "holds an invalid threshold or weight");
}

void pack(Sink& sink, const Json& json) {
  Packer out(sink);
  out.put(static_cast<std::uint8_t>(json.type()));
  switch (json.type()) {
    case Kind::boolean: out.put(json.get<bool>()); break;
    case Kind::number_integer: out.put(json.get<std::int64_t>()); break;
    case Kind::number_unsigned: out.put(json.get<std::uint64_t>()); break;
    case Kind::number_float: out.put(json.get<double>()); break;
    case Kind::string: out.put(json.get_ref<const std::string&>()); break;
    case Kind::array:
      out.put(std::uint64_t{json.size()});
      for (const Json& item : json) pack(sink, item);
      break;
    case Kind::object:
      out.put(std::uint64_t{json.size()});
      for (const auto& [key, item] : json.items()) out.put(key), pack(sink, item);
      break;
    default: break;
  }
}

void unpack(Source& source, Json& json, int depth) {
  if (depth > deepest_json) throw Error(ErrorKind::data, "is JSON nested too deeply");
  Unpacker in(source);
  const auto value = [&]<class T>(T what) {
    in.get(what);
    json = std::move(what);
  };
  std::uint8_t kind = 0;
  in.get(kind);
  switch (static_cast<Kind>(kind)) {
    case Kind::boolean: value(false); break;
    case Kind::number_integer: value(std::int64_t{}); break;
    case Kind::number_unsigned: value(std::uint64_t{}); break;
    case Kind::number_float: value(0.0); break;
    case Kind::string: value(std::string()); break;
    case Kind::array:
      json = Json::array();
      for (auto left = in.number(); left > 0; --left) {
        Json item;
        unpack(source, item, depth + 1);
        json.push_back(std::move(item));
      }
      break;
    case Kind::object:
      json = Json::object();
      for (auto left = in.number(); left > 0; --left) {
        std::string key;
        in.get(key);
        unpack(source, json[key], depth + 1);
      }
      break;
    default: json = nullptr;
  }
}

}  // namespace assay::results
