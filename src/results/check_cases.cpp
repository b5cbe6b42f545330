// SPDX-License-Identifier: Apache-2.0
#include <hdf5_hl.h>

#include <map>
#include <set>

#include "base/error.hpp"
#include "results/case_name.hpp"
#include "results/checker.hpp"

namespace assay::results {
namespace {

/// What /plan says of the cases, to find cases that were not planned.
std::set<std::string> planned_cases(const OpenFile& file) {
  std::set<std::string> out;
  const auto column = [&](const char* name) {
    return h5::read_strings(h5::open_dataset(file.id, name), name, file.limits);
  };
  const auto suites = column("/plan/suite"), cases = column("/plan/case");
  for (std::size_t i = 0; i < std::min(suites.size(), cases.size()); ++i)
    out.insert(suites[i] + "/" + cases[i]);
  return out;
}

class CaseChecker : public Checker {
 public:
  using Checker::Checker;

  void check(const std::string& path) {
    if (!h5::is_group(file_, path)) return problem("not a group: " + path);
    path_ = path;
    lengths_.clear();
    group_ = h5::open_group(file_, path);
    attributes(group_, path, schema_.case_attributes);
    if (!h5::is_group(group_, "parameters")) problem("missing group " + path + "/parameters");
    for (const char* name : {"entity", "sample"}) {
      scale(group_, path, name);
      if (!h5::is_dataset(group_, name)) continue;
      const auto shape = h5::shape(h5::open_dataset(group_, name));
      if (shape.size() == 1) lengths_[name] = shape[0];
    }
    for (const Field& field : schema_.case_datasets) {
      guard(path + "/" + field.name, [&] { fixed(field); });
    }
    bool measured = false;
    for (const std::string& name : h5::children(group_)) {
      if (schema_.reserved(name) || !h5::is_dataset(group_, name)) continue;
      guard(path + "/" + name, [&] { measured = other(name) || measured; });
    }
    guard(path, [&] {
      const bool passed =
          h5::has_attribute(group_, "state") && h5::get_string(group_, "state", limits_) == "pass";
      if (passed && !measured) problem("a case passed without a metric: " + path);
    });
  }

 private:
  void shape(hid_t set, const std::string& name, const std::vector<std::string>& dims) {
    std::vector<std::size_t> expected;
    for (const std::string& dim : dims) {
      if (!lengths_.contains(dim)) return;  // named already
      expected.push_back(lengths_.at(dim));
    }
    if (h5::shape(set) != expected) {
      problem("wrong length of " + name);
    } else if (dims != std::vector<std::string>{name.substr(path_.size() + 1)}) {
      attached(set, name, dims);
    }
  }

  void fixed(const Field& field) {
    const std::string name = path_ + "/" + field.name;
    if (!h5::is_dataset(group_, field.name)) {
      const bool told = field.name == "entity" || field.name == "sample";
      if (field.required && !told) problem("missing dataset " + name);
      return;
    }
    const h5::Id set = h5::open_dataset(group_, field.name);
    std::string what = field.name;
    for (const std::string& dim : field.dims)
      what += "," + (lengths_.contains(dim) ? std::to_string(lengths_.at(dim)) : "?");
    once(set, what, [&] {
      if (!type_is(set, name, field.type)) return;
      shape(set, name, field.dims);
      if (!field.unit.empty()) unit(set, name, field.unit);
      if (field.refers) references(set, name, 0);
    });
  }

  /// Returns whether it is a metric.
  bool other(const std::string& name) {
    const std::string full = path_ + "/" + name;
    const h5::Id set = h5::open_dataset(group_, name);
    const h5::Stored type = h5::stored_type(h5::Id(h5::check(H5Dget_type(set), full)));
    if (type == h5::Stored::uint64) {
      array(set, full);
    } else if (type == h5::Stored::float64) {
      attributes(set, full, schema_.metric_attributes);
      const bool per_sample = h5::shape(set).size() == 2;
      shape(set, full,
            per_sample ? std::vector<std::string>{"entity", "sample"} : std::vector<std::string>{"entity"});
      return true;
    } else if (H5DSis_scale(set) <= 0) {
      problem("wrong type of " + full + ": " + h5::to_string(type) + " instead of float64 or uint64");
    }
    return false;
  }

  void array(hid_t set, const std::string& full) {
    attributes(set, full, schema_.array_attributes);
    if (!h5::has_attribute(set, "dims")) return;
    std::vector<std::string> dims(1);
    for (const char c : h5::get_string(set, "dims", limits_)) {
      if (c == ',') {
        dims.emplace_back();
      } else {
        dims.back() += c;
      }
    }
    attached(set, full, dims);
  }

  std::string path_;
  h5::Id group_;  ///< looked up once: /cases may hold many
  std::map<std::string, std::size_t> lengths_;
};

}  // namespace

void check_cases(const OpenFile& file, std::size_t entities, std::vector<std::string>& problems) {
  if (!h5::is_group(file.id, "/cases")) {
    add_problem(problems, "missing group /cases");
    return;
  }
  std::set<std::string> planned;
  try {
    planned = planned_cases(file);
  } catch (const Error&) {
    // the check of /plan has told
  }
  CaseChecker checker(file.id, file.limits, entities, problems);
  const h5::Id top = h5::open_group(file.id, "/cases");
  for (const std::string& suite : h5::children(top)) {
    if (!h5::is_group(top, suite)) continue;
    for (const std::string& name : h5::children(h5::open_group(top, suite))) {
      const std::string path = "/cases/" + suite + "/" + name;
      checker.check(path);
      const std::string finished = finished_name(name);
      if (!planned.contains(suite + "/" + base_name(finished)) && !planned.contains(suite + "/" + finished)) {
        add_problem(problems, "not in /plan: " + path);
      }
    }
  }
}

}  // namespace assay::results
