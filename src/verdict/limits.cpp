// SPDX-License-Identifier: Apache-2.0
// The --limits file: what was promised, with units.
#include "verdict/limits.hpp"

#include <toml++/toml.h>
#include <cmath>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "base/units.hpp"
#include "verdict/verdict.hpp"

namespace assay::verdict {
namespace {

[[noreturn]] void fail(const std::string& file, int line, const std::string& key, const std::string& what) {
  throw_usage(file + ":" + std::to_string(line) + ": " + (key.empty() ? "" : key + ": ") + what);
}

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

std::string text_of(const toml::node& node, const std::string& file, const std::string& key) {
  const auto value = node.value<std::string>();
  if (!node.is_string() || !value) {
    const bool bound = key == "min" || key == "max";
    fail(
        file, line_of(node), key,
        bound ? "write the quantity with its unit in quotes, like \"180 GB/s\"" : "must be a text in quotes");
  }
  return *value;
}

void read_metric(Limit& limit, const toml::node& node, const std::string& file) {
  const std::string text = text_of(node, file, "metric");
  const auto colon = text.rfind(':');
  const auto slash = text.find('/');
  if (colon == std::string::npos || colon + 1 == text.size() || slash == std::string::npos || slash == 0 ||
      slash > colon) {
    fail(file, line_of(node), "metric", "\"" + text + "\" is not SUITE/CASE-GLOB:METRIC");
  }
  limit.case_glob = text.substr(0, colon);
  limit.metric = text.substr(colon + 1);
}

double read_bound(const toml::node& node, const std::string& file, const std::string& key, std::string& unit,
                  std::string& text) {
  text = text_of(node, file, key);
  double value = 0;
  try {
    value = parse_quantity(text, unit);
  } catch (const Error& e) {
    fail(file, line_of(node), key, e.what());
  }
  if (!std::isfinite(value) || value < 0) fail(file, line_of(node), key, "\"" + text + "\" is out of range");
  return value;
}

Limit read_limit(const toml::table& table, const std::string& file) {
  Limit limit;
  limit.line = line_of(table);
  for (const auto& [k, node] : table) {
    const std::string key(k.str());
    if (key == "metric") {
      read_metric(limit, node, file);
    } else if (key == "device") {
      limit.device = text_of(node, file, key);
    } else if (key == "min") {
      limit.has_min = true;
      limit.min = read_bound(node, file, key, limit.min_unit, limit.min_text);
    } else if (key == "max") {
      limit.has_max = true;
      limit.max = read_bound(node, file, key, limit.max_unit, limit.max_text);
    } else {
      fail(file, line_of(node), key, "unknown key (metric, device, min, max)");
    }
  }
  if (limit.metric.empty()) fail(file, limit.line, "limit", "has no metric");
  if (!limit.has_min && !limit.has_max) fail(file, limit.line, limit.full(), "has neither min nor max");
  if (limit.has_min && limit.has_max && limit.min_unit != limit.max_unit) {
    fail(file, limit.line, limit.full(), "min is in " + limit.min_unit + " and max in " + limit.max_unit);
  }
  return limit;
}

/// Whether `a` holds for everything that `b` holds for.
bool covers(const Limit& a, const Limit& b) {
  return a.metric == b.metric && glob_match(a.case_glob, b.case_glob) && glob_match(a.device, b.device);
}

/// No value can keep two limits of which one asks for more than the other allows.
void check_contradictions(const std::vector<Limit>& limits, const std::string& file) {
  for (const Limit& low : limits) {
    if (!low.has_min) continue;
    for (const Limit& high : limits) {
      if (!high.has_max || low.min <= high.max || low.min_unit != high.max_unit) continue;
      if (!covers(low, high) && !covers(high, low)) continue;
      fail(file, low.line, low.full(),
           "min " + low.min_text + " is above max " + high.max_text +
               (&low == &high ? "" : " of line " + std::to_string(high.line)));
    }
  }
}

}  // namespace

std::vector<Limit> parse_limits(const std::string& text, const std::string& name) {
  const std::string file = name.empty() ? "limits" : name;
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& e) {
    fail(file, static_cast<int>(e.source().begin.line), "", std::string(e.description()));
  }
  std::vector<Limit> limits;
  for (const auto& [k, node] : root) {
    const std::string key(k.str());
    if (key != "limit") fail(file, line_of(node), key, "unknown key (only [[limit]] tables)");
    const auto* tables = node.as_array();
    if (tables == nullptr) fail(file, line_of(node), key, "must be written [[limit]]");
    for (const auto& entry : *tables) {
      const auto* table = entry.as_table();
      if (table == nullptr) fail(file, line_of(entry), key, "must be written [[limit]]");
      limits.push_back(read_limit(*table, file));
    }
  }
  if (limits.empty() && !(text.empty() && name.empty()))
    fail(file, 1, "limit", "the file holds no [[limit]]");
  check_contradictions(limits, file);
  return limits;
}

void check_limits(const std::string& text, const std::string& name) { parse_limits(text, name); }

void check_limits(const std::string& text, const std::string& name, const SuiteMetrics& known) {
  const std::string file = name.empty() ? "limits" : name;
  for (const auto& limit : parse_limits(text, name)) {
    const std::string suite = limit.case_glob.substr(0, limit.case_glob.find('/'));
    const std::string& own = limit.has_min ? limit.min_unit : limit.max_unit;
    bool suite_known = false, metric_known = false;
    for (const auto& [known_suite, metrics] : known) {
      if (!glob_match(suite, known_suite)) continue;
      suite_known = true;
      std::string unit;
      bool unit_fits = false;
      for (const auto& m : metrics) {
        if (m.name != limit.metric) continue;
        unit = m.unit;
        unit_fits = unit_fits || same_unit(own, m.unit);
      }
      metric_known = metric_known || !unit.empty();
      if (!unit.empty() && !unit_fits)
        fail(file, limit.line, limit.full(),
             limit.metric + (suite == known_suite ? "" : " of " + known_suite) + " is in " + unit + ", not " +
                 own);
    }
    if (!suite_known) fail(file, limit.line, limit.full(), "there is no suite " + suite);
    if (!metric_known) fail(file, limit.line, limit.full(), suite + " has no metric " + limit.metric);
  }
}

bool same_unit(const std::string& limit_unit, const std::string& metric_unit) {
  return limit_unit == metric_unit || (limit_unit == "1" && metric_unit == "count") ||
         (limit_unit == "count" && metric_unit == "1");
}

}  // namespace assay::verdict
