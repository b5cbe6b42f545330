// SPDX-License-Identifier: Apache-2.0
// The model as bytes between a reading process and the one that asked for it (base/confined.hpp): members in
// their order, in the machine's own form, every length before its content. What arrives is checked
// like a file.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/confined.hpp"
#include "base/error.hpp"
#include "results/model.hpp"
#include "results/rows.hpp"
#include "results/writer.hpp"

namespace assay::results {

// Members of what is no row: `v(member)` for each.
template <class V>
void members(Of<TimeShares>, V&& v) {
  v(&TimeShares::wall_s), v(&TimeShares::warmup_s), v(&TimeShares::timed_s), v(&TimeShares::verify_s);
}
template <class V>
void members(Of<Metric>, V&& v) {
  v(&Metric::name), v(&Metric::unit), v(&Metric::better), v(&Metric::required), v(&Metric::role),
      v(&Metric::per_sample);
  v(&Metric::values), v(&Metric::judging), v(&Metric::title);
}
template <class V>
void members(Of<Judging>, V&& v) {
  v(&Judging::of), v(&Judging::fault_threshold), v(&Judging::weight), v(&Judging::floor),
      v(&Judging::shared_by), v(&Judging::in_step);
}
template <class V>
void members(Of<CaseTraits>, V&& v) {
  v(&CaseTraits::operation), v(&CaseTraits::takes_turns), v(&CaseTraits::addresses);
}
template <class V>
void members(Of<IntegerArray>, V&& v) {
  v(&IntegerArray::name), v(&IntegerArray::dims), v(&IntegerArray::shape), v(&IntegerArray::values);
}
template <class V>
void members(Of<CaseData>, V&& v) {
  v(&CaseData::suite), v(&CaseData::name), v(&CaseData::state), v(&CaseData::reason), v(&CaseData::required),
      v(&CaseData::stage);
  v(&CaseData::case_key), v(&CaseData::started), v(&CaseData::ended), v(&CaseData::shares),
      v(&CaseData::parameters);
  v(&CaseData::kind), v(&CaseData::entity), v(&CaseData::source), v(&CaseData::destination),
      v(&CaseData::count);
  v(&CaseData::sample), v(&CaseData::block), v(&CaseData::t), v(&CaseData::metrics), v(&CaseData::arrays);
  v(&CaseData::traits);
}
template <class V>
void members(Of<TelemetryTable>, V&& v) {
  v(&TelemetryTable::entity), v(&TelemetryTable::t), v(&TelemetryTable::number), v(&TelemetryTable::unit);
}
template <class V>
void members(Of<InventoryTable>, V&& v) {
  v(&InventoryTable::entity), v(&InventoryTable::text), v(&InventoryTable::number), v(&InventoryTable::unit);
}
template <class V>
void members(Of<CaseBundle>, V&& v) {
  v(&CaseBundle::data), v(&CaseBundle::new_entities), v(&CaseBundle::errors), v(&CaseBundle::counters),
      v(&CaseBundle::telemetry);
  v(&CaseBundle::flags), v(&CaseBundle::selftest);
}
template <class V>
void members(Of<Writer::Start>, V&& v) {
  v(&Writer::Start::info), v(&Writer::Start::config), v(&Writer::Start::plan), v(&Writer::Start::environment);
  v(&Writer::Start::entities), v(&Writer::Start::inventory);
}
template <class V>
void members(Of<VerdictData>, V&& v) {
  v(&VerdictData::state), v(&VerdictData::exit_code), v(&VerdictData::basis),
      v(&VerdictData::false_alarm_rate);
  v(&VerdictData::reasons), v(&VerdictData::findings), v(&VerdictData::entities), v(&VerdictData::accounting),
      v(&VerdictData::inputs);
}
template <class V>
void members(Of<Results>, V&& v) {
  v(&Results::info), v(&Results::config), v(&Results::plan), v(&Results::environment), v(&Results::entities),
      v(&Results::inventory);
  v(&Results::cases), v(&Results::errors), v(&Results::counters), v(&Results::telemetry), v(&Results::flags),
      v(&Results::events);
  v(&Results::selftest), v(&Results::verdict);
}

/// What a reader downstream depends on: lengths that belong together. Throws Error(data).
void check_lengths(const CaseData& data);
void check_lengths(const TelemetryTable& table);
void check_lengths(const InventoryTable& table);
void check_lengths(const Judging& judging);

void pack(Sink& sink, const Json& json);
void unpack(Source& source, Json& json, int depth = 0);

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// The last value of each enumeration that travels.
constexpr Better last_of(Of<Better>) { return Better::none; }
constexpr Role last_of(Of<Role>) { return Role::covariate; }
constexpr MetricClass last_of(Of<MetricClass>) { return MetricClass::storage; }
constexpr Floor last_of(Of<Floor>) { return Floor::gpu_bound; }
constexpr SharedBy last_of(Of<SharedBy>) { return SharedBy::world; }
constexpr CaseState last_of(Of<CaseState>) { return CaseState::error; }

class Packer {
 public:
  explicit Packer(Sink& sink) : sink_(sink) {}

  template <Number T>
  void put(const T& value) {
    sink_.write(&value, sizeof value);
  }
  void put(const std::string& text) {
    put(std::uint64_t{text.size()});
    sink_.write(text.data(), text.size());
  }
  void put(const Interned& text) { put(text.str()); }
  void put(const Json& json) { pack(sink_, json); }
  template <class T>
  void put(const std::vector<T>& values) {
    put(std::uint64_t{values.size()});
    if constexpr (Number<T>)
      sink_.write(values.data(), values.size() * sizeof(T));
    else
      for (const T& value : values) put(value);
  }
  template <class T>
  void put(const Values<T>& values) {
    const Held<T> all = values.held();
    put(std::uint64_t{all.size()});
    sink_.write(all.data(), all.size_bytes());
  }
  template <class T>
  void put(const std::map<std::string, T>& values) {
    put(std::uint64_t{values.size()});
    for (const auto& [key, value] : values) put(key), put(value);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  requires(std::is_class_v<T>) void put(const T& value) {
    if constexpr (requires { describe(Of<T>{}, [](const char*, auto) {}); })
      describe(Of<T>{}, [&](const char*, auto member) { put(value.*member); });
    else
      members(Of<T>{}, [&](auto member) { put(value.*member); });
  }

 private:
  Sink& sink_;
};

class Unpacker {
 public:
  explicit Unpacker(Source& source) : source_(source) {}

  template <Number T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      unsigned char byte = 0;
      source_.read(&byte, 1);
      value = byte != 0;
    } else {
      source_.read(&value, sizeof value);
      if constexpr (std::is_enum_v<T>)
        if (value < T{} || value > last_of(Of<T>{}))
          throw Error(ErrorKind::data, "holds a state that there is not");
    }
  }
  void get(std::string& text) {
    text.clear();
    in_pieces(text);
  }
  void get(Interned& text) {
    std::string own;
    get(own);
    text = own;
  }
  void get(Json& json) { unpack(source_, json); }
  template <class T>
  void get(std::vector<T>& values) {
    values.clear();
    if constexpr (Number<T>) {
      in_pieces(values);
    } else {
      for (auto left = number(); left > 0; --left) get(values.emplace_back());
    }
  }
  template <class T>
  void get(Values<T>& values) {
    get(values.own());
  }
  template <class T>
  void get(std::map<std::string, T>& values) {
    values.clear();
    for (auto left = number(); left > 0; --left) {
      std::string key;
      get(key);
      get(values[key]);
    }
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    value.reset();
    if (there) get(value.emplace());
  }
  template <class T>
  requires(std::is_class_v<T>) void get(T& value) {
    if constexpr (requires { describe(Of<T>{}, [](const char*, auto) {}); })
      describe(Of<T>{}, [&](const char*, auto member) { get(value.*member); });
    else
      members(Of<T>{}, [&](auto member) { get(value.*member); });
    if constexpr (requires { check_lengths(value); }) check_lengths(value);
  }

  std::uint64_t number() {
    std::uint64_t n = 0;
    get(n);
    return n;
  }

 private:
  /// Nothing is allocated for a length that is only promised.
  template <class Text>
  void in_pieces(Text& values) {
    constexpr std::uint64_t piece = (std::uint64_t{1} << 20) / sizeof(typename Text::value_type);
    for (auto left = number(); left > 0;) {
      const auto n = static_cast<std::size_t>(std::min(left, piece));
      const std::size_t before = values.size();
      values.resize(before + n);
      source_.read(values.data() + before, n * sizeof(typename Text::value_type));
      left -= n;
    }
  }

  Source& source_;
};

/// `make` runs on `files` in a reading process; its value comes back here.
template <class T>
T made_confined(const std::vector<std::string>& files, const std::function<T(const Inputs&)>& make) {
  T value{};
  read_confined(
      files, [&](const Inputs& inputs, Sink& sink) { Packer(sink).put(make(inputs)); },
      [&](Source& source) { Unpacker(source).get(value); });
  return value;
}

}  // namespace assay::results
