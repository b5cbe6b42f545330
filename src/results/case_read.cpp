// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>

#include "base/text.hpp"
#include "results/case_io.hpp"
#include "results/json_io.hpp"
#include "results/schema_model.hpp"

namespace assay::results {
namespace {

/// Sorts by the stored position, which the order of links may have lost in a file rewritten by another tool.
template <class T>
std::vector<T> by_position(std::vector<std::pair<std::int32_t, T>>& items) {
  std::stable_sort(items.begin(), items.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<T> out;
  for (auto& item : items) out.push_back(std::move(item.second));
  return out;
}

class CaseReader {
 public:
  CaseReader(hid_t file, const std::string& path, const h5::Limits& limits, const ValueSource* source)
      : path_(path), limits_(limits), source_(source), group_(h5::open_group(file, path)) {}

  CaseData read(std::int64_t& sequence) {
    attributes(sequence);
    parameters();
    numbers("entity", data_.entity, true);
    numbers("source", data_.source, false);
    numbers("destination", data_.destination, false);
    numbers("count", data_.count, true);
    numbers("sample", data_.sample, true);
    numbers("block", data_.block, true);
    numbers("t", data_.t, true);
    others();
    return std::move(data_);
  }

 private:
  std::string text(const char* name) { return h5::get_string(group_, name, limits_); }
  template <class T>
  void get(hid_t object, const char* name, h5::Type type, T& value) {
    h5::get(object, name, type, &value);
  }

  void attributes(std::int64_t& sequence) {
    data_.state = case_state_from(text("state"));
    data_.reason = text("reason");
    std::int32_t required = 0;
    get(group_, "required", h5::Type::int32, required);
    data_.required = required != 0;
    data_.stage = text("stage");
    data_.case_key = text("case_key");
    data_.started = text("started");
    data_.ended = text("ended");
    data_.kind = text("kind");
    get(group_, "sequence", h5::Type::int64, sequence);
    get(group_, "wall_s", h5::Type::float64, data_.shares.wall_s);
    get(group_, "warmup_s", h5::Type::float64, data_.shares.warmup_s);
    get(group_, "timed_s", h5::Type::float64, data_.shares.timed_s);
    get(group_, "verify_s", h5::Type::float64, data_.shares.verify_s);
    if (!h5::has_attribute(group_, "operation")) return;
    data_.traits = CaseTraits{text("operation"), flag(group_, "takes_turns"), flag(group_, "addresses")};
  }

  bool flag(hid_t object, const char* name) {
    return number<std::int32_t>(object, name, h5::Type::int32) != 0;
  }

  void parameters() {
    const h5::Id group = h5::open_group(group_, "parameters");
    for (const std::string& name : h5::attributes(group)) {
      const h5::Stored type = h5::attribute_type(group, name);
      if (type == h5::Stored::string) {
        const std::string value = h5::get_string(group, name, limits_);
        if (name.ends_with(".json")) {
          data_.parameters[name.substr(0, name.size() - 5)] = parse(value);
        } else {
          data_.parameters[name] = value;
        }
      } else if (type == h5::Stored::uint8) {
        data_.parameters[name] = h5::get_flag(group, name);
      } else if (type == h5::Stored::int64) {
        data_.parameters[name] = number<std::int64_t>(group, name, h5::Type::int64);
      } else if (type == h5::Stored::uint64) {
        data_.parameters[name] = number<std::uint64_t>(group, name, h5::Type::uint64);
      } else if (type == h5::Stored::float64) {
        data_.parameters[name] = number<double>(group, name, h5::Type::float64);
      }
    }
  }

  template <class T>
  T number(hid_t object, const std::string& name, h5::Type type) {
    T value{};
    h5::get(object, name, type, &value);
    return value;
  }

  template <class T>
  std::vector<std::size_t> values(const std::string& name, h5::Type type, std::vector<T>& out) {
    const h5::Id set = h5::open_dataset(group_, name);
    std::vector<std::size_t> shape = h5::check_dataset(set, name, type, limits_);
    out.resize(length(shape));
    if (!out.empty()) h5::read(set, name, type, out.data());
    return shape;
  }

  /// Small arrays are not worth a look into the file.
  template <class T>
  std::vector<std::size_t> values(const std::string& name, h5::Type type, Values<T>& out) {
    constexpr std::size_t small_bytes = 4096;
    if (source_ != nullptr) {
      const h5::Id set = h5::open_dataset(group_, name);
      std::vector<std::size_t> shape = h5::check_dataset(set, name, type, limits_);
      const std::size_t count = length(shape);
      const auto offset = h5::plain_offset(set, type, source_->file->bytes);
      if (count * sizeof(T) > small_bytes && offset) {
        out = Values<T>(*source_, *offset, count);
        return shape;
      }
    }
    return values(name, type, out.own());
  }

  static std::size_t length(const std::vector<std::size_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  }

  std::vector<std::size_t> expected(const std::vector<std::string>& dims) const {
    std::vector<std::size_t> shape;
    for (const std::string& dim : dims)
      shape.push_back(dim == "entity" ? data_.entity.size() : data_.sample.size());
    return shape;
  }

  template <class Array>
  void numbers(const std::string& name, Array& out, bool required) {
    if (!required && !h5::is_dataset(group_, name)) return;
    const Field& field = Schema::get().case_dataset(name);
    const auto shape = values(name, field.type, out);
    const bool scale = name == "entity" || name == "sample";
    if (scale ? shape.size() != 1 : shape != expected(field.dims)) {
      throw Error(ErrorKind::data, "dataset " + name + " has the wrong shape");
    }
  }

  /// Metrics are float64, arrays uint64; anything else belongs to a later minor version.
  void others() {
    std::vector<std::pair<std::int32_t, Metric>> metrics;
    std::vector<std::pair<std::int32_t, IntegerArray>> arrays;
    for (const std::string& name : h5::children(group_)) {
      if (Schema::get().reserved(name) || !h5::is_dataset(group_, name)) continue;
      const h5::Id set = h5::open_dataset(group_, name);
      const h5::Stored type = h5::stored_type(h5::Id(h5::check(H5Dget_type(set), name)));
      if (type == h5::Stored::float64) metrics.emplace_back(position(set), metric(set, name));
      if (type == h5::Stored::uint64) arrays.emplace_back(position(set), array(set, name));
    }
    data_.metrics = by_position(metrics);
    data_.arrays = by_position(arrays);
  }

  std::int32_t position(hid_t set) { return number<std::int32_t>(set, "position", h5::Type::int32); }

  Metric metric(hid_t set, const std::string& name) {
    Metric out;
    out.name = name;
    if (!h5::has_attribute(set, "unit")) throw Error(ErrorKind::data, "missing unit of " + name);
    out.unit = h5::get_string(set, "unit", limits_);
    out.better = better_from(h5::get_string(set, "better", limits_));
    out.role = role_from(h5::get_string(set, "role", limits_));
    out.required = flag(set, "required");
    if (h5::has_attribute(set, "title")) out.title = h5::get_string(set, "title", limits_);
    if (h5::has_attribute(set, "class")) out.judging = judging(set);
    const auto shape = values(name, h5::Type::float64, out.values);
    out.per_sample = shape.size() == 2;
    if (shape != (out.per_sample ? expected({"entity", "sample"}) : expected({"entity"}))) {
      throw Error(ErrorKind::data, "dataset " + name + " has the wrong shape");
    }
    return out;
  }

  Judging judging(hid_t set) {
    Judging out;
    out.of = metric_class_from(h5::get_string(set, "class", limits_));
    out.fault_threshold = number<double>(set, "fault_threshold", h5::Type::float64);
    out.weight = number<double>(set, "weight", h5::Type::float64);
    out.floor = floor_from(h5::get_string(set, "floor", limits_));
    out.shared_by = shared_by_from(h5::get_string(set, "shared_by", limits_));
    out.in_step = flag(set, "in_step");
    if (!out.is_sane()) throw Error(ErrorKind::data, "invalid fault_threshold or weight");
    return out;
  }

  IntegerArray array(hid_t set, const std::string& name) {
    IntegerArray out;
    out.name = name;
    out.dims = split(h5::get_string(set, "dims", limits_), ',');
    out.shape = values(name, h5::Type::uint64, out.values);
    if (out.dims.size() != out.shape.size())
      throw Error(ErrorKind::data, "dataset " + name + " has the wrong shape");
    return out;
  }

  std::string path_;
  h5::Limits limits_;
  const ValueSource* source_;
  h5::Id group_;
  CaseData data_;
};

}  // namespace

CaseData read_case(hid_t file, const std::string& path, const h5::Limits& limits, std::int64_t& sequence,
                   const ValueSource* source) {
  try {
    return CaseReader(file, path, limits, source).read(sequence);
  } catch (const Error& error) {
    throw Error(error.kind(), path + ": " + error.what());
  }
}

}  // namespace assay::results
