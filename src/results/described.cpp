// SPDX-License-Identifier: Apache-2.0
#include "results/described.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/glob.hpp"
#include "base/text.hpp"
#include "results/case_name.hpp"
#include "results/schema.hpp"

namespace assay::results {
namespace {

/// What the kind of an event of an earlier launch begins with.
constexpr std::string_view earlier = "earlier-";

/// The table for files before schema 1.3.
const Json& before() {
  static const Json table = Json::parse(before_text());
  return table;
}

bool matches(const Json& wanted, const std::string& text) {
  if (wanted.is_string()) return glob_match(wanted.get_ref<const std::string&>(), text);
  return std::any_of(wanted.begin(), wanted.end(), [&](const Json& one) { return matches(one, text); });
}

std::string text_of(const CaseData& c, const Metric* m, const std::string& key) {
  if (key == "suite") return c.suite;
  if (key == "case") return base_name(c.name);
  if (key == "stage") return c.stage;
  if (key == "kind") return c.kind;
  if (m == nullptr) return "";
  if (key == "metric") return m->name;
  if (key == "unit") return m->unit;
  return key == "role" ? to_string(m->role) : "";
}

bool applies(const Json& conditions, const CaseData& c, const Metric* m) {
  for (const auto& [key, wanted] : conditions.items()) {
    if (key == "parameters") {
      for (const auto& [name, value] : wanted.items())
        if (c.parameters.value(name, Json()) != value) return false;
    } else if (!matches(wanted, text_of(c, m, key))) {
      return false;
    }
  }
  return true;
}

/// What all entries of a list that apply say together.
Json said(const char* list, const CaseData& c, const Metric* m) {
  Json out = Json::object();
  for (const Json& entry : before().at(list))
    if (applies(entry.at("if"), c, m)) out.update(entry.at("then"));
  return out;
}

}  // namespace

bool is_measurement(const std::string& suite, const std::string& stage) noexcept {
  return stage != inventory_stage && suite != selftest_suite;
}

Judging judging_of(const CaseData& c, const Metric& m) {
  if (m.judging) return *m.judging;
  const Json told = said("metrics", c, &m);
  Judging out;
  if (told.contains("class")) out.of = metric_class_from(told.at("class"));
  out.fault_threshold = told.value("fault_threshold", out.fault_threshold);
  out.weight = told.value("weight", out.weight);
  if (told.contains("floor")) out.floor = floor_from(told.at("floor"));
  if (told.contains("shared_by")) out.shared_by = shared_by_from(told.at("shared_by"));
  out.in_step = told.value("in_step", out.in_step);
  return out;
}

CaseTraits traits_of(const CaseData& c) {
  if (c.traits) return *c.traits;
  const Json told = said("cases", c, nullptr);
  CaseTraits out;
  out.takes_turns = told.value("takes_turns", false);
  out.addresses = told.value("addresses", false);
  return out;
}

Checkers checkers_of(const PlanRow& row) {
  if (row.checkers == no_checks) return {};
  if (row.checkers.empty()) return {false, {}};
  Checkers out;
  if (row.checkers == unknown_checks) {
    if (const std::string name = before().at("checkers").value(row.suite, ""); !name.empty())
      out.names.push_back(name);
    return out;
  }
  out.names = split(row.checkers, ',');
  return out;
}

std::optional<Loss> loss_of(const EventRow& event) {
  Loss loss{event.kind, event.kind.starts_with(earlier)};
  if (loss.earlier) loss.kind.erase(0, earlier.size());
  if (loss.kind != "lost" && loss.kind != "hang") return std::nullopt;
  return loss;
}

bool mark_earlier(EventRow& event) {
  if (event.kind.starts_with(earlier)) return true;
  if (!loss_of(event) && event.kind != "stack") return false;
  event.kind.insert(0, earlier);
  return true;
}

bool has_damage(const std::vector<EventRow>& events) {
  return std::ranges::any_of(events, [](const EventRow& e) { return e.kind == damage_event; });
}

void complete_launch_events(std::vector<EventRow>& events) {
  static constexpr std::array words = {"missing", "mismatch",  "singletons", "oversubscribed", "uncovered",
                                       "uneven",  "quota",     "idle",       "corrupt",        "lost",
                                       "hang",    "throttled", "noisy",      "split"};
  static constexpr std::string_view earlier_text = "in an earlier launch: ";
  for (EventRow& e : events) {
    if (e.text.starts_with(earlier_text) && mark_earlier(e)) e.text.erase(0, earlier_text.size());
    if (!e.kind.starts_with("launch-") || !e.finding.empty()) continue;
    e.finding = "mismatch";
    const auto end = e.text.find(": ");
    if (end == std::string::npos ||
        std::find(words.begin(), words.end(), e.text.substr(0, end)) == words.end())
      continue;
    e.finding = e.text.substr(0, end);
    e.text.erase(0, end + 2);
  }
}

}  // namespace assay::results
