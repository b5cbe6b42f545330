// SPDX-License-Identifier: Apache-2.0
#include "results/checker.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <set>

#include "results/json_io.hpp"
#include "results/schema.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

bool allowed(const Field& field, const Json& value) {
  return std::find(field.values->begin(), field.values->end(), value) != field.values->end();
}

struct NamedScale {
  std::map<haddr_t, std::string>& known;
  std::string name;
};

/// HDF5 reads all attributes of a scale for its name, the list of its uses among them: each once.
herr_t scale_name(hid_t /*set*/, unsigned /*dim*/, hid_t scale, void* out) noexcept {
  auto& found = *static_cast<NamedScale*>(out);
  try {
    const auto [it, first] = found.known.try_emplace(h5::address(scale));
    char name[256] = "";
    if (first && H5DSget_scale_name(scale, name, sizeof name) < 0) return -1;
    if (first) it->second = name;
    found.name = it->second;
  } catch (...) {
    return -1;
  }
  return 1;
}

constexpr std::size_t most_problems = 1000;

}  // namespace

void add_problem(std::vector<std::string>& problems, const std::string& text) {
  problems.push_back(one_line(text));
  if (problems.size() == most_problems) throw TooManyProblems();
}

void Checker::problem(const std::string& text) { add_problem(problems_, text); }

void Checker::guard(const std::string& path, const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    problem(path + ": " + error.what());
  }
}

void Checker::once(hid_t object, const std::string& what, const std::function<void()>& check) {
  std::pair key{h5::address(object), what};
  if (passed_.contains(key)) return;
  const std::size_t before = problems_.size();
  check();
  if (problems_.size() == before) passed_.insert(std::move(key));
}

void Checker::attributes(hid_t object, const std::string& path, const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    guard(path, [&] { attribute(object, path, field); });
  }
}

void Checker::attribute(hid_t object, const std::string& path, const Field& field) {
  if (!h5::has_attribute(object, field.name)) {
    if (!field.required) return;
    return problem(field.name == "unit" ? "missing unit of " + path
                                        : "missing attribute " + field.name + " of " + path);
  }
  const h5::Stored type = h5::attribute_type(object, field.name);
  if (!h5::same(type, field.type)) {
    return problem("wrong type of attribute " + field.name + " of " + path + ": " + h5::to_string(type) +
                   " instead of " + h5::to_string(field.type));
  }
  Json value;
  if (field.type == h5::Type::string) {
    const std::string text = h5::get_string(object, field.name, limits_);
    utf8({text}, "attribute " + field.name + " of " + path);
    value = text;
  }
  if (field.values == nullptr) return;
  if (field.type == h5::Type::string) {
    if (value == "" && (field.name == "stage" || field.name == "kind")) return;
  } else {
    std::int32_t number = 0;
    h5::get(object, field.name, field.type, &number);
    value = number;
  }
  if (!allowed(field, value)) {
    const std::string what = field.name == "unit" ? "unknown unit " : "unknown " + field.name + " ";
    problem(what + dump(value) + " of " + path);
  }
}

void Checker::utf8(const std::vector<std::string>& texts, const std::string& name) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (clean_text(texts[i]) != texts[i])
      return problem(name + (texts.size() > 1 ? ", row " + std::to_string(i) : "") + ": not UTF-8");
}

void Checker::column_values(hid_t set, const std::string& name, const Field& field) {
  std::set<std::string> wrong;
  if (field.type == h5::Type::string) {
    const auto values = h5::read_strings(set, name, limits_);
    utf8(values, name);
    if (field.values == nullptr) return;
    for (const std::string& value : values) {
      if (!allowed(field, value)) wrong.insert("\"" + value + "\"");
    }
  } else if (field.values != nullptr && field.type == h5::Type::int32) {
    for (const std::int32_t value : integers(set, name)) {
      if (!allowed(field, value)) wrong.insert(std::to_string(value));
    }
  }
  for (const std::string& value : wrong) problem("unknown value " + value + " in " + name);
}

std::vector<std::int32_t> Checker::integers(hid_t set, const std::string& name) {
  const auto shape = h5::check_dataset(set, name, h5::Type::int32, limits_);
  std::size_t n = 1;
  for (const std::size_t d : shape) n *= d;
  std::vector<std::int32_t> values(n);
  if (n > 0) h5::read(set, name, h5::Type::int32, values.data());
  return values;
}

void Checker::references(hid_t set, const std::string& name, std::int32_t least) {
  for (const std::int32_t row : integers(set, name)) {
    if (row < least || (row >= 0 && static_cast<std::size_t>(row) >= entities_)) {
      return problem("row " + std::to_string(row) + " in " + name + " is not in /entities, which has " +
                     std::to_string(entities_));
    }
  }
}

bool Checker::type_is(hid_t set, const std::string& name, h5::Type type) {
  const h5::Stored stored = h5::stored_type(h5::Id(h5::check(H5Dget_type(set), name)));
  if (h5::same(stored, type)) return true;
  problem("wrong type of " + name + ": " + h5::to_string(stored) + " instead of " + h5::to_string(type));
  return false;
}

void Checker::unit(hid_t set, const std::string& name, const std::string& expected) {
  if (!h5::has_attribute(set, "unit")) return problem("missing unit of " + name);
  const std::string found = h5::get_string(set, "unit", limits_);
  if (expected.empty() ? !is_unit(found) : found != expected) {
    problem("unknown unit \"" + found + "\" of " + name +
            (expected.empty() ? "" : ", which is in " + expected));
  }
}

void Checker::scale(hid_t group, const std::string& path, const std::string& name) {
  if (!h5::is_dataset(group, name)) return problem("missing dataset " + path + "/" + name);
  const h5::Id set = h5::open_dataset(group, name);
  once(set, "scale", [&] {
    if (H5DSis_scale(set) <= 0) problem("not a dimension scale: " + path + "/" + name);
  });
}

void Checker::attached(hid_t set, const std::string& name, const std::vector<std::string>& dims) {
  for (unsigned d = 0; d < dims.size(); ++d) {
    NamedScale found{scale_names_, ""};
    const int n = H5DSget_num_scales(set, d);
    if (n > 0) H5DSiterate_scales(set, d, nullptr, scale_name, &found);
    if (n != 1 || found.name != dims[d]) {
      problem("missing scale " + dims[d] + " on dimension " + std::to_string(d) + " of " + name);
    }
  }
}

}  // namespace assay::results
