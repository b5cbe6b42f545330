// SPDX-License-Identifier: Apache-2.0
#include "results/model.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "results/schema.hpp"

namespace assay::results {
namespace {
constexpr std::array better_names{"higher", "lower", "none"};
constexpr std::array role_names{"metric", "covariate"};
constexpr std::array floor_names{"none", "memory_channels", "nic_rate", "own_rate", "gpu_bound"};
constexpr std::array shared_names{"none", "node", "group", "world"};
constexpr std::array state_names{"pass", "skip", "incomplete", "fail", "error"};

template <class E, std::size_t N>
E from(const std::array<const char*, N>& names, const std::string& text, const char* what) {
  const auto at = std::find(names.begin(), names.end(), text);
  if (at == names.end()) throw Error(ErrorKind::data, "unknown " + std::string(what) + " \"" + text + "\"");
  return static_cast<E>(at - names.begin());
}

/// The schema names the classes, since one of them is called like a suite.
const std::vector<std::string>& class_names() {
  static const std::vector<std::string> names = allowed_values("metric_class");
  return names;
}
}  // namespace

const char* to_string(Better b) noexcept { return better_names[static_cast<std::size_t>(b)]; }
const char* to_string(Role r) noexcept { return role_names[static_cast<std::size_t>(r)]; }
const char* to_string(CaseState s) noexcept { return state_names[static_cast<std::size_t>(s)]; }
Better better_from(const std::string& text) { return from<Better>(better_names, text, "direction"); }
Role role_from(const std::string& text) { return from<Role>(role_names, text, "role"); }
const char* to_string(MetricClass c) noexcept { return class_names()[static_cast<std::size_t>(c)].c_str(); }
const char* to_string(Floor f) noexcept { return floor_names[static_cast<std::size_t>(f)]; }
const char* to_string(SharedBy s) noexcept { return shared_names[static_cast<std::size_t>(s)]; }
MetricClass metric_class_from(const std::string& text) {
  const auto at = std::find(class_names().begin(), class_names().end(), text);
  if (at == class_names().end()) throw Error(ErrorKind::data, "unknown class of a metric \"" + text + "\"");
  return static_cast<MetricClass>(at - class_names().begin());
}
Floor floor_from(const std::string& text) { return from<Floor>(floor_names, text, "floor"); }
SharedBy shared_by_from(const std::string& text) { return from<SharedBy>(shared_names, text, "sharing"); }
CaseState case_state_from(const std::string& text) {
  return from<CaseState>(state_names, text, "case state");
}

const Metric* CaseData::find(const std::string& metric) const noexcept {
  const auto at =
      std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == metric; });
  return at == metrics.end() ? nullptr : &*at;
}

std::string unfinished_text(const CaseData& c) {
  const auto at = c.parameters.find(unfinished_parameter);
  return at != c.parameters.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::vector<std::string> unfinished_parts(const CaseData& c) {
  const auto at = c.parameters.find(unfinished_parts_parameter);
  std::vector<std::string> out;
  if (at == c.parameters.end() || !at->is_array()) return out;
  for (const Json& name : *at)
    if (name.is_string()) out.push_back(name.get<std::string>());
  return out;
}

}  // namespace assay::results
