// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <numeric>
#include <set>

#include "results/case_io.hpp"
#include "results/coordinates.hpp"
#include "results/schema.hpp"
#include "results/schema_model.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

class CaseWriter {
 public:
  CaseWriter(hid_t parent, const std::string& name, const CaseData& data, SharedCoordinates* shared)
      : data_(data), shared_(shared), group_(h5::create_group(parent, name)) {}

  void write(std::int64_t sequence) {
    attributes(sequence);
    parameters();
    coordinate("entity", data_.entity);
    coordinate("sample", data_.sample);
    if (!data_.source.empty()) {
      fixed("source", data_.source.data());
      fixed("destination", data_.destination.data());
    }
    fixed("count", data_.count.data());
    fixed("block", data_.block.data());
    fixed("t", data_.t.held().data());
    for (std::size_t i = 0; i < data_.metrics.size(); ++i)
      metric(data_.metrics[i], static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < data_.arrays.size(); ++i)
      array(data_.arrays[i], static_cast<std::int32_t>(i));
    for (auto& scale : own_) scale->finish();
  }

 private:
  void attributes(std::int64_t sequence) {
    h5::put(group_, "state", to_string(data_.state));
    h5::put(group_, "reason", data_.reason);
    h5::put(group_, "required", std::int32_t{data_.required});
    h5::put(group_, "stage", data_.stage);
    h5::put(group_, "case_key", data_.case_key);
    h5::put(group_, "started", data_.started);
    h5::put(group_, "ended", data_.ended);
    h5::put(group_, "kind", data_.kind);
    h5::put(group_, "sequence", sequence);
    h5::put(group_, "wall_s", data_.shares.wall_s);
    h5::put(group_, "warmup_s", data_.shares.warmup_s);
    h5::put(group_, "timed_s", data_.shares.timed_s);
    h5::put(group_, "verify_s", data_.shares.verify_s);
    if (!data_.traits) return;
    h5::put(group_, "operation", data_.traits->operation);
    h5::put(group_, "takes_turns", std::int32_t{data_.traits->takes_turns});
    h5::put(group_, "addresses", std::int32_t{data_.traits->addresses});
  }

  void parameters() {
    const h5::Id group = h5::create_group(group_, "parameters");
    for (const auto& [key, value] : data_.parameters.items()) {
      const bool plain = !key.ends_with(".json");
      if (plain && value.is_string()) {
        h5::put(group, key, value.get<std::string>());
      } else if (plain && value.is_boolean()) {
        h5::put_flag(group, key, value.get<bool>());
      } else if (plain && value.is_number_unsigned()) {
        h5::put(group, key, value.get<std::uint64_t>());
      } else if (plain && value.is_number_integer()) {
        h5::put(group, key, value.get<std::int64_t>());
      } else if (plain && value.is_number_float()) {
        h5::put(group, key, value.get<double>());
      } else {
        h5::put(group, key + ".json", value.dump(-1, ' ', false, Json::error_handler_t::replace));
      }
    }
  }

  /// The dataset that gives a dimension its coordinates.
  void coordinate(const std::string& name, const std::vector<std::int32_t>& values) {
    if (shared_ != nullptr) {
      scales_[name] = shared_->scale(group_, name, values.size(), values.data());
    } else {
      h5::create_dataset(group_, name, h5::Type::int32, {values.size()}, values.data());
    }
    lengths_[name] = values.size();
  }

  /// Further dimensions of arrays are numbered from 0.
  void need_scale(const std::string& name, std::size_t length) {
    if (lengths_.contains(name)) return;
    std::vector<std::int32_t> numbers(length);
    std::iota(numbers.begin(), numbers.end(), 0);
    h5::Id set =
        h5::create_dataset(group_, name, h5::Type::int32, {length}, numbers.data(), shared_ != nullptr);
    if (shared_ != nullptr)
      scales_[name] = own_.emplace_back(std::make_shared<h5::Scale>(std::move(set), name));
    lengths_[name] = length;
  }

  h5::Id dataset(const std::string& name, h5::Type type, const std::vector<std::string>& dims,
                 const void* values) {
    h5::Id set = h5::create_dataset(group_, name, type, shape(dims), values, shared_ != nullptr);
    if (shared_ != nullptr) h5::Scale::attach(set, scales(dims));
    return set;
  }

  std::vector<std::size_t> shape(const std::vector<std::string>& dims) const {
    std::vector<std::size_t> out;
    for (const std::string& dim : dims) out.push_back(lengths_.at(dim));
    return out;
  }

  std::vector<SharedCoordinates::ScalePtr> scales(const std::vector<std::string>& dims) const {
    std::vector<SharedCoordinates::ScalePtr> out;
    for (const std::string& dim : dims) out.push_back(scales_.at(dim));
    return out;
  }

  void fixed(const std::string& name, const void* values) {
    const Field& field = Schema::get().case_dataset(name);
    if (shared_ != nullptr)
      return shared_->dataset(group_, field, shape(field.dims), values, scales(field.dims));
    const h5::Id set = dataset(name, field.type, field.dims, values);
    if (!field.unit.empty()) h5::put(set, "unit", field.unit);
  }

  void metric(const Metric& metric, std::int32_t position) {
    std::vector<std::string> dims{"entity"};
    if (metric.per_sample) dims.emplace_back("sample");
    const h5::Id set = dataset(metric.name, h5::Type::float64, dims, metric.values.held().data());
    h5::put(set, "unit", metric.unit);
    h5::put(set, "better", to_string(metric.better));
    h5::put(set, "required", std::int32_t{metric.required});
    h5::put(set, "role", to_string(metric.role));
    h5::put(set, "position", position);
    if (!metric.title.empty()) h5::put(set, "title", metric.title);
    if (metric.judging) judging(set, *metric.judging);
  }

  static void judging(hid_t set, const Judging& j) {
    h5::put(set, "class", to_string(j.of));
    h5::put(set, "fault_threshold", j.fault_threshold);
    h5::put(set, "weight", j.weight);
    h5::put(set, "floor", to_string(j.floor));
    h5::put(set, "shared_by", to_string(j.shared_by));
    h5::put(set, "in_step", std::int32_t{j.in_step});
  }

  void array(const IntegerArray& array, std::int32_t position) {
    std::string dims;
    for (std::size_t d = 0; d < array.dims.size(); ++d) {
      need_scale(array.dims[d], array.shape[d]);
      dims += (d == 0 ? "" : ",") + array.dims[d];
    }
    const h5::Id set = dataset(array.name, h5::Type::uint64, array.dims, array.values.held().data());
    h5::put(set, "dims", dims);
    h5::put(set, "position", position);
  }

  const CaseData& data_;
  SharedCoordinates* shared_;  ///< none in the file of a single case, which has no scales
  h5::Id group_;
  std::map<std::string, std::size_t> lengths_;
  std::map<std::string, SharedCoordinates::ScalePtr> scales_;
  std::vector<SharedCoordinates::ScalePtr> own_;  ///< those of further dimensions
};

std::string array_problem(const IntegerArray& array, std::map<std::string, std::size_t>& lengths,
                          const std::set<std::string>& names) {
  if (array.dims.size() != array.shape.size() || array.dims.empty())
    return array.name + ": dims and shape differ";
  std::size_t total = 1;
  for (std::size_t d = 0; d < array.dims.size(); ++d) {
    const std::string& dim = array.dims[d];
    if (!is_column_name(dim) || dim.find(',') != std::string::npos || names.contains(dim)) {
      return array.name + ": \"" + dim + "\" cannot name a dimension";
    }
    if (lengths.emplace(dim, array.shape[d]).first->second != array.shape[d]) {
      return array.name + ": dimension " + dim + " has two lengths";
    }
    total *= array.shape[d];
  }
  if (array.values.size() != total) return array.name + ": values do not fill the shape";
  return "";
}

}  // namespace

std::string reference_problem(const CaseData& data, std::size_t entities) {
  const std::size_t n = data.entity.size(), s = data.sample.size();
  for (const auto* rows : {&data.entity, &data.source, &data.destination}) {
    for (const std::int32_t row : *rows) {
      if (row < 0 || static_cast<std::size_t>(row) >= entities) {
        return "row " + std::to_string(row) + " is not in /entities, which has " + std::to_string(entities);
      }
    }
  }
  if (data.source.size() != data.destination.size() || (!data.source.empty() && data.source.size() != n)) {
    return "source and destination are not as long as entity";
  }
  if (data.count.size() != n) return "count is not as long as entity";
  for (const std::int32_t c : data.count) {
    if (c < 0) return "a count is negative";
    if (static_cast<std::size_t>(c) > s) return "a count is larger than the number of samples";
  }
  if (data.block.size() != s) return "block is not as long as sample";
  if (data.t.size() != n * s) return "t is not [entity, sample]";
  return "";
}

std::string problem_of(const CaseData& data, std::size_t entities) {
  if (!is_case_name(data.suite) || !is_case_name(data.name)) return "a case cannot be named so";
  if (std::string problem = reference_problem(data, entities); !problem.empty()) return problem;
  std::set<std::string> names;
  const auto take = [&](const std::string& name) {
    return is_column_name(name) && !Schema::get().reserved(name) && names.insert(name).second;
  };
  for (const Metric& m : data.metrics) {
    if (!take(m.name)) return "a metric cannot be named \"" + m.name + "\" here";
    if (!is_unit(m.unit))
      return "metric " + m.name + " has the unit \"" + m.unit + "\", which is not in the schema";
    if (m.values.size() != data.entity.size() * (m.per_sample ? data.sample.size() : 1)) {
      return "metric " + m.name + " does not have a value for every entity" +
             (m.per_sample ? " and sample" : "");
    }
  }
  for (const IntegerArray& a : data.arrays) {
    if (!take(a.name)) return "an array cannot be named \"" + a.name + "\" here";
  }
  std::map<std::string, std::size_t> lengths{{"entity", data.entity.size()}, {"sample", data.sample.size()}};
  for (const IntegerArray& a : data.arrays) {
    if (std::string problem = array_problem(a, lengths, names); !problem.empty()) return problem;
  }
  for (const auto& item : data.parameters.items()) {
    if (item.key().empty()) return "a parameter has no name";
  }
  return "";
}

void write_case(hid_t parent, const std::string& name, const CaseData& data, std::int64_t sequence,
                SharedCoordinates* shared) {
  CaseWriter(parent, name, data, shared).write(sequence);
}

}  // namespace assay::results
